package ceiling

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling/backoff"
	"github.com/numaproj-contrib/numathrottle/internal/ceiling/ramp"
)

// Settle brings the states into the present epoch of the pool, and onto its clock.
func (l *Law) Settle(p Present) {
	if l.Ramps && !l.Unsure {
		l.Ramp.settle(l.RampConfig(), p)
	}
	if l.Adapts {
		l.Backoff.settle(l.BackoffConfig(), p)
	}
}

// Changed tells whether a state is not what is on record, and should be proposed at once.
func (l *Law) Changed() bool {
	return l.Ramps && l.Ramp.Changed && !l.Ramp.Unreadable || l.Adapts && l.Backoff.Changed && !l.Backoff.Unreadable
}

// NextRamp returns the state of the ramp after a step. due: it should be proposed; a pool
// makes about one step a second.
func (l *Law) NextRamp(s ramp.Step) (next Shared[ramp.State], due bool) {
	if !l.Ramps || l.Ramp.Unreadable || l.Unsure || l.Ramp.State == (ramp.State{}) {
		return l.Ramp, false
	}
	c := l.RampConfig()
	if !l.Ramp.Changed && !l.Ramp.aged(c, s.Now) {
		return l.Ramp, false
	}
	next.State, _ = c.Next(l.Ramp.State, s)
	next.Epoch = l.Ramp.Epoch
	return next, true
}

// NextBackoff returns the state of the backoff after a step. due: it should be proposed,
// at once when the reports ask for a cut.
func (l *Law) NextBackoff(s backoff.Step) (next Shared[backoff.State], due bool) {
	if !l.Adapts || l.Backoff.Unreadable {
		return l.Backoff, false
	}
	c := l.BackoffConfig()
	if !l.Backoff.Changed && !l.CutDue(s.Now, s.Reports) && !l.Backoff.aged(c, s.Now) {
		return l.Backoff, false
	}
	return Shared[backoff.State]{State: c.Next(l.Backoff.State, s), Epoch: l.Backoff.Epoch}, true
}

// CutDue tells whether reports ask for a cut at a time.
func (l *Law) CutDue(t int64, reports []backoff.Report) bool {
	return l.Adapts && !l.Backoff.Unreadable && l.Backoff.State.Due(t, reports, l.Others+1)
}

// Drift moves the backoff on without the pool: nobody reports while the store is lost, so
// the ceiling only rises.
func (l *Law) Drift(s backoff.Step) {
	if c := l.BackoffConfig(); l.Adapts && !l.Backoff.Unreadable && l.Backoff.aged(c, s.Now) {
		l.Backoff.State = c.Next(l.Backoff.State, s)
	}
}

// Alone moves the ramp of a single process on to a time, and returns its ceiling as At does.
func (l *Law) Alone(s ramp.Step, until int64) float64 {
	if l.Ramps {
		l.Ramp.State, _ = l.RampConfig().Next(l.Ramp.State, s)
	}
	return l.At(s.Now, until)
}

// Moves tells whether the ramp can change the ceiling any more.
func (l *Law) Moves() bool { return l.Ramps && !l.RampConfig().Risen(l.Ramp.State) }

// Lag is how long it takes until a cut is known to all whose calls are refused, and its
// effect can be seen: three times what a processor waits before it asks again at once.
// interval is the time between two syncs.
func Lag(interval time.Duration) time.Duration { return 3 * interval / 10 }
