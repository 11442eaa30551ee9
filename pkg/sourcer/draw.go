package sourcer

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// An order is the request of one Read.
type order struct {
	count  int     // messages
	tokens int     // for them
	each   float64 // tokens for a message
	whole  bool    // count is all that the platform asks for, and it pays to wait for that
}

// order returns the request of a Read of at most limit messages. A source that had fewer messages than tokens the last time is asked for a
// quarter more than it had. Once it has those, it is asked for four times as many. Otherwise every source without messages would hold its
// processor's tokens for the length of its Read, and return them too late for any use. To the pool it would look as if it needed them.
func (s *source) order(limit int) order {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := order{count: min(limit, s.want), each: s.each}
	o.tokens = s.tokensFor(o.count)
	o.whole = o.count == limit && s.cadence.waits(time.Now())
	return o
}

// tokensFor returns the cost of count messages. s.mu is held.
func (s *source) tokensFor(count int) int {
	return int(min(math.Ceil(float64(count)*s.each), maxTokens))
}

const maxTokens = math.MaxInt32

// messages returns how many messages can be read for n tokens: at least one. Its cost above n is debt.
func (o order) messages(n int) int {
	if n >= o.tokens {
		return o.count
	}
	return max(1, min(o.count, int(float64(n)/o.each)))
}

// gatherAtMost bounds how long a Read that lacks tokens collects more of them where the
// platform takes batches of any size.
const gatherAtMost = 100 * time.Millisecond

// draw adds the tokens for a Read to those that were kept for it. At least one is there by the Read's deadline for tokens, or draw fails.
// waited reports whether the Read has waited for tokens.
//
// The bucket is empty whenever the source has more than the limit lets through, and then AcquireUpTo returns with the first token. A batch
// of one message costs the platform nearly as much as one of hundreds, so such a Read goes on collecting; see gather.
func (s *source) draw(ctx context.Context, t turn, o order, g purse) (_ purse, waited bool, _ error) {
	ctx, cancel := context.WithDeadline(ctx, t.drawUntil())
	defer cancel()
	if s.look == nil {
		p, err := s.limiter.AcquireUpTo(ctx, o.tokens)
		return g.add(p), false, err
	}
	seen := s.look()
	ready := int(min(seen.tokens, maxTokens))
	if len(g) == 0 {
		p, err := s.limiter.AcquireUpTo(ctx, 1)
		if err != nil {
			return nil, true, err
		}
		g = g.add(p)
		waited = ready < 1
		ready--
	}
	// A draw of more than is at hand would count as refused, and so as demand; but it is not known yet whether the source has so much.
	g = append(g, s.atHand(ctx, min(o.tokens-g.n(), ready))...)
	g, gathered := s.gather(ctx, t, o, g)
	if now := s.look(); gathered && seen.open && seen.keeps && seen.void(now, time.Now()) {
		return g.trim(0), true, throttle.ErrThrottled // a pause, or the end of the share
	}
	return g, waited || gathered, nil
}

// atHand draws up to n tokens, if there are any at hand.
func (s *source) atHand(ctx context.Context, n int) purse {
	if n <= 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Millisecond) // others may have drawn them
	defer cancel()
	p, err := s.limiter.AcquireUpTo(ctx, n)
	if err != nil {
		return nil
	}
	return purse{}.add(p)
}

// lackFor is for how long a source has to have more messages than tokens before it reports that. One with only bursts of them has enough in
// the end.
const lackFor = 2 * time.Second

// ask returns how many of the missing tokens to draw now. When the source has had more messages than tokens, it is one more than there are
// at hand. Such a draw comes short, which tells the pool that more than the share's earnings would be used.
func (s *source) ask(seen outlook, lack int) int {
	n := min(lack, int(max(seen.tokens, 0)))
	if n <= 0 || !seen.open {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if since := s.keep.since; n < lack && !since.IsZero() && time.Since(since) > lackFor {
		n++
	}
	return n
}

// gather collects the tokens that g lacks, if that pays, and reports whether it has waited.
//
// When it pays to wait for a full batch, and its tokens come in time, it collects all of them. Otherwise it lets the bucket fill once, for
// a short time, and empties it. That takes no more than the bucket would have let through at once.
func (s *source) gather(ctx context.Context, t turn, o order, g purse) (_ purse, waited bool) {
	lack := o.tokens - g.n()
	if lack <= 0 {
		return g, false
	}
	seen := s.look()
	if seen.rate <= 0 {
		return g, false
	}
	if o.whole && seen.keeps && seen.earns(lack) <= time.Until(t.wholeUntil()) {
		return s.gatherAll(ctx, t, o, g), true
	}
	// Full to the brim it would overflow if the timer is late.
	goal := math.Floor(min(float64(o.tokens), seen.room*0.8)) - float64(g.n())
	most := min(t.timeout/4, gatherAtMost, time.Until(t.drawUntil()))
	if goal < 1 || most <= 0 {
		return g, false
	}
	if wait := seen.earns(int(goal)); wait > 0 {
		sleep(ctx, min(most, wait))
		waited = true
	}
	return append(g, s.atHand(ctx, int(min(float64(o.tokens), seen.room))-g.n())...), waited
}

// gatherAll collects all that g lacks, for as long as there is time.
func (s *source) gatherAll(ctx context.Context, t turn, o order, g purse) purse {
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), t.wholeUntil())
	defer cancel()
	for lack := o.tokens - g.n(); lack > 0 && ctx.Err() == nil; lack = o.tokens - g.n() {
		seen := s.look()
		if !seen.open {
			break
		}
		if n := s.ask(seen, lack); n > 0 {
			got := s.atHand(ctx, n)
			seen.tokens -= float64(got.n())
			lack -= got.n()
			g = append(g, got...)
		}
		if lack > 0 {
			sleep(ctx, seen.next(lack))
		}
	}
	return g
}

// waitOut ends a Read that got no tokens: at once if its stream is over, otherwise when there are tokens again or its time is over.
func (s *source) waitOut(ctx context.Context, t turn, err error) {
	wait := time.Until(t.end())
	var e *throttle.Error
	switch {
	case errors.Is(err, throttle.ErrClosed):
		s.closedOnce.Do(func() { s.logger().Warn("limiter closed: nothing is read any more") })
	case errors.As(err, &e):
		// An earlier Read finds the tokens before the bucket overflows. But it does not come much earlier, whatever the limiter says.
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

// drawUntil is when tokens must have come: the last quarter of the time belongs to next. A timeout that is too short to be divided leaves a
// moment for both.
func (t turn) drawUntil() time.Time {
	return t.began.Add(max(t.timeout-t.timeout/4, time.Millisecond))
}

// wholeUntil is when the tokens of a full batch must have come, if it pays to wait for them. An eighth of the time is enough for a source
// that has a full batch.
func (t turn) wholeUntil() time.Time {
	return t.began.Add(t.timeout - t.timeout/8)
}

func (t turn) end() time.Time { return t.began.Add(t.timeout) }

// rest is the timeout for next: the time left, and a twentieth of the whole if this process was held up meanwhile.
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
