package backoff

// A Report is the service's recent response to one processor's calls, in 1e-9 of the limit.
type Report struct {
	// Generation is that of the State under which the refused calls were granted.
	Generation int64
	// Accepted, Refused (the caller has used too much) and Overloaded (the service has too much to do) are rates. Accepted covers calls of
	// any generation.
	Accepted, Refused, Overloaded int64
}

func (r Report) refused() int64 { return r.Refused + r.Overloaded }

// clamp returns the report with its numbers within bounds, so that their sums do not overflow.
func (r Report) clamp() Report {
	for _, n := range []*int64{&r.Accepted, &r.Refused, &r.Overloaded} {
		*n = min(max(*n, 0), maxRate)
	}
	return r
}

// A Step is the pool's information at one step. It does not matter which processor makes it.
type Step struct {
	// Now is the time. One before the last step's counts as that.
	Now int64
	// Lag is the time until a cut made now is known everywhere and calls granted under it have answers: 0 to an hour.
	Lag int64
	// Reports are those of all processors that made calls lately, of any generation.
	Reports []Report
	// Processors counts all processors that share the limit, whether they make calls or not.
	Processors int
	// Used is the number of tokens used by the pool, and Offered the number that it could have used. Only their ratio counts, and
	// whether Used is 0.
	Used, Offered int64
}

// Next returns the state after a step. The Config must be valid, and the State one that
// Next returned, of whatever Config, or the zero State.
func (c Config) Next(s State, st Step) State {
	now := min(max(st.Now, s.At, 0), maxMicros)
	if !s.known() {
		s = State{At: now, Cut: now, From: now, Low: Whole, Good: Whole, Max: c.Max, Per: c.Per.Microseconds()}
	}
	s = c.rescale(s).climb(now)
	v := judge(st.Reports, st.Processors, s.Generation)
	switch {
	case v.refused && s.Counts(now):
		return c.cut(s, now, v, min(max(st.Lag, 0), maxLag))
	case st.Used <= 0 || float64(st.Used)*100 < float64(st.Offered)*binding:
		s.Still = 1
	default:
		s.Still = 0
	}
	if s.Free() {
		s.Still = 0
	}
	return s
}

// Due reports whether these reports of a pool of so many processors require a cut at now.
func (s State) Due(now int64, reports []Report, processors int) bool {
	return s.Counts(now) && judge(reports, processors, s.Generation).refused
}

// climb moves the state on to now.
func (s State) climb(now int64) State {
	s.Climbed = min(s.Climbed+s.rising(now), maxClimbed)
	s.At = now
	if s.rate(s.Climbed) >= Whole {
		s.Low, s.Good, s.Climbed, s.Still = Whole, Whole, 0, 0
	}
	return s
}

// rising returns how long the ceiling has risen from the last step until t.
func (s State) rising(t int64) int64 {
	if s.Still == 1 || s.Free() {
		return 0
	}
	return min(max(t-max(s.At, s.From), 0), ahead)
}

// cut lowers the ceiling.
func (c Config) cut(s State, now int64, v verdict, lag int64) State {
	ceiling := int64(s.rate(s.Climbed))
	good, low := ceiling, ceiling*mildBeta/100
	if !v.mild {
		good = int64(float64(ceiling) * v.accepted)
		low = max(good, ceiling*beta/100) * beta / 100
	}
	s.Low = min(max(low, c.Reserved, 1), ceiling)
	s.Good = min(max(good, s.Low), ceiling)
	s.Generation = min(s.Generation+1, maxGeneration)
	s.Cut, s.From = now, min(now+lag, maxMicros)
	s.Climbed, s.Still = 0, 0
	if s.Low >= Whole { // all is reserved
		s.Low, s.Good = Whole, Whole
	}
	return s
}

// rate returns the ceiling after it has risen for climbed.
func (s State) rate(climbed int64) float64 {
	low, good := float64(s.Low), float64(s.Good)
	if climbed < recovery {
		left := 1 - float64(climbed)/recovery
		return good - (good-low)*left*left*left
	}
	t := float64(climbed-recovery) / second
	rate := good * (1 + steepness*t*t*t)
	return min(rate, Whole)
}

// Ceiling returns the ceiling at time t, in 1e-9 of the limit: 0 to Whole. It rises until
// the next step, or for two seconds if none comes. The Config must be valid, and the State one that Next
// returned, of whatever Config, or the zero State.
func (c Config) Ceiling(s State, t int64) float64 {
	if s.Free() {
		return Whole
	}
	s = c.rescale(s)
	return min(Whole, max(float64(c.Reserved), s.rate(min(s.Climbed+s.rising(t), maxClimbed))))
}

// rescale converts the rates to parts of this limit, if they are parts of another.
func (c Config) rescale(s State) State {
	per := c.Per.Microseconds()
	if !s.known() || s.Max == c.Max && s.Per == per {
		return s
	}
	if !s.Free() {
		ratio := float64(s.Max) / float64(c.Max) * (float64(per) / float64(s.Per))
		part := func(rate int64) int64 { return int64(max(1, min(float64(rate)*ratio, Whole))) }
		s.Low, s.Good = part(s.Low), part(s.Good)
		if s.Low == Whole {
			s.Climbed, s.Still = 0, 0
		}
	}
	s.Max, s.Per = c.Max, per
	return s
}

// A verdict is the result of a pool's reports.
type verdict struct {
	refused  bool    // the service refuses more than it may
	mild     bool    // but hardly more
	accepted float64 // the part of all calls that it accepts
}

// judge evaluates the reports of a pool without the worst. Accepted calls count from all reports; refused ones only from those of this
// generation.
func judge(reports []Report, processors int, generation int64) (v verdict) {
	var calls, refused, worst, ofWorst int64
	for _, r := range reports {
		r = r.clamp()
		if r.Generation != generation {
			r.Refused, r.Overloaded = 0, 0
		}
		calls += r.Accepted + r.refused()
		refused += r.refused()
		if r.refused() > worst {
			worst, ofWorst = r.refused(), r.Accepted+r.refused()
		}
	}
	v.mild = float64(refused)*100 <= float64(calls)*mild
	v.accepted = float64(calls-refused) / float64(max(calls, 1))
	if max(processors, len(reports)) >= Witnesses {
		refused, calls = refused-worst, calls-ofWorst
	}
	v.refused = float64(refused)*100 > float64(calls)*tolerance
	return v
}
