package ceiling

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling/backoff"
	"github.com/numaproj-contrib/numathrottle/internal/ceiling/ramp"
	"github.com/numaproj-contrib/numathrottle/internal/ceiling/state"
)

// Settle moves the states into the current epoch of the pool, and onto its clock.
func (l *Law) Settle(p state.Present) {
	if l.Ramps && !l.Unsure {
		l.Ramp.Settle(l.RampConfig(), p)
	}
	if l.Adapts {
		l.Backoff.Settle(l.BackoffConfig(), p)
	}
}

// Changed reports whether a state differs from the record, and should be proposed at once.
func (l *Law) Changed() bool {
	return l.Ramps && l.Ramp.Changed && !l.Ramp.Unreadable || l.Adapts && l.Backoff.Changed && !l.Backoff.Unreadable
}

// NextRamp returns the state of the ramp after a step. due: it should be proposed; a pool takes about one step a second.
func (l *Law) NextRamp(s ramp.Step) (next state.Shared[ramp.State], due bool) {
	if !l.Ramps || l.Ramp.Unreadable || l.Unsure || l.Ramp.State == (ramp.State{}) {
		return l.Ramp, false
	}
	c := l.RampConfig()
	if !l.Ramp.Changed && !l.Ramp.Aged(c, s.Now) {
		return l.Ramp, false
	}
	next.State, _ = c.Next(l.Ramp.State, s)
	next.Epoch = l.Ramp.Epoch
	return next, true
}

// NextBackoff returns the state of the backoff after a step. due: it should be proposed, at once if the reports require a cut.
func (l *Law) NextBackoff(s backoff.Step) (next state.Shared[backoff.State], due bool) {
	if !l.Adapts || l.Backoff.Unreadable {
		return l.Backoff, false
	}
	c := l.BackoffConfig()
	if !l.Backoff.Changed && !l.CutDue(s.Now, s.Reports) && !l.Backoff.Aged(c, s.Now) {
		return l.Backoff, false
	}
	return state.Shared[backoff.State]{State: c.Next(l.Backoff.State, s), Epoch: l.Backoff.Epoch}, true
}

// CutDue reports whether reports require a cut at a time.
func (l *Law) CutDue(t int64, reports []backoff.Report) bool {
	return l.Adapts && !l.Backoff.Unreadable && l.Backoff.State.Due(t, reports, l.Others+1)
}

// Drift advances the backoff without the pool. There are no reports while the store is lost, so the ceiling only rises.
func (l *Law) Drift(s backoff.Step) {
	if c := l.BackoffConfig(); l.Adapts && !l.Backoff.Unreadable && l.Backoff.Aged(c, s.Now) {
		l.Backoff.State = c.Next(l.Backoff.State, s)
	}
}

// Alone advances the ramp of a single process to a time, and returns its ceiling as At does.
func (l *Law) Alone(s ramp.Step, until int64) float64 {
	if l.Ramps {
		l.Ramp.State, _ = l.RampConfig().Next(l.Ramp.State, s)
	}
	return l.At(s.Now, until)
}

// Moves reports whether the ramp can still change the ceiling.
func (l *Law) Moves() bool { return l.Ramps && !l.RampConfig().Risen(l.Ramp.State) }

// Lag returns the time until all callers with refused calls know of a cut and its effect is visible. It is three times a processor's delay
// before an urgent request. interval is the time between two syncs.
func Lag(interval time.Duration) time.Duration { return 3 * interval / 10 }
