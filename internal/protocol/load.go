package protocol

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// A load stretches the interval between syncs while the store is slow. A slow request, answered
// or not, doubles the interval. A quick answer takes a quarter off, down to the usual interval. So a pool
// settles at a rate that its store can serve. Intervals shrink slowly on purpose: halving them
// at each quick answer would overload the store again.
type load struct {
	factor float64       // of the usual interval; 0: 1
	best   time.Duration // of the quickest answer; 0: there was none
	late   bool          // the newest request was slow, answered or not
	fixed  bool          // intervals are not stretched
	halts  bool          // the pool's clock did not count the time between the last two answers
	slow   int           // slow requests, answered or not, since the interval was as usual
}

// crowd is the pool size from which intervals stretch to half a lease. In a smaller pool two
// steps must be less than a clamp apart, even if the second one is late: the pool's clock
// doesn't count longer gaps. A larger pool has none, unless most of its members are dead;
// then the clock stands still, and intervals are those of a small pool.
const crowd = 16

// longestInterval is the longest interval after stretching.
func (l *load) longestInterval(lease time.Duration, live int) time.Duration {
	usual := wire.Interval(lease, live)
	switch {
	case l.fixed:
		return usual
	case live < crowd, l.halts:
		return max(usual, wire.Clamp(lease)-SyncTimeout(lease))
	}
	return lease / 2
}

// answered records that the pool's clock moved on by counted between the last two answers. Their requests were sent
// apart from each other.
func (l *load) answered(apart, counted, lease time.Duration) {
	switch {
	case counted < apart/2 && apart > wire.Clamp(lease)/2:
		l.halts = true
	case counted > apart*3/4:
		l.halts = false
	}
}

// took records how long a request took until its answer or failure. A request is slow if it
// took longer than the quickest answer so far by a quarter of the sync timeout. So a distant
// store isn't slow.
func (l *load) took(d time.Duration, answered bool, lease time.Duration, live int) {
	d = max(d, 1)
	switch {
	case !answered:
	case l.best == 0 || d < l.best:
		l.best = d
	default: // a store that has moved further away is not slow forever
		l.best = min(l.best+(d-l.best)/256, max(l.best, SyncTimeout(lease)/2))
	}
	l.late = d-l.best > SyncTimeout(lease)/4
	most := float64(l.longestInterval(lease, live)) / float64(wire.Interval(lease, live))
	switch {
	case l.late:
		l.factor = min(2*l.stretch(), most)
		l.slow++
	case answered:
		l.factor = max(min(l.stretch(), most)*3/4, 1)
		if l.factor == 1 {
			l.slow = 0
		}
	}
}

// stretch is the factor of intervals, at least 1.
func (l *load) stretch() float64 { return max(l.factor, 1) }

// stretched is the stretched interval.
func (l *load) stretched(lease time.Duration, live int) time.Duration {
	usual := wire.Interval(lease, live)
	return min(time.Duration(float64(usual)*l.stretch()), l.longestInterval(lease, live))
}

// jitter is the random part of an interval. A twentieth keeps processors out of step. A
// quarter separates processors that a stalled store answered at the same moment.
func (l *load) jitter() float64 {
	if l.stretch() > 1 {
		return 0.25
	}
	return 0.05
}
