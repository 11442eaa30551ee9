package fairtags

import (
	"math"
	"time"
)

// The times in which an Average loses all but 1/e of the past: FoundationDB's. The trend takes several times as long as the level, or the
// level would swing far beyond the rate that it follows. Now it does so by less than a fifth.
const (
	levelFolding = 2 * time.Second
	trendFolding = 10 * time.Second
)

// leastCalls is how many calls per second an average cost needs.
const leastCalls = 1

// An Average is the average cost of a tag's calls, for people to look at: quotas are drawn in tokens, so nothing else needs it. The zero
// Average knows of no calls. It is a value: Next returns another one.
type Average struct {
	cost, calls holt
}

// Next returns the average after elapsed, in which calls cost so many tokens together. An elapsed of 0 changes nothing.
func (a Average) Next(elapsed time.Duration, cost, calls float64) Average {
	if elapsed <= 0 {
		return a
	}
	dt := elapsed.Seconds()
	return Average{cost: a.cost.next(dt, rate(cost)/dt), calls: a.calls.next(dt, rate(calls)/dt)}
}

// Calls returns how many calls there are per second.
func (a Average) Calls() float64 { return max(a.calls.level, 0) }

// Cost returns the tokens per call. ok is false when there is less than one call per second, which is too little to tell.
func (a Average) Cost() (cost float64, ok bool) {
	if a.Calls() < leastCalls {
		return 0, false
	}
	return max(a.cost.level, 0) / a.calls.level, true
}

// A holt smooths a rate exponentially, and its trend too, so that it does not lag behind a rate that rises or falls steadily (C. C. Holt,
// 1957).
type holt struct{ level, trend float64 }

func (h holt) next(dt, rate float64) holt {
	level := rate + keep(dt, levelFolding)*(h.level+h.trend*dt-rate)
	slope := (level - h.level) / dt
	return holt{level: level, trend: slope + keep(dt, trendFolding)*(h.trend-slope)}
}

// keep returns the part that is left after dt seconds.
func keep(dt float64, folding time.Duration) float64 { return math.Exp(-dt / folding.Seconds()) }
