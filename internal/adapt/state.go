package adapt

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A State is all that a pool keeps. The zero State says that nothing was ever refused.
type State struct {
	// At is the time of the last step.
	At int64
	// Generation counts the cuts. Cut is when the last one was made, and From when its lag is
	// over.
	Generation, Cut, From int64
	// Low is the ceiling after the cut, and Good the rate to which it recovers, both in 1e-9
	// of the limit. Both are Whole while the ceiling is free.
	Low, Good int64
	// Climbed is for how long the ceiling has risen since, at At.
	Climbed int64
	// Still is 1 while the ceiling does not rise, because it is not what holds callers back; else 0.
	Still int64
	// Max and Per (in microseconds) are the limit that Low and Good are parts of.
	Max, Per int64
}

const (
	maxFields = 10
	maxText   = maxFields*(16+1) - 1 // 2^53 has 16 digits
)

// known tells whether the state is more than the zero State.
func (s State) known() bool { return s.Max > 0 }

// Free tells whether the ceiling is the configured limit: nothing holds callers back, and
// no step changes anything unless calls are refused.
func (s State) Free() bool { return !s.known() || s.Low == Whole }

// Counts tells whether calls that are granted at t count: the lag of the last cut is over.
func (s State) Counts(t int64) bool { return t >= s.From }

// Resume returns the state with the same ceiling at now of another clock, from which
// the last cut is forgotten.
func (s State) Resume(now int64) State {
	if s.known() {
		now = min(max(now, 0), maxMicros)
		s.At, s.Cut, s.From = now, now, now
	}
	return s
}

// Renew returns the state at now with a free ceiling, for a pool that begins anew.
func (s State) Renew(now int64) State {
	if s.known() {
		s = s.Resume(now)
		s.Low, s.Good, s.Climbed, s.Still = Whole, Whole, 0, 0
	}
	return s
}

// fieldsOf returns the fields in the order of their text form.
func fieldsOf(s *State) [maxFields]*int64 {
	return [maxFields]*int64{&s.At, &s.Generation, &s.Cut, &s.From, &s.Low, &s.Good, &s.Climbed, &s.Still, &s.Max, &s.Per}
}

// AppendText appends the state's only text form to b: its fields in order as
// decimal numbers with a blank between them. It fails for a State that Next cannot
// have returned.
func (s State) AppendText(b []byte) ([]byte, error) {
	if err := s.check(); err != nil {
		return b, err
	}
	for i, f := range fieldsOf(&s) {
		if i > 0 {
			b = append(b, ' ')
		}
		b = strconv.AppendInt(b, *f, 10)
	}
	return b, nil
}

// ParseState reads what AppendText writes, and nothing else.
func ParseState(text string) (State, error) {
	if len(text) > maxText {
		return State{}, fmt.Errorf("adapt: a state of %d bytes, allowed: at most %d", len(text), maxText)
	}
	var s State
	words := strings.Split(text, " ")
	if len(words) != maxFields {
		return State{}, fmt.Errorf("adapt: a state of %d words, allowed: %d", len(words), maxFields)
	}
	for i, f := range fieldsOf(&s) {
		n, err := strconv.ParseInt(words[i], 10, 64)
		if err != nil || strconv.FormatInt(n, 10) != words[i] {
			return State{}, fmt.Errorf("adapt: word %d of a state is %.40q, allowed: a decimal number", i+1, words[i])
		}
		*f = n
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
	var errs []error
	within := func(field string, value, low, high int64) {
		if value < low || value > high {
			errs = append(errs, fmt.Errorf("adapt: %s of a state is %d, allowed: %d to %d", field, value, low, high))
		}
	}
	within("max", s.Max, 1, maxTokens)
	within("per", s.Per, minPer.Microseconds(), maxPer.Microseconds())
	within("at", s.At, 0, maxMicros)
	within("generation", s.Generation, 0, maxGeneration)
	within("cut", s.Cut, 0, s.At)
	within("from", s.From, s.Cut, min(s.Cut+maxLag, maxMicros))
	within("low", s.Low, 1, Whole)
	within("good", s.Good, s.Low, Whole)
	within("climbed", s.Climbed, 0, maxClimbed)
	within("still", s.Still, 0, 1)
	return errors.Join(errs...)
}
