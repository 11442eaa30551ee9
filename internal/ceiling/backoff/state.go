package backoff

import "github.com/numaproj-contrib/numathrottle/internal/statecodec"

// A State is the stored state of a pool. The zero State means that nothing was ever refused.
type State struct {
	// At is the time of the last step.
	At int64
	// Generation counts the cuts. Cut is the time of the last one, and From the end of its lag.
	Generation, Cut, From int64
	// Low is the ceiling after the cut, and Good the rate to which it recovers, both in 1e-9 of the limit. Both are Whole while the ceiling
	// is free.
	Low, Good int64
	// Climbed is how long the ceiling has risen since, at At.
	Climbed int64
	// Still is 1 while the ceiling does not rise because it does not limit callers; else 0.
	Still int64
	// Max and Per (in microseconds) are the limit that Low and Good refer to.
	Max, Per int64
}

const (
	maxFields = 10
	maxText   = maxFields*(16+1) - 1 // 2^53 has 16 digits
)

// known reports whether the state is more than the zero State.
func (s State) known() bool { return s.Max > 0 }

// Time returns the time of the last step, in microseconds.
func (s State) Time() int64 { return s.At }

// Free reports whether the ceiling is the configured limit: it does not hold callers back, and no step changes it unless calls are refused.
func (s State) Free() bool { return !s.known() || s.Low == Whole }

// Standing returns the ceiling at the last step as a part of the limit: 0 to 1.
func (s State) Standing() float64 {
	if s.Free() {
		return 1
	}
	return min(s.rate(s.Climbed)/Whole, 1)
}

// Counts reports whether calls granted at t count: the lag of the last cut is over.
func (s State) Counts(t int64) bool { return t >= s.From }

// Resume returns the state with the same ceiling at now of another clock, without the time of the last cut.
func (s State) Resume(now int64) State {
	if s.known() {
		now = min(max(now, 0), maxMicros)
		s.At, s.Cut, s.From = now, now, now
	}
	return s
}

// Renew returns the state with which the pool begins at now: its ceiling is free. The length of the pool's silence does not matter. due: it
// was not free before.
func (c Config) Renew(s State, now, _ int64) (next State, due bool) {
	due = !s.Free()
	if s.known() {
		s = s.Resume(now)
		s.Low, s.Good, s.Climbed, s.Still = Whole, Whole, 0, 0
	}
	return s, due
}

// Rests reports whether time alone changes nothing: the ceiling is free.
func (c Config) Rests(s State) bool { return s.Free() }

// fieldsOf returns the fields in the order of their text form.
func fieldsOf(s *State) []*int64 {
	return []*int64{&s.At, &s.Generation, &s.Cut, &s.From, &s.Low, &s.Good, &s.Climbed, &s.Still, &s.Max, &s.Per}
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
	if err := statecodec.Parse("backoff", text, maxText, fieldsOf(&s)); err != nil {
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
	c := statecodec.Check{Owner: "backoff"}
	c.Within("max", s.Max, 1, maxTokens)
	c.Within("per", s.Per, minPer.Microseconds(), maxPer.Microseconds())
	c.Within("at", s.At, 0, maxMicros)
	c.Within("generation", s.Generation, 0, maxGeneration)
	c.Within("cut", s.Cut, 0, s.At)
	c.Within("from", s.From, s.Cut, min(s.Cut+maxLag, maxMicros))
	c.Within("low", s.Low, 1, Whole)
	c.Within("good", s.Good, s.Low, Whole)
	c.Within("climbed", s.Climbed, 0, maxClimbed)
	c.Within("still", s.Still, 0, 1)
	return c.Err()
}
