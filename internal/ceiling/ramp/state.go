package ramp

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/statecodec"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A State is the state of a ramp in a pool's record. The zero State means that nothing is known. Every field is an integer below 2^53,
// exact in a double.
//
// The position of the ramp is given in microseconds of it, not in tokens: 0 is Min, Ramp is Max, and one second with reason to rise adds
// one second. So no fraction of a token is ever rounded, and no step multiplies or divides tokens.
type State struct {
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
	maxMicros = 1<<53 - 1
	maxMissed = 1_000_000_000
	maxFlow   = 10 * Whole
	maxWeight = maxFlow * 1_000      // of one second
	maxFields = 12                   // of a State
	maxText   = maxFields*(16+1) - 1 // 2^53 has 16 digits
)

// known reports whether the state is more than the zero State.
func (s State) known() bool { return s.Max > 0 }

// Time returns the logical time of the last step, in microseconds.
func (s State) Time() int64 { return s.At }

// progress returns the position of the ramp at logical time t, which is not before Second. To and From are at most a second apart, so that
// the product is exact in a double.
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

// fieldsOf returns the fields in the order of their text form.
func fieldsOf(s *State) []*int64 {
	return []*int64{
		&s.At, &s.Second, &s.From, &s.To, &s.Base, &s.Missed, &s.Used, &s.Offered, &s.Min, &s.Max, &s.Per, &s.Ramp,
	}
}

// AppendText appends the state's only text form to b: its fields in order as decimal numbers, separated by blanks. It fails for a State
// that Next cannot return.
func (s State) AppendText(b []byte) ([]byte, error) {
	if err := s.check(); err != nil {
		return b, err
	}
	return statecodec.Append(b, fieldsOf(&s)), nil
}

// ParseState reads what AppendText writes, and nothing else.
func ParseState(text string) (State, error) {
	var s State
	if err := statecodec.Parse("ramp", text, maxText, fieldsOf(&s)); err != nil {
		return State{}, err
	}
	if err := s.check(); err != nil {
		return State{}, err
	}
	return s, nil
}

// check returns an error that names every field that Next cannot have returned.
func (s State) check() error {
	if s == (State{}) {
		return nil
	}
	c := statecodec.Check{Owner: "ramp"}
	c.Within("max", s.Max, 1, maxTokens)
	c.Within("min", s.Min, 1, s.Max)
	c.Within("per", s.Per, minPer.Microseconds(), maxPer.Microseconds())
	c.Within("ramp", s.Ramp, minDuration.Microseconds(), maxDuration.Microseconds())
	c.Within("at", s.At, 0, maxMicros)
	c.Within("second", s.Second, max(0, s.At-second+1), s.At)
	c.Within("from", s.From, 0, s.Ramp)
	c.Within("to", s.To, max(0, s.From-second), min(s.From+second, s.Ramp))
	c.Within("base", s.Base, 0, s.Ramp)
	c.Within("missed", s.Missed, 0, maxMissed)
	c.Within("used", s.Used, 0, maxWeight)
	c.Within("offered", s.Offered, 0, maxWeight)
	return c.Err()
}
