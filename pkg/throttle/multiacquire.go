package throttle

import (
	"context"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/engine/waitqueue"
)

// How long a caller pauses before it retries a draw that it waited for and could not use.
const (
	shortestPause = time.Millisecond
	longestPause  = 100 * time.Millisecond
)

// A multiAcquire is one Acquire of an All. It wins the limiters of this package together (see waitqueue.Attempt), then tries the others. If
// one of these refuses, everything goes back, and the caller waits in its Acquire. Tokens granted there are used if all others have theirs
// at hand by then, and go back if not. So nothing is held while the caller waits.
type multiAcquire struct {
	children []child
	natives  []part
	attempt  *attempt // nil without limiters of this package
	others   int      // the first child of another package

	permits []Permit // of the children from others on
	waited  int      // the child that was waited for; -1: none
}

// wait waits until n tokens of each limiter are granted, or with upTo as many as all have. A caller that has waited before passes its age
// as came; 0: it comes now.
func (j *multi) wait(ctx context.Context, n int, upTo bool, came uint64) (Permit, error) {
	r := &multiAcquire{children: j.children, natives: j.natives, others: len(j.natives), permits: make([]Permit, len(j.children)-len(j.natives)), waited: -1}
	if len(j.natives) > 0 {
		r.attempt = waitqueue.NewAttempt(ctx, j.natives)
		r.attempt.Fallback = hasFallback(ctx)
		if came > 0 {
			r.attempt.Since(came)
		}
	}
	if len(j.natives) < len(j.children) {
		guarded, stop := j.guard(ctx)
		defer stop()
		ctx = guarded
	}
	pause := shortestPause
	for most := n; ; {
		k, err := r.win(ctx, most, upTo)
		if err != nil {
			r.giveBack()
			return Permit{}, err
		}
		lacks := -1
		if k >= 0 {
			if lacks = r.tryOthers(k); lacks < 0 {
				return r.grant(k), nil
			}
		}
		waited := r.waited >= 0
		r.giveBack()
		switch {
		case waited:
			if err := r.sleep(ctx, &pause, n); err != nil {
				return Permit{}, err
			}
			most = n
		case upTo && k > 1:
			most = k / 2
		default:
			over := waitsFor(ctx, *r.refusal(k))
			p, err := r.children[lacks].limiter.Acquire(ctx, r.children[lacks].draws(k))
			over()
			if err != nil {
				if e := shut(ctx); e != nil {
					err = e
				}
				return Permit{}, err
			}
			r.waited, most = lacks, k
			r.permits[lacks-r.others] = p
		}
	}
}

// win draws from the limiters of this package. It does not wait while something is held; below 0 then means that they lack tokens.
func (r *multiAcquire) win(ctx context.Context, n int, upTo bool) (int, error) {
	switch {
	case r.attempt == nil:
		if ctx.Err() != nil {
			return -1, r.ended(ctx, n)
		}
		return n, nil
	case r.waited < 0:
		return win(ctx, r.attempt, r.natives, n, upTo)
	case r.attempt.WinNow(n):
		return n, nil
	default:
		return -1, nil
	}
}

// tryOthers draws from the limiters of other packages, and returns the first that refuses; -1 if none does.
func (r *multiAcquire) tryOthers(n int) int {
	for i := r.others; i < len(r.children); i++ {
		cost := r.children[i].draws(n)
		if i == r.waited || cost == 0 {
			continue
		}
		p, ok := r.children[i].limiter.TryAcquire(cost)
		if !ok {
			return i
		}
		r.permits[i-r.others] = p
	}
	return -1
}

// giveBack gives back everything that was drawn.
func (r *multiAcquire) giveBack() {
	if r.attempt != nil {
		r.attempt.Undo()
	}
	for i, p := range r.permits {
		p.Cancel()
		r.permits[i] = Permit{}
	}
	r.waited = -1
}

func (r *multiAcquire) grant(n int) Permit {
	g := newBundle(r.children)
	if r.attempt != nil {
		g.permits = append(g.permits, r.attempt.Permits()...)
	}
	g.permits = append(g.permits, r.permits...)
	return Permit{n: n, by: g}
}

// sleep waits a while, longer each time, so that limiters that grant Acquire but refuse TryAcquire do not keep the caller busy.
func (r *multiAcquire) sleep(ctx context.Context, pause *time.Duration, n int) error {
	timer := time.NewTimer(*pause)
	defer timer.Stop()
	*pause = min(2**pause, longestPause)
	over := waitsFor(ctx, *r.refusal(n))
	defer over()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return r.ended(ctx, n)
	}
}

// ended returns the error of a call whose context has ended.
func (r *multiAcquire) ended(ctx context.Context, n int) error { return ended(ctx, r.refusal(n)) }

// refusal returns the error for a draw of n tokens that the other limiters hold back, with the reason if one of them knows it.
func (r *multiAcquire) refusal(n int) *Error {
	e := &Error{Reason: ReasonLimit, Cost: n}
	if t, ok := worstOf(r.children[r.others:]); ok {
		e.Reason, e.Limit, e.Tag, e.RetryAfter, e.Frozen = t.Reason, t.Limit, t.Tag, t.RetryAfter, t.Frozen
	}
	return e
}
