package throttle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/engine/bucket"
	"github.com/numaproj-contrib/numathrottle/internal/engine/join"
	"github.com/numaproj-contrib/numathrottle/internal/engine/waitqueue"
)

// acquire waits in the queue.
func (t *rateLimiter) acquire(ctx context.Context, n int, upTo bool) (Permit, error) {
	if p, over, err := t.atOnce(ctx, n, upTo); over {
		return p, err
	}
	if n == 0 {
		return acquireAll(ctx, t.asOne(), 0, upTo)
	}
	w := t.newWaiter(ctx, n, upTo)
	if err := t.enqueue(w); err != nil {
		return Permit{}, err
	}
	select {
	case <-w.Ready:
	default:
		t.await(ctx, w)
	}
	return w.Permit, w.Err
}

// await is stand, watched. Its frame is not that of acquire, on which the look into the queue stands.
func (t *rateLimiter) await(ctx context.Context, w *waiter) {
	v := t.follow(ctx, Wait{Limit: t.name, Tag: t.gate.Tag, Reason: w.Reason, Cost: w.N})
	t.stand(ctx, w)
	v.end(w.Permit.n, w.Err)
}

// atOnce ends a call that need not come into the queue.
func (t *rateLimiter) atOnce(ctx context.Context, n int, upTo bool) (p Permit, over bool, err error) {
	switch err := negative(n); {
	case err != nil:
		return p, true, err
	case ctx.Err() != nil:
		return p, true, context.Cause(ctx)
	case t.limit.Max > 0 && (n <= t.maxCost || upTo):
		return p, false, nil
	case t.limit.Max > 0:
		return p, true, t.refuse(ReasonTooLarge, n, 0)
	case t.gate.Closed.Load():
		return p, true, t.refuse(ReasonClosed, n, 0)
	}
	return Permit{n: n}, true, nil
}

// newWaiter returns the place of a caller that comes now.
func (t *rateLimiter) newWaiter(ctx context.Context, n int, upTo bool) *waiter {
	w := &waiter{N: min(n, t.maxCost), UpTo: upTo, Deadline: never, Ready: make(chan struct{}), Woken: t.gate.Waker()}
	w.Least = w.N
	if upTo {
		w.Least = 1
	}
	if d, ok := ctx.Deadline(); ok {
		w.Deadline = int64(d.Sub(t.gate.Base))
	}
	return w
}

// stand waits until w has been served, has failed or was dismissed.
func (t *rateLimiter) stand(ctx context.Context, w *waiter) {
	if !t.gate.Await(ctx, w.Ready) {
		t.giveUp(ctx, w)
	}
}

// enqueue puts w into the queue, unless it is served or dismissed at once, or its deadline is known to come too early.
func (t *rateLimiter) enqueue(w *waiter) error {
	t.gate.Lock()
	defer t.gate.Unlock()
	if t.gate.Closed.Load() {
		return t.refuse(ReasonClosed, w.N, 0)
	}
	if w.Held != nil && w.Held() {
		w.Dismiss()
		return nil
	}
	now := t.gate.Now()
	if w.Deadline != never {
		if wait, late := t.comesLate(now, w); late {
			t.short(w.N, now)
			return t.heldUp(now, w, wait)
		}
	}
	t.queue.Push(w)
	t.setAside(w)
	if !t.queue.IsLast(w) {
		t.retimeSoon(now) // for the waiters behind it
	}
	t.publish()
	t.bucket.Fence() // nothing overtakes w from here on, nor draws while serve looks
	t.serve(now)
	if w.Queued() {
		w.Reason = t.reason(now, t.units(w))
		t.gate.Waits.CountWait(w.Reason)
		t.noteShort(now)
	}
	return nil
}

// dismiss removes callers from the queue that something other than the limit has begun to hold. What holds them begins under the same lock,
// so none of them gets a token meanwhile. Attempts stay: each looks at everything that holds it when its turn comes. If it goes to another
// queue, the next one's turn comes at once. The lock is held.
func (t *rateLimiter) dismiss(now int64) {
	dismissed := false
	for w := range t.queue.All() {
		if w.Held != nil && w.Held() {
			t.leaveQueue(now, w)
			w.Dismiss()
			dismissed = true
		}
	}
	if dismissed {
		t.publish()
		t.serve(now)
	}
}

// giveUp takes w out of the queue because its context has ended, unless it was
// served meanwhile: then the caller has its permit.
func (t *rateLimiter) giveUp(ctx context.Context, w *waiter) {
	t.gate.Lock()
	defer t.gate.Unlock()
	if !w.Queued() {
		return
	}
	now := t.gate.Now()
	t.leaveQueue(now, w)
	t.publish()
	t.serve(now)
	e := t.seat.errorOf(rateSource{t}.Refusal(w))
	last := &waiter{Age: waitqueue.Latest, TagQueue: w.TagQueue} // as the caller would be if it came again
	if wait, _ := t.due(now, t.queue.About(last)+w.Least); t.fits(t.units(w)) {
		e.RetryAfter = max(e.RetryAfter, wait)
	}
	if w.Err = ended(ctx, e); waitqueue.DeadlinePassed(ctx) {
		t.short(w.N, now)
		t.gate.Waits.CountRefusal(e.Reason)
	}
}

// ended returns the error of a call whose context has ended while it waited. That is the cause of the context. For a deadline it is e with
// that cause, unless Track says that something else took most of the call's time.
func ended(ctx context.Context, e *Error) error {
	e.Cause = context.Cause(ctx)
	if !waitqueue.DeadlinePassed(ctx) {
		return e.Cause
	}
	if !errors.Is(e.Cause, context.DeadlineExceeded) { // the context has a cause of its own
		e.Cause = fmt.Errorf("%w: %w", context.DeadlineExceeded, e.Cause)
	}
	if t := trackOf(ctx); t != nil && !t.mostly(time.Now()) {
		return e.Cause
	}
	return e
}

// uncollect puts back units that a waiter has collected and will not use.
func (t *rateLimiter) uncollect(now, units int64) {
	if t.issuing() {
		t.bucket.Waste(units)
		return // its slots are over
	}
	t.bucket.PutBack(now, units)
}

// serve grants from the front of the queue what there is, opens the gate when
// nobody waits any more, and sets the timer for the next. The lock is held.
func (t *rateLimiter) serve(now int64) {
	if t.serving { // an attempt that was just served says so
		return
	}
	t.serving = true
	t.serveAll(now)
	t.serving = false
}

func (t *rateLimiter) serveAll(now int64) {
	if t.retimeDue {
		t.retimeSoon(now)
	}
	if t.issuing() {
		t.releaseDue(now)
	}
	if t.gate.Paused(now) {
		t.arm(now)
		return
	}
	if t.queue.Empty() {
		if t.issuing() {
			t.arm(now)
		}
		return
	}
	for w := t.queue.First; w != nil && t.bucket.Law().Valid(now); w = t.queue.First {
		if t.setAside(w) {
			continue
		}
		level := t.levelFor(now, w)
		used := t.collectedFor(t.units(w))
		need := t.units(w) - used
		if level < need+t.stay {
			if t.units(w) > t.bucket.Law().Capacity && t.fits(t.units(w)) {
				t.collect(min(level, t.units(w)-t.queue.Collected-t.bucket.Units(1)))
			}
			break
		}
		if w.Attempt != nil {
			if w.Attempt.Serve(w) {
				continue
			}
			w.Attempt.Wake() // it keeps its place until it has decided
			break
		}
		n := w.N
		if w.UpTo {
			n = min(n, int((level-t.stay)>>t.bucket.Shift))
			used, need = 0, t.bucket.Units(n)
			if n < w.N {
				t.short(w.N-n, now)
			}
		}
		pos := t.bucket.Take(need)
		t.dequeue(now, w, used)
		t.queue.Served(w, n)
		w.Serve(Permit{n: n, pos: pos, by: t.cell(pos)})
	}
	t.publish()
	t.arm(now)
}

// levelFor returns how many units the bucket holds, and notes how many of them w leaves there. It is not inlined, which keeps the frames of
// waiting callers small: they stand on the stack of a goroutine for each message. The lock is held.
//
//go:noinline
func (t *rateLimiter) levelFor(now int64, w *waiter) int64 {
	t.bucket.Trim(now, t.room())
	t.stay = t.kept(now, w)
	return t.bucket.Level(now)
}

// room returns how many units the bucket may hold; issued tokens are bounded when they come. The lock is held.
func (t *rateLimiter) room() int64 {
	if t.issuing() {
		return bucket.MaxUnits
	}
	return t.bucket.Law().Capacity
}

// collect draws units for the first waiter, which asks for more than the bucket
// holds, so that they do not overflow.
func (t *rateLimiter) collect(units int64) {
	if units > 0 {
		t.bucket.Take(units)
		t.queue.Collected += units
	}
}

// arm sets the timer for the moment at which the first waiter can be served, or the bucket is full and must be collected from. The first
// waiter leaves there as much as when serve last looked. The lock is held.
func (t *rateLimiter) arm(now int64) {
	if t.gate.Closed.Load() { // a permit may be settled yet, and nothing comes of it
		t.timer.Stop()
		return
	}
	if t.gate.Paused(now) {
		t.issue.look.Store(never)
		if left, known := t.gate.PauseLeft(now); known {
			t.timer.Reset(left)
			return
		}
		t.timer.Stop()
		return
	}
	if t.issuing() {
		t.order(now)
		t.armIssue(now)
		return
	}
	w := t.queue.First
	if w == nil {
		t.timer.Stop()
		return
	}
	if !t.bucket.Law().Valid(now) || !t.fits(t.units(w)) {
		return // the next lease serves the queue
	}
	whole, next := t.needsOf(w)
	level := t.bucket.Level(now)
	if w.Attempt != nil && level >= whole {
		t.timer.Stop() // it was woken
		return
	}
	if wait, ok := t.bucket.Law().Wait(next - level); ok {
		if t.stay > 0 {
			wait = min(wait, t.keptFor(now))
		}
		t.timer.Reset(wait)
	}
}

// needsOf returns the level in units at which the first waiter, w, is served, and the level at which to look next. A waiter that asks for
// more than the bucket holds collects before that, so the second is lower. The lock is held.
func (t *rateLimiter) needsOf(w *waiter) (whole, next int64) {
	rest := t.units(w) - t.collectedFor(t.units(w))
	whole = rest + t.stay
	if t.units(w) > t.bucket.Law().Capacity {
		return whole, min(whole, max(t.bucket.Law().Capacity/2, t.bucket.Units(1)))
	}
	return whole, whole
}

// lookSoon is how soon an attempt that was woken is looked at again.
const lookSoon = time.Millisecond

// rearm sets the timer for w, an attempt that has looked and keeps its place. When it was woken there was enough for it. But since then that
// may have been reserved for others, and nobody would wake w again. The lock is held.
func (t *rateLimiter) rearm(now int64, w *waiter) {
	if t.reserver == nil || t.reserver.keptUntil() <= now-int64(time.Second) {
		return // nothing is kept, nor was a moment ago
	}
	if t.queue.First != w || t.issuing() || !t.bucket.Law().Valid(now) || t.gate.Paused(now) {
		return
	}
	t.stay = t.kept(now, w)
	_, next := t.needsOf(w)
	if wait, ok := t.bucket.Law().Wait(max(next-t.bucket.Level(now), 0)); ok {
		t.timer.Reset(max(min(wait, t.keptFor(now)), lookSoon))
	}
}

func (t *rateLimiter) onTimer() {
	t.gate.Lock()
	defer t.gate.Unlock()
	if t.queue.Empty() {
		t.publish() // a pause may be over
	}
	t.serve(t.gate.Now())
}

func (t *rateLimiter) failAll() {
	now := t.gate.Now()
	for w := range t.queue.All() {
		t.leaveQueue(now, w)
		if w.Attempt != nil {
			w.Attempt.Wake()
			continue
		}
		w.Fail(t.refuse(ReasonClosed, w.N, 0))
	}
	t.noteHeld()
}

// tryNone is TryAcquire for a draw of no tokens, or without a limit.
func (t *rateLimiter) tryNone(n int) (Permit, bool) {
	if n == 0 && t.limit.Max > 0 {
		return permitOf(t.asOne().TryAcquire(0))
	}
	return Permit{n: max(n, 0)}, n >= 0 && !t.gate.Closed.Load()
}

// asOne returns the limiter as an All of one, which settles draws of no tokens.
func (t *rateLimiter) asOne() *join.All[Permit] {
	return joined([]child{{Limiter: t.seat.self, Seat: &t.seat.Seat}})
}
