package ramp

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling/state"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A State is the state of a ramp in a pool's record. The zero State means that nothing is known. Every field is an integer below 2^53.
//
// The position of the ramp is given in microseconds of it, not in tokens: 0 is Min, and Ramp is Max. A second with reason to rise adds a
// second. So no fraction of a token is ever rounded, and no step multiplies or divides tokens.
type State struct { //nolint:recvcheck // a list of fields points into a State
	// At is the logical time of the last step, and Second the start of the second that is not judged yet, in microseconds.
	At, Second int64
	// From and To are the positions of the ramp at Second, and one second later.
	From, To int64
	// Base is the position in the last second with traffic (its To), and Missed counts the seconds since.
	Base, Missed int64
	// Used and Offered are the pool's use and its possible use since Second, in 1e-9 of the limit, times milliseconds.
	Used, Offered int64
	// Min and Max, in tokens per Per, and Per and Ramp, in microseconds, come from the Config that made the state: without them From and To
	// are meaningless.
	Min, Max, Per, Ramp int64
}

const (
	// Whole is the limit's Max as a rate, or as a share.
	Whole = limit.WholeShare

	second    = 1_000_000 // microseconds
	maxMicros = state.MaxMicros
	maxMissed = 1_000_000_000
	maxFlow   = 10 * Whole
	maxWeight = maxFlow * 1_000 // of one second
)

// known reports whether the state is more than the zero State.
func (s State) known() bool { return s.Max > 0 }

// Time returns the logical time of the last step, in microseconds.
func (s State) Time() int64 { return s.At }

// progress returns the position of the ramp at logical time t, which is not before Second.
func (s State) progress(t int64) int64 {
	passed := min(t-s.Second, second)
	if s.To >= s.From {
		return s.From + (s.To-s.From)*passed/second
	}
	return s.From - (s.From-s.To)*passed/second
}

// tokens returns the ceiling in tokens per Per at a progress. Rounding must not lift it
// above Max.
func (s State) tokens(progress int64) float64 {
	return min(float64(s.Min)+float64(s.Max-s.Min)*float64(progress)/float64(s.Ramp), float64(s.Max))
}

// Standing returns the ceiling at the last step, in tokens per per; 0 for the zero State.
func (s State) Standing() (tokens float64, per time.Duration) {
	if !s.known() {
		return 0, 0
	}
	return s.tokens(s.progress(s.At)), time.Duration(s.Per) * time.Microsecond
}

// Resume returns the state with the ramp standing still at its position of the last step, as that of a second that begins now.
func (s State) Resume(now int64) State { return s.hold(s.progress(s.At), now) }

// hold returns the state with the ramp standing still at a progress since a time.
func (s State) hold(progress, at int64) State {
	return State{
		At: at, Second: at, From: progress, To: progress, Base: progress,
		Min: s.Min, Max: s.Max, Per: s.Per, Ramp: s.Ramp,
	}
}

// Fields returns the fields in the order of their text form.
func (s *State) Fields() []state.Field {
	return []state.Field{
		{Name: "at", Value: &s.At, Low: 0, High: maxMicros},
		{Name: "second", Value: &s.Second, Low: max(0, s.At-second+1), High: s.At},
		{Name: "from", Value: &s.From, Low: 0, High: s.Ramp},
		{Name: "to", Value: &s.To, Low: max(0, s.From-second), High: min(s.From+second, s.Ramp)},
		{Name: "base", Value: &s.Base, Low: 0, High: s.Ramp},
		{Name: "missed", Value: &s.Missed, Low: 0, High: maxMissed},
		{Name: "used", Value: &s.Used, Low: 0, High: maxWeight},
		{Name: "offered", Value: &s.Offered, Low: 0, High: maxWeight},
		{Name: "min", Value: &s.Min, Low: 1, High: s.Max},
		{Name: "max", Value: &s.Max, Low: 1, High: maxTokens},
		{Name: "per", Value: &s.Per, Low: minPer.Microseconds(), High: maxPer.Microseconds()},
		{Name: "ramp", Value: &s.Ramp, Low: minDuration.Microseconds(), High: maxDuration.Microseconds()},
	}
}
