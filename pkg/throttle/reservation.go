package throttle

import (
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/engine/bucket"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
)

// maxOrder is the most slots that one order asks for.
const maxOrder = 64

// An issue holds the slots of a Throttle while the pool's tokens are issued one by one; see Lease.Issuing. The Throttle's lock guards it,
// except asked and look.
type issue struct {
	bucket.Deposits
	from    sharing.Pool  // nil: tokens are never issued
	spacing time.Duration // of the slots, as last reported
	part    int           // of the slots that may be reserved ahead

	ordered bool  // an order is under way
	again   int64 // when the next order may go out
	free    int64 // no unreserved slot comes before, as far as is known
	refused bool  // the last order brought nothing
	failed  int   // orders that failed since the last answer

	// asked: TryAcquire was refused, so that one slot is wanted although nobody waits.
	asked atomic.Bool
	// look is when a TryAcquire that found nothing should look under the lock: a slot comes without a waiter, or none has been asked for.
	look atomic.Int64
}

// issuing reports whether tokens are issued at present. The lock is held.
func (t *rateLimiter) issuing() bool { return t.bucket.Law().Lease.Issuing }

// beginIssue finds out whether tokens of this limit can be issued.
func (t *rateLimiter) beginIssue() {
	if spacing := t.limit.spacing(); spacing > 0 {
		t.issue.from, _ = t.sharer.(sharing.Pool)
		t.issue.spacing = spacing
	}
	t.issue.look.Store(never)
}

// releaseDue updates the bucket with tokens issued by now. Nothing is granted meanwhile: a concurrent TryAcquire looks again. The lock is held.
func (t *rateLimiter) releaseDue(now int64) {
	d := &t.issue
	d.Spend(t.bucket.WholeTokens(now))
	if !d.Stirs(now) {
		return
	}
	t.bucket.Shut(0)
	t.bucket.Fence()
	gained := d.Turn(now, t.bucket.WholeTokens(now), max(1, t.queue.Tokens))
	t.bucket.Deposit(t.bucket.Units(gained))
	t.bucket.Trim(now, t.bucket.Units(len(d.Ripe)))
	if gained > 0 {
		d.asked.Store(false)
	}
	t.publish()
}

// issuedLaw returns the segment for draws without a lock while nobody waits: the token at hand, until it is void. The lock is held.
func (t *rateLimiter) issuedLaw() *bucket.Segment {
	s := &bucket.Segment{Behind: t.bucket.Law()}
	if n := len(t.issue.Ripe); n > 0 {
		*s = *t.bucket.Law()
		s.Until = min(s.Until, t.issue.Ripe[0].Until)
	}
	return s
}

// takeIssued looks once more, under the lock, for n tokens that were not found without it: a slot may have come unnoticed. If not, it asks
// for one. It draws only if draw says so.
func (t *rateLimiter) takeIssued(n int, now int64, draw bool) (Permit, bool) {
	if now < t.issue.look.Load() {
		return Permit{}, false
	}
	t.gate.Lock()
	defer t.gate.Unlock()
	if !t.issuing() {
		return Permit{}, false
	}
	now = t.gate.Now()
	t.releaseDue(now)
	if draw {
		if pos, ok := t.bucket.Draw(t.bucket.Units(n), now); ok {
			return Permit{n: n, pos: pos, by: t.cell(pos)}, true
		}
	}
	if n == 1 && (draw || t.bucket.Level(now) < t.bucket.Units(1)) { // more than one is never at hand
		t.issue.asked.Store(true)
		t.arm(now)
	}
	return Permit{}, false
}

// looksAgain reports whether a draw that found nothing without a lock may find n tokens under it, because others wait, or a slot has come.
func (t *rateLimiter) looksAgain(n int, now int64) bool {
	switch s := t.bucket.Current(); {
	case s.Behind == nil && t.issue.from == nil, n > t.bucket.Largest, now < s.Paused, t.gate.Closed.Load():
		return false
	}
	if t.issue.from != nil {
		t.takeIssued(n, now, false)
	}
	return true
}

// ask notes that a draw of n tokens was refused without waiting, so that one slot is reserved.
func (t *rateLimiter) ask(n int) {
	if n == 1 && t.issue.from != nil && !t.issue.asked.Swap(true) {
		t.gate.AfterFunc(0, t.onTimer)
	}
}

// lacking returns how many more slots are needed: for waiting callers, for debt, and one for draws that do not wait. Below 0 it is the
// surplus. The lock is held.
func (t *rateLimiter) lacking(now int64) int {
	least := 0
	if t.issue.asked.Load() {
		least = 1
	}
	collected := int(t.queue.Collected >> t.bucket.Shift)
	return max(t.queue.Tokens, least) - collected - t.bucket.WholeTokens(now) - len(t.issue.Pending)
}

// order asks for the lacking slots, or gives back those that nobody waits for any more. It does nothing while an order is under way or
// before it is time. The lock is held.
func (t *rateLimiter) order(now int64) {
	d := &t.issue
	if !t.issuing() || d.ordered || t.gate.Closed.Load() || !t.bucket.Law().Valid(now) {
		return
	}
	o := sharing.Order{Held: len(d.Pending), Spacing: t.limit.spacing(), Ahead: t.limit.MaxReserved}
	switch n := t.lacking(now); {
	case n > 0 && now >= d.again:
		if o.Count = min(n, maxOrder, max(d.part, 1)-len(d.Pending)); o.Count <= 0 {
			return
		}
	case n < 0:
		if o.Return, o.Unused = d.Withdraw(-n); o.Return == 0 {
			return
		}
	default:
		return
	}
	d.ordered = true
	d.from.Reserve(o, func(s sharing.Slots, err error) { t.issued(now, o, s, err) })
}

// issued books the result of an order that went out at sent.
func (t *rateLimiter) issued(sent int64, o sharing.Order, s sharing.Slots, err error) {
	t.gate.Lock()
	defer t.gate.Unlock()
	d := &t.issue
	d.ordered = false
	if !t.issuing() || t.gate.Closed.Load() {
		return
	}
	now := t.gate.Now()
	if s.Spacing > 0 {
		d.spacing = s.Spacing
	}
	d.again = sent + int64(s.Again)
	if err == nil {
		d.part, d.free = s.Part, sent+int64(s.Next)
	}
	switch {
	case err != nil:
		d.failed++
		d.again = max(d.again, now+int64(time.Millisecond))
	case s.Count > 0:
		d.failed, d.refused = 0, false
		d.Add(sent, now, s)
	case o.Count > 0:
		d.failed, d.refused = 0, true
	default:
		d.failed = 0
		d.Rename(o.Return, s.Last)
	}
	t.releaseDue(now)
	t.retime(now)
	t.serve(now)
}

// dueIssued is due for issued tokens. Unreserved slots come no earlier than this, nor in a freeze, and later if other processors reserve
// first. The lock is held.
func (t *rateLimiter) dueIssued(now int64, n int) time.Duration {
	d := &t.issue
	missing := t.bucket.Units(min(n, bucket.MaxUnits>>t.bucket.Shift)) - t.bucket.Level(now) - t.queue.Collected
	if missing <= 0 {
		return 0
	}
	k := int((missing-1)>>t.bucket.Shift) + 1
	if k <= len(d.Pending) {
		return time.Duration(max(d.Pending[k-1].At-now, 1))
	}
	k -= len(d.Pending)
	next := max(d.free, now+int64(t.thaw(now)))
	if last := len(d.Pending) - 1; last >= 0 {
		next = max(next, d.Pending[last].At+int64(d.spacing))
	}
	wait := float64(next-now) + float64(k-1)*float64(d.spacing)
	return time.Duration(min(max(wait, 1), never/2))
}

// armIssue sets the timer for the next event: a slot comes, the token at hand is void while callers wait, or an order is due. The lock is
// held.
func (t *rateLimiter) armIssue(now int64) {
	d := &t.issue
	look := int64(never)
	switch {
	case !t.queue.Empty():
	case !d.asked.Load():
		look = 0
	case len(d.Pending) > 0:
		look = d.Pending[0].At
	}
	d.look.Store(look)
	next := int64(never)
	if len(d.Pending) > 0 {
		next = d.Pending[0].At
	}
	if len(d.Ripe) > 0 && !t.queue.Empty() {
		next = min(next, d.Ripe[0].Until)
	}
	if !d.ordered && t.bucket.Law().Valid(now) && t.lacking(now) > 0 && len(d.Pending) < max(d.part, 1) {
		next = min(next, d.again)
	}
	if next == never {
		t.timer.Stop()
		return
	}
	t.timer.Reset(time.Duration(max(next-now, 0)))
}

// issuedState is the type of Status.Issued.
type issuedState = struct {
	Issuing  bool
	Spacing  time.Duration
	Next     time.Duration
	Reserved int
}

// issuedStatus returns the state of issued tokens. The lock is held.
func (t *rateLimiter) issuedStatus(now int64) issuedState {
	return issuedState{Issuing: true, Spacing: t.issue.spacing, Next: t.dueIssued(now, 1), Reserved: len(t.issue.Pending)}
}

// issueReason says what holds draws back while tokens are issued. The lock is held.
func (t *rateLimiter) issueReason(now int64) Reason {
	switch {
	case t.thaw(now) > 0:
		return ReasonFrozen
	case t.issue.failed > 0:
		return ReasonStoreLost
	case t.issue.refused:
		return ReasonSlotsTaken
	case t.bucket.Law().Lease.Adapted:
		return ReasonAdaptive
	default:
		return ReasonLimit
	}
}
