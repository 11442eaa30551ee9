package consensus

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A load stretches the interval between syncs while the store is slow. A slow answer doubles
// the interval. A quick answer takes a quarter off, down to the usual interval. So a pool
// settles at a rate that its store can serve. Intervals shrink slowly on purpose: halving them
// at each quick answer would overload the store again.
type load struct {
	factor float64       // of the usual interval; 0: 1
	best   time.Duration // of the quickest answer; 0: there was none
	late   bool          // the newest request was slow, answered or not
	slow   int           // slow answers since the interval was as usual
}

// crowd is the pool size from which intervals stretch to half a lease. In a smaller pool they
// stretch to a quarter of a lease: the pool's clock doesn't count longer gaps between two
// steps, and only a larger pool is sure to have none.
const crowd = 16

// longestInterval is what intervals are stretched to at most.
func longestInterval(lease time.Duration, live int) time.Duration {
	if live < crowd {
		return driver.Clamp(lease)
	}
	return lease / 2
}

// took records how long a request took until its answer or failure. A request is slow if it
// took longer than the quickest answer so far by a quarter of the sync timeout. So a distant
// store isn't slow.
func (l *load) took(d time.Duration, answered bool, lease time.Duration, live int) {
	d = max(d, 1)
	if answered && (l.best == 0 || d < l.best) {
		l.best = d
	}
	l.late = d-l.best > SyncTimeout(lease)/4
	most := float64(longestInterval(lease, live)) / float64(driver.Interval(lease, live))
	switch {
	case l.late:
		l.factor = min(2*l.stretch(), most)
		if answered {
			l.slow++
		}
	case answered:
		l.factor = max(min(l.stretch(), most)*3/4, 1)
		if l.factor == 1 {
			l.slow = 0
		}
	}
}

// stretch is what intervals are multiplied by, at least 1.
func (l *load) stretch() float64 { return max(l.factor, 1) }

// stretched is the interval as stretched.
func (l *load) stretched(lease time.Duration, live int) time.Duration {
	usual := driver.Interval(lease, live)
	return max(usual, min(time.Duration(float64(usual)*l.stretch()), longestInterval(lease, live)))
}

// jitter is the random part of an interval. A twentieth keeps processors out of step. A
// quarter separates processors that a stalled store answered at the same moment.
func (l *load) jitter() float64 {
	if l.stretch() > 1 {
		return 0.25
	}
	return 0.05
}
