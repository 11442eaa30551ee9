package gate

import (
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/limit"
)

// WaitStats is how much callers waited at a limiter for one reason, in all since it
// was made.
type WaitStats struct {
	Reason limit.Reason
	// Waits counts the calls that had to wait, by the reason when they began.
	Waits int64
	// Refusals counts the calls that failed or were refused. A call that waited until its deadline
	// counts in both; one whose caller cancelled it was not refused.
	Refusals int64
	// Time is the time during which at least one caller waited, by the reason at
	// that moment for the first of them. External waits come after all others.
	Time time.Duration
}

// A WaitLog counts waits and refusals by reason. CountWait and CountRefusal may be called at any
// time; the rest is guarded by the limiter's lock.
type WaitLog struct {
	waits, refusals [limit.ReasonCount]atomic.Int64

	spent   [limit.ReasonCount]int64 // nanoseconds
	waiting bool
	since   int64 // what came before is in spent
	outlook Outlook
	// External is how many calls are held back before they draw, by whoever draws for them.
	External int
}

// CountWait counts a wait. It may be called at any time.
func (w *WaitLog) CountWait(r limit.Reason) { w.waits[r.Index()].Add(1) }

// CountRefusal counts a refusal. It may be called at any time.
func (w *WaitLog) CountRefusal(r limit.Reason) { w.refusals[r.Index()].Add(1) }

// Turn books the time until now, and goes on with what is true from now on.
func (w *WaitLog) Turn(now int64, waiting bool, o Outlook) {
	w.book(now)
	w.waiting, w.since, w.outlook = waiting, now, o
}

// Idle is Turn while nobody waits in the queue.
func (w *WaitLog) Idle(now int64) { w.Turn(now, w.External > 0, Outlook{Paused: limit.Never}) }

// book books the time until now. The reason may have changed meanwhile by the clock
// alone.
func (w *WaitLog) book(now int64) {
	for w.waiting && w.since < now {
		r, until := w.outlook.At(w.since)
		until = min(until, now)
		w.spent[r.Index()] += until - w.since
		w.since = until
	}
}

// List returns what was counted until now, without the reasons that never held.
func (w *WaitLog) List(now int64) []WaitStats {
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

// An Outlook is why a draw would be held back from now on, as long as nothing
// happens but that time passes: for a pause, for one reason while the share is in force, then
// until the store's freeze ends, then for another. Times are nanoseconds.
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
		return o.After, limit.Never
	}
}

// OutlookOf is the outlook under a lease, in nanoseconds since base: during is the reason
// until the lease ends. The lease comes by its address, for a copy would deepen the stack of every caller that waits.
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
