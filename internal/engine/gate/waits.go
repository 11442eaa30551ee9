package gate

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// WaitStats counts callers' waits at a limiter for one reason since it was made.
type WaitStats struct {
	Reason limit.Reason
	// Waits counts the calls that had to wait, by the reason when they began.
	Waits int64
	// Refusals counts the calls that failed or were refused. A call that waited until its deadline counts in both; a call that its caller
	// cancelled was not refused.
	Refusals int64
	// Time is the time during which at least one caller waited, by the reason at that moment. The reason is that of the first caller in the
	// limiter's queue. If the queue is empty, it is the reason of most callers waiting for a tag (its quota, or the end of its pause).
	// Without any, it is that of external waits. No moment counts for two reasons.
	Time time.Duration
}

// reasonCount is the number of limit.Reasons, which reasons lists.
const reasonCount = 18

var reasons = [reasonCount]limit.Reason(limit.Reasons()) // panics if the numbers differ

// A WaitLog counts waits and refusals by reason, and the time during which calls wait. All methods may be called at any time.
type WaitLog struct {
	waits, refusals [reasonCount]atomic.Int64

	mu       sync.Mutex         // taken last
	spent    [reasonCount]int64 // nanoseconds
	since    int64              // what came before is in spent
	waiting  bool               // somebody stands in the limiter's queue
	began    int64              // when it was empty last
	outlook  Outlook            // of the first of them
	apart    [reasonCount]int   // callers that wait beside the queue, by their reasons
	external int                // calls that are held back before they draw, by the code that draws for them
}

// CountWait counts a wait.
func (w *WaitLog) CountWait(r limit.Reason) { w.waits[r.Index()].Add(1) }

// CountRefusal counts a refusal.
func (w *WaitLog) CountRefusal(r limit.Reason) { w.refusals[r.Index()].Add(1) }

// Refusals returns how many refusals were counted for a reason.
func (w *WaitLog) Refusals(r limit.Reason) int64 { return w.refusals[r.Index()].Load() }

// Turn books the time until now, and records the queue's state from now on.
func (w *WaitLog) Turn(now int64, waiting bool, o Outlook) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.book(now)
	if !w.waiting {
		w.began = now
	}
	w.waiting, w.outlook = waiting, o
}

// Held returns for how long callers have stood in the queue without a break.
func (w *WaitLog) Held(now int64) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.waiting {
		return 0
	}
	return max(now-w.began, 0)
}

// Idle is Turn while nobody waits in the queue.
func (w *WaitLog) Idle(now int64) { w.Turn(now, false, Outlook{}) }

// Apart notes that so many more callers wait beside the queue, for r; fewer when more is negative.
func (w *WaitLog) Apart(now int64, more int, r limit.Reason) { w.shift(now, more, r, "") }

// Shift notes that n callers that wait beside the queue for one reason now wait for another.
func (w *WaitLog) Shift(now int64, n int, from, to limit.Reason) { w.shift(now, -n, from, to) }

func (w *WaitLog) shift(now int64, more int, r, to limit.Reason) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.book(now)
	w.apart[r.Index()] += more
	if to != "" {
		w.apart[to.Index()] -= more
	}
}

// Outside notes that so many more calls are held back before they draw; fewer when more is negative.
func (w *WaitLog) Outside(now int64, more int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.book(now)
	w.external += more
}

// Beside returns how many callers wait beside the queue, including those that are held back before they draw.
func (w *WaitLog) Beside() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.external
	for _, callers := range w.apart {
		n += callers
	}
	return n
}

// book books the time until now. The reason may have changed meanwhile by the clock alone.
func (w *WaitLog) book(now int64) {
	for w.since < now {
		r, until := limit.ReasonPause, now
		switch most, is := w.most(); {
		case w.waiting:
			r, until = w.outlook.At(w.since)
		case is:
			r = most
		case w.external == 0:
			w.since = now
			return
		}
		until = min(until, now)
		w.spent[r.Index()] += until - w.since
		w.since = until
	}
}

// most returns the reason for which most callers wait beside the queue; ok: anybody does.
func (w *WaitLog) most() (r limit.Reason, ok bool) {
	first := -1
	for i, n := range w.apart {
		if n > 0 && (first < 0 || n > w.apart[first]) {
			first = i
		}
	}
	if first < 0 {
		return "", false
	}
	return reasons[first], true
}

// List returns the counts until now, without the reasons that never held.
func (w *WaitLog) List(now int64) []WaitStats {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.book(now)
	var out []WaitStats
	for i, r := range limit.Reasons() {
		b := WaitStats{Reason: r, Waits: w.waits[i].Load(), Refusals: w.refusals[i].Load(), Time: time.Duration(w.spent[i])}
		if b.Waits > 0 || b.Refusals > 0 || b.Time > 0 {
			out = append(out, b)
		}
	}
	return out
}

// An Outlook predicts why a draw will be held back from now on, as long as nothing but time passes. First a pause holds it, then one reason
// while the share is in force, then the store's freeze, then another reason. Times are nanoseconds.
type Outlook struct {
	Paused int64 // until then it is a pause, whatever else
	During limit.Reason
	Until  int64
	Thaw   int64
	After  limit.Reason
}

// At returns the reason at a time, and until when it is the same.
func (o Outlook) At(now int64) (r limit.Reason, until int64) {
	switch {
	case now < o.Paused:
		return limit.ReasonPause, o.Paused
	case now < o.Until:
		return o.During, o.Until
	case now < o.Thaw:
		return limit.ReasonFrozen, o.Thaw
	default:
		return o.After, sharing.Never
	}
}

// OutlookOf returns the outlook under a lease, in nanoseconds since base: during is the reason until the lease ends. The lease comes by its
// address, for a copy would deepen the stack of every waiting caller.
func OutlookOf(l *limit.Lease, base time.Time, during limit.Reason, until int64) Outlook {
	o := Outlook{During: during, Until: until, After: l.Reason}
	if !l.Frozen.IsZero() {
		o.Thaw = int64(l.Frozen.Sub(base))
	}
	switch {
	case o.After != "":
	case l.Share > 0:
		o.After = limit.ReasonStoreLost // the lease ran out
	default:
		o.After = limit.ReasonNoShare
	}
	return o
}
