package fairtags

import (
	"cmp"
	"math"
	"slices"
)

// most is larger than any rate: sums of a million of them can still be told from infinity.
const most = 1e18

// rate turns any number into a rate: from 0 to most.
func rate(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return min(max(x, 0), most)
}

// clean turns any numbers into terms. No total is +Inf, and 0 is a total as any other.
func clean(t Terms) Terms {
	t.Reserved, t.Total, t.Limiting = rate(t.Reserved), rate(t.Total), rate(t.Limiting)
	if t.Weight = rate(t.Weight); t.Weight == 0 {
		t.Weight = 1
	}
	return t
}

// A span takes part in a division: it gets at least lo and at most hi, and between them in proportion to its weight.
type span struct{ lo, hi, weight float64 }

// at returns the span's amount at a level.
func (s span) at(level float64) float64 {
	if math.IsInf(level, 1) {
		return s.hi
	}
	return min(max(level*s.weight, s.lo), s.hi)
}

// level returns the level at which the spans get sum together. If sum is not above their minimums, they get these; if it is enough for all
// their maximums, the level is +Inf.
func level(spans []span, sum float64) float64 {
	type bend struct{ level, slope float64 }
	bends := make([]bend, 0, 2*len(spans))
	got, all := 0.0, 0.0
	for _, s := range spans {
		got += s.lo
		all += s.hi
		if s.hi > s.lo {
			bends = append(bends, bend{level: s.lo / s.weight, slope: s.weight}, bend{level: s.hi / s.weight, slope: -s.weight})
		}
	}
	if sum >= all {
		return math.Inf(1)
	}
	slices.SortFunc(bends, func(a, b bend) int { return cmp.Compare(a.level, b.level) })
	at, slope := 0.0, 0.0
	for _, b := range bends {
		if slope > 0 {
			more := (b.level - at) * slope
			if got+more >= sum {
				break
			}
			got += more
		}
		at = b.level
		slope += b.slope
	}
	if slope > 0 {
		at += (sum - got) / slope
	}
	return at
}
