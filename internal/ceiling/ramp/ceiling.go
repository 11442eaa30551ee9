package ramp

// A Ceiling is how many tokens per period the pool may use, as a function of time until the next step: From until Since, then linearly to
// To at Until, then To. Both are at least Min and at most Max of the Config.
type Ceiling struct {
	// Since and Until are logical times in microseconds.
	Since, Until int64
	// From and To are tokens per Per.
	From, To float64
}

// At returns the ceiling at a logical time in microseconds, in tokens per Per.
func (c Ceiling) At(t int64) float64 {
	switch {
	case t <= c.Since:
		return c.From
	case t >= c.Until:
		return c.To
	}
	at := c.From + (c.To-c.From)*(float64(t-c.Since)/float64(c.Until-c.Since))
	return max(min(c.From, c.To), min(at, max(c.From, c.To)))
}

// Ceiling returns the ceiling of a state that Next of this Config has returned: every processor with the state can compute it.
func (c Config) Ceiling(s State) Ceiling {
	if c.Mode == Scheduled {
		return Ceiling{s.At, s.At + s.Ramp - s.To, s.tokens(s.To), s.tokens(s.Ramp)}
	}
	return Ceiling{s.Second, s.Second + second, s.tokens(s.From), s.tokens(s.To)}
}

// Renew returns the state with which the pool begins at now, after a silence in microseconds: from Min, or from the last position with
// ResumedRampUp. The pool should always learn of it.
func (c Config) Renew(s State, now, silence int64) (next State, due bool) {
	next, _ = c.Next(s, Step{Now: now, Empty: true, Silence: silence})
	return next, true
}

// Rests reports whether time alone changes nothing: the ramp has Risen.
func (c Config) Rests(s State) bool { return c.Risen(s) }

// Risen reports whether the ramp has reached Max for good: no step of this Config can change the ceiling of the state any more, unless the
// pool starts again.
func (c Config) Risen(s State) bool {
	return c.Mode != GoBackN && s.known() && s.sameScale(c.scale()) && s.From == s.Ramp && s.To == s.Ramp
}
