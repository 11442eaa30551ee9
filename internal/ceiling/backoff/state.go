package backoff

import "github.com/numaproj-contrib/numathrottle/internal/ceiling/state"

// A State is the stored state of a pool. The zero State means that nothing was ever refused.
type State struct { //nolint:recvcheck // a list of fields points into a State
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

// Fields returns the fields in the order of their text form.
func (s *State) Fields() []state.Field {
	return []state.Field{
		{Name: "at", Value: &s.At, Low: 0, High: maxMicros},
		{Name: "generation", Value: &s.Generation, Low: 0, High: maxGeneration},
		{Name: "cut", Value: &s.Cut, Low: 0, High: s.At},
		{Name: "from", Value: &s.From, Low: s.Cut, High: min(s.Cut+maxLag, maxMicros)},
		{Name: "low", Value: &s.Low, Low: 1, High: Whole},
		{Name: "good", Value: &s.Good, Low: s.Low, High: Whole},
		{Name: "climbed", Value: &s.Climbed, Low: 0, High: maxClimbed},
		{Name: "still", Value: &s.Still, Low: 0, High: 1},
		{Name: "max", Value: &s.Max, Low: 1, High: maxTokens},
		{Name: "per", Value: &s.Per, Low: minPer.Microseconds(), High: maxPer.Microseconds()},
	}
}
