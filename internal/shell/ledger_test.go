package shell

import (
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/proof"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// A grant is the tokens of one permit, at the time at which they were granted.
type grant struct {
	at      time.Duration
	process int32
	n       int32
	net     int32 // less what was given back
}

// windows are the lengths of the windows that are judged.
var windows = [...]time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute}

// A bound is what a pool may use in a window: G1.
type bound struct {
	perSecond float64
	extra     float64 // burst, and one max where tokens are given back
	draw      float64 // the largest draw
}

// allowed is what processors may use together in a window of length w.
func (b bound) allowed(w time.Duration, processors int) float64 {
	return b.perSecond*w.Seconds() + b.extra + float64(processors)*b.draw
}

// worst returns the window of length w that is worst for the bound, and its end.
// grants are in the order of time.
func (b bound) worst(grants []grant, w time.Duration) (worst proof.Window, end time.Duration) {
	worst.Length = w
	sum, from, distinct := 0, 0, 0
	counts := map[int32]int{}
	for i, g := range grants {
		sum += int(g.net)
		if counts[g.process]++; counts[g.process] == 1 {
			distinct++
		}
		for grants[from].at <= g.at-w {
			sum -= int(grants[from].net)
			if counts[grants[from].process]--; counts[grants[from].process] == 0 {
				distinct--
			}
			from++
		}
		if i+1 < len(grants) && grants[i+1].at == g.at {
			continue // the window ends with the instant
		}
		if allowed := b.allowed(w, distinct); float64(sum)/allowed > worst.Worst {
			worst.Worst, worst.Tokens, worst.Allowed, end = float64(sum)/allowed, float64(sum), allowed, g.at
		}
	}
	return worst, end
}

// ledger returns all grants of the run in the order of time, and the largest.
func (w *world) ledger() (grants []grant, largest int) {
	for _, p := range w.all {
		grants = append(grants, p.grants...)
	}
	for _, g := range grants {
		largest = max(largest, int(g.n))
	}
	slices.SortFunc(grants, func(a, b grant) int { return int(a.at - b.at) })
	return grants, largest
}

// judgeRate judges every window of the run.
func (w *world) judgeRate(res *result) {
	grants, largest := w.ledger()
	for _, g := range grants {
		res.granted += uint64(g.n)
		if g.at <= w.calmAt {
			res.underFaults += uint64(g.n)
		}
	}
	res.grants = uint64(len(grants))
	if !w.promised() {
		return
	}
	b := bound{perSecond: w.plan.perSecond(), extra: w.plan.burst(), draw: float64(largest)}
	if w.plan.giveBack {
		b.extra += float64(w.maxCost())
	}
	if w.issuing {
		// Slots keep to the store's clock, and calls to their slots within a validity.
		late := wire.Validity(0)
		if w.faults[faultStep] > 0 {
			late += wire.Clamp(w.plan.longest)
		}
		b.perSecond *= max(1, w.plan.storeRate)
		b.extra += b.perSecond*late.Seconds() + 1
	}
	for i, length := range windows {
		worst, end := b.worst(grants, length)
		res.windows[i] = worst
		if worst.Worst > 1 {
			w.violatef(breachRate, "%g tokens in the %v before %v, allowed: %g (%g per second, largest draw %d)",
				worst.Tokens, length, end, worst.Allowed, b.perSecond, largest)
		}
	}
}
