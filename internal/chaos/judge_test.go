//go:build numathrottle_faults

package chaos

import (
	"math"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/proof"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// windowLengths are the windows in which calls are counted.
var windowLengths = []time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second}

// A bound is what a pool is allowed.
type bound struct {
	Max, Burst, Processors int
	// Strict: calls have slots, and are late by a validity at most.
	Strict bool
	// Interval is the time between two syncs where Max is the total of a tag, which is drawn ahead. 0: it is not.
	Interval time.Duration
	// Hard: any second holds Max at most.
	Hard bool
}

// allowed is how many calls any window of a length may hold.
func (b bound) allowed(window time.Duration) float64 {
	if b.Strict {
		return float64(b.Max)*(window+wire.Validity(time.Second/time.Duration(b.Max))).Seconds() + 1
	}
	if b.Hard {
		return float64(b.Max) * math.Ceil(window.Seconds())
	}
	if b.Interval > 0 { // what one sync has drawn is good for two intervals, by clocks that may run apart
		return float64(b.Max)*(window.Seconds()+b.Interval.Seconds()*(2*1.0833+1)) + float64(b.Burst) + 1
	}
	return float64(b.Max)*window.Seconds() + float64(b.Burst) + float64(b.Processors)
}

// lateStamp is by how much the stamps of a hard limit may be wrong: each is taken after the grant. Its windows
// are so much shorter.
const lateStamp = 30 * time.Millisecond

// windows returns the worst window of each length. The stamps are in order.
func (b bound) windows(stamps []time.Duration) []proof.Window {
	worst := make([]proof.Window, len(windowLengths))
	for i, length := range windowLengths {
		looked := length
		if b.Hard {
			looked -= lateStamp
		}
		calls, allowed := float64(fullest(stamps, looked)), b.allowed(length)
		worst[i] = proof.Window{Length: length, Worst: calls / allowed, Tokens: calls, Allowed: allowed}
	}
	return worst
}

// fullest returns how many of the stamps, which are in order, the fullest window
// of a length holds, both ends included.
func fullest(stamps []time.Duration, length time.Duration) int {
	most, first := 0, 0
	for i, s := range stamps {
		for s-stamps[first] > length {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// nearest returns by how much stamps, which are in order, come nearer to one another than
// slots at a spacing do: no two stamps are n apart in their order and further than that
// below n spacings apart in time.
func nearest(stamps []time.Duration, spacing time.Duration) (worst time.Duration) {
	latest := time.Duration(math.MinInt64) // of all so far, behind a slot in each place
	for i, s := range stamps {
		behind := s - time.Duration(i)*spacing
		latest = max(latest, behind)
		worst = max(worst, latest-behind)
	}
	return worst
}

const (
	// full is the part of the limit that counts as all of it. fullStrict is the same where
	// a second holds so few calls that one more or less is a large part, fullHard where the
	// workers rest now and then and the limit costs a part of itself, and fullSlots where calls last longer on a busy machine.
	full       = 0.95
	fullStrict = 0.8
	fullHard   = 0.4
	fullSlots  = 0.4
	// recoveryStep is how finely recovery is looked for.
	recoveryStep = 10 * time.Millisecond
)

// recovered returns the time from a moment to the first second of two in a row
// that hold at least need stamps each, looking no further than until. The stamps
// are in order.
func recovered(stamps []time.Duration, from, until time.Duration, need float64) (time.Duration, bool) {
	for begin := from; begin+2*time.Second <= until; begin += recoveryStep {
		if float64(between(stamps, begin, begin+time.Second)) >= need &&
			float64(between(stamps, begin+time.Second, begin+2*time.Second)) >= need {
			return begin - from, true
		}
	}
	return until - from, false
}

// between counts the stamps in [from, to). They are in order.
func between(stamps []time.Duration, from, to time.Duration) int {
	first, _ := slices.BinarySearch(stamps, from)
	last, _ := slices.BinarySearch(stamps, to)
	return last - first
}
