package bucket

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A Demand remembers the running totals at the last reports, so that a demand can be computed over a window of any length.
type Demand struct {
	samples []Totals
	// Need is, with a hard limit, the largest draw that lacked a share since the processor
	// was idle, in tokens.
	Need int64
}

// Totals are running totals at one moment; units, except where said. Refusals cost nothing, so their total may be far too large for an
// integer.
type Totals struct {
	At      int64   // nanoseconds since base
	Used    float64 // granted less given back
	Refused float64
	Earned  float64
}

// since returns the totals at the newest sample that is at least span old, or at the oldest there is. With forget it drops older samples.
func (d *Demand) since(now int64, span time.Duration, forget bool) (Totals, bool) {
	if len(d.samples) == 0 {
		return Totals{}, false
	}
	i := 0
	for i+1 < len(d.samples) && now-d.samples[i+1].At >= int64(span) {
		i++
	}
	t := d.samples[i]
	if forget {
		d.samples = d.samples[i:]
	}
	return t, true
}

// A Backlog is a processor's work ahead, in units.
type Backlog struct {
	Waiting float64
	Debt    float64
	Away    float64 // expected back within the window, here or at another processor
	ShortAt int64   // when a caller was refused or made to wait last
}

// While callers are away, the platform decides which processor gets them, and for minutes some get more than others. Then a processor
// reports the demand of awayWindows windows, long enough to tell this from chance. It reports only awayPart of it. If the reports added up
// to more than the limit, max-min fairness would take from the busiest processors, and the others would not use it.
const (
	awayWindows = 5
	awayPart    = 0.9
)

// Report returns the fraction of the limit in force, in 1e-9, that a processor would use if it could. It counts tokens used, refused,
// waited for and owed, over the window; see Holder. A processor that ran short in the last half of the window and used most of its earnings
// reports the whole limit. Its real demand is not known, and a share that grew by the tokens lacking would grow too slowly. An idle
// processor reports 0.
//
// While callers are away, it reports the demand of a longer time, or if that is none, the units expected back.
func (d *Demand) Report(now Totals, b Backlog, window time.Duration, whole float64) int64 {
	half, ok := d.since(now.At, window*2/5, false) // reports are jittered by a tenth
	span := window
	if b.Away > 0 {
		span *= awayWindows
	}
	from, _ := d.since(now.At, span, true)
	d.samples = append(d.samples, now)
	if !ok {
		if b.Waiting > 0 || b.ShortAt > now.At-int64(window/2) {
			return limit.WholeShare
		}
		return 0
	}
	lately := now.asked(half) + b.Waiting
	switch idle := lately <= 0 && b.Debt == 0; {
	case idle: // for half the window: others can have it all, but for what is expected back
		return fraction(b.Away, float64(window), whole)
	case b.Away > 0:
		return fraction(now.asked(from)*awayPart+b.Waiting+b.Debt, float64(now.At-from.At), whole)
	}
	if (b.Waiting > 0 || b.ShortAt >= half.At) && lately*5 >= (now.Earned-half.Earned)*4 {
		return limit.WholeShare
	}
	return fraction(now.asked(from)+b.Waiting+b.Debt, float64(now.At-from.At), whole)
}

// asked returns the tokens used and refused since.
func (t *Totals) asked(since Totals) float64 { return t.Used - since.Used + t.Refused - since.Refused }

// fraction returns a demand of wanted units in span nanoseconds as a part of the whole limit, in 1e-9.
func fraction(wanted, span, whole float64) int64 {
	return int64(max(0, min(wanted/(max(span, float64(time.Millisecond))*whole), 1)) * float64(limit.WholeShare))
}

// Reports returns how many reports are remembered.
func (d *Demand) Reports() int { return len(d.samples) }
