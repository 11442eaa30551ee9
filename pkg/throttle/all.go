package throttle

import (
	"context"

	"github.com/numaproj-contrib/numathrottle/internal/engine/join"
)

// All returns a Limiter that draws from all of limiters at once: requests, tokens and slots of one service, or limits of an account and of
// a destination.
//
// A draw of n takes n tokens from each limiter, or none at all. Weigh and [PerCall] change the amount for one limiter. A limiter named twice
// is drawn from twice. One settlement settles all: Settle(used) settles each with the cost of used there, and Cancel gives everything back.
// AcquireUpTo takes the same number from each, at most as many as all have.
//
// No draw holds tokens of one limiter while it waits for another: callers wait for the scarcest, and take from all once all have enough. So
// two Alls over the same limiters, in any order, never wait for each other. Callers that need the same tokens are served in order of
// arrival. Small draws do not starve a large one, and a deadline that is too near fails at once. The error is that of the scarcest limiter.
//
// These guarantees cover *Throttle and *InFlight. Any other Limiter is drawn from last, by TryAcquire. If it refuses, everything goes back
// and the caller waits in its Acquire, possibly several times. That limiter decides how much its cancelled permits give back. Its wait is
// not known in advance, and its order is not kept.
//
// Alls within All become one. Nil and Unlimited limiters are left out: All of nothing is unlimited, and All of one limiter is that limiter.
// The Limiter is a Tagger if one of limiters is. Its method Throttled describes the one that holds callers back longest. It has nothing to
// close. Once one of limiters is closed, draws fail with [ErrClosed], and waiting callers fail at once. They fail within a second if the
// closed limiter is of another package and shows none of this one (by embedding it, or by a method `Unwrap() Limiter`).
func All(limiters ...Limiter) Limiter {
	var children []child
	for _, l := range limiters {
		children = flatten(children, l, nil)
	}
	return allOf(children)
}

// Weigh returns a Limiter that takes cost(n) tokens of l for a draw of n, and settles with cost(used). It is meant for an All whose
// limiters count different things:
//
//	throttle.All(tokens, throttle.PerCall(requests), throttle.Weigh(bytes, func(n int) int { return 4 * n }))
//
// cost must depend on n alone and must not fall when n rises. It may be called any number of times, from any goroutine, while limiters are
// locked, so it must not call them. A cost of zero or less is a draw of zero tokens of l; see Limiter. [Permit.N] is n.
func Weigh(l Limiter, cost func(n int) int) Limiter {
	return allOf(flatten(nil, l, cost))
}

// PerCall returns a Limiter that takes one token of l for each draw, regardless of size. It puts a limit on requests or on calls in flight
// beside one on their costs. Only Cancel gives the token back: a call that was made counts, even if Settle(0) says that it cost nothing.
func PerCall(l Limiter) Limiter {
	return Weigh(l, func(int) int { return 1 })
}

// A multi draws from several limiters at once; see All.
type multi struct{ *join.All[Permit] }

var _ Limiter = (*multi)(nil)

// TryAcquire takes n tokens from each limiter if all have them. If each is a *Throttle, it takes no lock and allocates once.
func (j *multi) TryAcquire(n int) (Permit, bool) { return permitOf(j.All.TryAcquire(n)) }

// Acquire waits until n tokens of each limiter are granted; see Limiter and All.
func (j *multi) Acquire(ctx context.Context, n int) (Permit, error) {
	return acquireAll(ctx, j.All, n, false)
}

// AcquireUpTo waits until one token of each limiter is granted, and takes as many
// as all have, at most n; see Limiter and All.
func (j *multi) AcquireUpTo(ctx context.Context, n int) (Permit, error) {
	return acquireAll(ctx, j.All, min(n, maxTokens), true)
}

func acquireAll(ctx context.Context, j *join.All[Permit], n int, upTo bool) (Permit, error) {
	if err := negative(n); err != nil {
		return Permit{}, err
	}
	g, err := j.Acquire(ctx, n, upTo)
	p, _ := permitOf(g)
	return p, err
}

// A bundle settles the permits of one draw from several limiters.
type bundle join.Bundle[Permit]

// permitOf returns the permit of a draw; nil: it was refused.
func permitOf(g *join.Bundle[Permit]) (Permit, bool) {
	if g == nil {
		return Permit{}, false
	}
	return Permit{n: g.N, by: (*bundle)(g)}, true
}

// settle settles each permit with the cost of used there. Where nothing was drawn, it charges that.
func (g *bundle) settle(_ int64, _, used int) {
	if !g.Done.CompareAndSwap(false, true) {
		return
	}
	var dropped drops
	for i, p := range g.Permits {
		c := &g.Children[i]
		switch cost := c.Price(max(used, 0)); {
		case used < 0:
			p.Cancel()
		case p.n == 0 && cost > 0 && c.Seat != nil:
			of := c.Seat.Gate
			dropped.put(of, nativeOf(c).book(min(cost, maxTokens), dropped[of]))
		default:
			if by, ok := p.by.(debtor); ok && c.Seat != nil {
				of := c.Seat.Gate
				dropped.put(of, by.settleBeside(p.pos, p.n, cost, dropped[of]))
				continue
			}
			p.Settle(cost)
		}
	}
}

// report passes the outcome on, for tags to the limit together with them.
func (g *bundle) report(_ int64, _ int, o Outcome) {
	for _, p := range g.Permits {
		at, ok := p.by.(*page)
		if !ok {
			p.Report(o)
			continue
		}
		if tags := g.tagsOf(at.t); len(tags) > 0 {
			tags[0].set.report(p.n, o, start{p.pos, never}, tags)
			continue
		}
		at.report(p.pos, p.n, o)
	}
}

// tagsOf returns the tags for which the tokens of a limit were drawn.
func (g *bundle) tagsOf(t *rateLimiter) (tags []*tag) {
	if t.backoff == nil {
		return nil
	}
	for _, p := range g.Children {
		if g := tagAt(p.Seat); g != nil && g.t == t {
			tags = append(tags, g)
		}
	}
	return tags
}

// unlimited is All of nothing.
type unlimited struct{}

func (unlimited) Unlimited() bool { return true }

func (unlimited) TryAcquire(n int) (Permit, bool) { return Permit{n: max(n, 0)}, n >= 0 }

func (u unlimited) AcquireUpTo(ctx context.Context, n int) (Permit, error) {
	return u.Acquire(ctx, n)
}

func (unlimited) Acquire(ctx context.Context, n int) (Permit, error) {
	if err := negative(n); err != nil {
		return Permit{}, err
	}
	if ctx.Err() != nil {
		return Permit{}, context.Cause(ctx)
	}
	return Permit{n: max(n, 0)}, nil
}
