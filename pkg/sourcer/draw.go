package sourcer

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// An order is what one Read would like to have.
type order struct {
	count  int     // messages
	tokens int     // for them
	each   float64 // tokens for a message
}

// order returns what a Read of at most limit messages asks for. A source that had
// fewer messages than tokens the last time is asked for a quarter more than it had, and
// for four times as many once it has those: otherwise every source without messages
// would hold its processor's tokens for the length of its Read, give them back when
// they are of no use any more, and look to the pool as if it needed them.
func (s *source) order(limit uint64) order {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := order{count: int(min(limit, uint64(s.want))), each: s.each}
	o.tokens = int(min(math.Ceil(float64(o.count)*o.each), math.MaxInt32))
	return o
}

// messages returns how many messages can be read for n tokens: at least one, and
// what it costs above n is debt.
func (o order) messages(n int) int {
	if n >= o.tokens {
		return o.count
	}
	return max(1, min(o.count, int(float64(n)/o.each)))
}

// A grant is the tokens of one Read: its permits, in the order of their use.
type grant []throttle.Permit

func (g grant) n() int {
	n := 0
	for _, p := range g {
		n += p.N()
	}
	return n
}

// settle books what was used of a grant; what was used above it is debt.
//
// One token that was not used is kept for the next Read instead of being given back. A
// source without messages holds its token for the length of a Read, and a bucket that
// has filled up meanwhile takes none back. So it would use up a token in each of its
// Reads, which are all tokens of a limit that is low. A hard limit grants nothing on the
// strength of what was not used long ago, so there the token goes back.
func (s *source) settle(g grant, used int) {
	var spare throttle.Permit
	for i, p := range g {
		u := used
		if i < len(g)-1 {
			u = min(used, p.N())
		}
		used -= u
		if u == 0 && p.N() == 1 && s.keeps && spare.N() == 0 {
			spare = p
			continue
		}
		p.Settle(u)
	}
	if spare.N() == 0 {
		return
	}
	s.mu.Lock()
	spare, s.spare = s.spare, spare
	s.mu.Unlock()
	spare.Cancel() // of another Read at the same time
}

// takeSpare returns the token that an earlier Read left; the zero Permit when there is
// none, or when the processor must not use it any more.
func (s *source) takeSpare(st throttle.Status) throttle.Permit {
	s.mu.Lock()
	spare := s.spare
	s.spare = throttle.Permit{}
	s.mu.Unlock()
	if st.Closed || st.Lease.Share == 0 || st.Paused != nil {
		spare.Cancel()
		return throttle.Permit{}
	}
	return spare
}

// gatherAtMost bounds how long a Read that lacks tokens collects more of them.
const gatherAtMost = 100 * time.Millisecond

// draw takes the tokens for a Read: at least one, or an error, by the time that is
// set for it.
//
// The bucket is empty whenever the source has more than the limit lets through, and
// then AcquireUpTo comes back with the first token. A batch of one message costs the
// platform nearly as much as one of hundreds, so such a Read lets the bucket fill
// before it draws the rest. It holds no more than a full bucket, so that this lets
// nothing through that the bucket would not have let through at once.
func (s *source) draw(ctx context.Context, t turn, o order) (grant, error) {
	ctx, cancel := context.WithDeadline(ctx, t.drawUntil())
	defer cancel()
	if s.status == nil {
		p, err := s.limiter.AcquireUpTo(ctx, o.tokens)
		return grant{p}, err
	}
	st := s.status.Status()
	ready := int(min(st.Tokens, math.MaxInt32))
	one := s.takeSpare(st)
	if one.N() == 0 {
		p, err := s.limiter.AcquireUpTo(ctx, 1) // by itself, so that it can be kept
		if err != nil {
			return grant{}, err
		}
		one = p
		ready--
	}
	g := grant{one}
	// More than what is at hand would be counted as refused, and what is refused
	// counts as demand; but it is not known yet whether the source has so much.
	g = s.add(ctx, g, min(o.tokens-g.n(), ready))
	return s.add(ctx, g, s.gather(ctx, t, o, g.n())), nil
}

// add takes up to n more tokens for g, if there are any at hand.
func (s *source) add(ctx context.Context, g grant, n int) grant {
	if n <= 0 {
		return g
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Millisecond) // others may have drawn them
	defer cancel()
	p, err := s.limiter.AcquireUpTo(ctx, n)
	if err != nil {
		return g
	}
	return append(g, p)
}

// gather waits until the bucket is nearly full, and returns how many tokens to take
// then; 0 when that is not worth it.
func (s *source) gather(ctx context.Context, t turn, o order, n int) int {
	if n >= o.tokens {
		return 0
	}
	st := s.status.Status()
	full := float64(max(st.Limit.Burst, 1)) * float64(st.Lease.Share) / float64(throttle.WholeShare)
	// Full to the brim it would overflow if the timer is late.
	goal := math.Floor(min(float64(o.tokens), full*0.8)) - float64(n)
	most := min(t.timeout/4, gatherAtMost, time.Until(t.drawUntil()))
	if goal < 1 || st.Rate <= 0 || most <= 0 {
		return 0
	}
	if lack := goal - max(st.Tokens, 0); lack > 0 {
		sleep(ctx, min(most, time.Duration(lack/st.Rate*float64(time.Second))))
	}
	return int(min(float64(o.tokens), full)) - n
}

// waitOut ends a Read that got no tokens: at once if its stream is over, otherwise
// when there are tokens again or its time is over.
func (s *source) waitOut(ctx context.Context, t turn, err error) {
	wait := time.Until(t.end())
	var e *throttle.Error
	switch {
	case errors.Is(err, throttle.ErrClosed):
		s.closedOnce.Do(func() { s.logger().Warn("limiter closed: nothing is read any more") })
	case errors.As(err, &e):
		// An earlier Read finds the tokens before the bucket overflows; but not much
		// earlier, whatever the limiter says.
		if e.RetryAfter > 0 {
			wait = min(wait, max(e.RetryAfter, time.Until(t.drawUntil())))
		}
	case !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, throttle.ErrThrottled):
		s.logger().Error("nothing is read: the limiter failed", "error", err)
	}
	s.noteShort()
	sleep(ctx, wait)
}

func (s *source) noteShort() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shortAt = time.Now()
}

// A turn is the time that one Read has, on the local monotonic clock.
type turn struct {
	began   time.Time
	timeout time.Duration
}

// drawUntil is when tokens must have come: the last quarter of the time belongs to
// next. A timeout that is too short to be divided leaves a moment for both.
func (t turn) drawUntil() time.Time {
	return t.began.Add(max(t.timeout-t.timeout/4, time.Millisecond))
}

func (t turn) end() time.Time { return t.began.Add(t.timeout) }

// rest is the timeout for next: what is left, and a twentieth of the whole when this
// process was held up meanwhile.
func (t turn) rest() time.Duration {
	return max(time.Until(t.end()), t.timeout/20, 0)
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
