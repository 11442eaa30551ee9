package ramp

// A Step is what the pool knows at one step. Whoever makes it, and how many are
// made, does not matter: a step in two parts with the same rates gives the same.
type Step struct {
	// Now is the logical time in microseconds. One before the last step's counts as that.
	Now int64
	// Used and Offered are rates since the last step, in 1e-9 of the limit's Max:
	// what the pool used of what it could have used. A Used above 0 is traffic.
	Used, Offered int64
	// Empty says that nobody was in the pool before this step.
	Empty bool
	// Halted says that nothing could be granted since the last step. Scheduled, which else looks at the time alone, stands
	// still; the other modes see it in Offered.
	Halted bool
	// Silence is how long, in microseconds of the store's own clock, no step was
	// made: the logical clock stands still when nobody asks.
	Silence int64
}

// Next returns the state and the ceiling after a step. The Config must be valid, and
// the State one that Next returned, of whatever Config, or the zero State.
func (c Config) Next(s State, st Step) (State, Ceiling) {
	now := min(max(st.Now, s.At, 0), maxMicros)
	switch {
	case !s.known() || st.Silence > c.TTL.Microseconds() || st.Empty && !c.ResumedRampUp:
		s = c.scale().hold(0, now)
	case st.Empty: // the time in which nobody was there moves nothing
		s = s.Resume(now)
	}
	if !s.sameScale(c.scale()) {
		s = c.rescale(s)
	}
	used, offered := min(max(st.Used, 0), maxFlow), min(max(st.Offered, 0), maxFlow)
	switch {
	case c.Mode != Scheduled:
		s = c.judge(s, now, used, offered)
	case st.Halted:
		s = s.Resume(now)
	default:
		s = s.hold(min(s.progress(s.At)+now-s.At, s.Ramp), now)
	}
	return s, c.Ceiling(s)
}

// scale returns a state with nothing but what gives progress its meaning.
func (c Config) scale() State {
	return State{Min: c.Min, Max: c.Max, Per: c.Per.Microseconds(), Ramp: c.RampUpDuration.Microseconds()}
}

func (s State) sameScale(o State) bool {
	return s.Min == o.Min && s.Max == o.Max && s.Per == o.Per && s.Ramp == o.Ramp
}

// rescale carries the ceiling of the last step over to another configuration: what
// the pool was used to goes on, unless the new bounds forbid it. The conversions
// keep every compiler from fusing operations: a state is the same on all of them.
func (c Config) rescale(s State) State {
	n := c.scale()
	progress := n.Ramp
	if n.Max > n.Min {
		tokens := float64(s.Min) + float64(float64(s.Max-s.Min)*float64(s.progress(s.At)))/float64(s.Ramp)
		tokens = float64(tokens*float64(n.Per)) / float64(s.Per)
		done := float64((tokens-float64(n.Min))*float64(n.Ramp)) / float64(n.Max-n.Min)
		progress = int64(max(0, min(done, float64(n.Ramp))))
	}
	return n.hold(progress, s.At)
}

// judge moves the state on to now. A second is judged when it is over, and the
// ramp moves in the one after it. Of the seconds that passed since the last step,
// the first is judged by what was gathered before as well; all the others are the
// same, and judged at once.
func (c Config) judge(s State, now, used, offered int64) State {
	if end := s.Second + second; now >= end {
		s.Used += used * millis(s.At, end)
		s.Offered += offered * millis(s.At, end)
		s = c.end(s, 1)
		if n := (now - end) / second; n > 0 {
			s.Used, s.Offered = used*1000, offered*1000
			s = c.end(s, n)
		}
		s.At = s.Second
	}
	s.Used += used * millis(s.At, now)
	s.Offered += offered * millis(s.At, now)
	s.At = now
	return s
}

// millis weighs a rate. Whole milliseconds keep the sums small, and differences of
// rounded times add up however the time is divided.
func millis(from, to int64) int64 { return to/1000 - from/1000 }

// end judges n seconds in which Used and Offered were the same, and begins another.
func (c Config) end(s State, n int64) State {
	if s.Used > 0 {
		move := c.verdict(s) * second
		s.From = s.clamp(s.To + move*(n-1))
		s.To = s.clamp(s.To + move*n)
		s.Base, s.Missed = s.From, 0
	} else {
		s.Missed = min(s.Missed+n, maxMissed)
		s.From = s.To
		if c.penalised(s.Missed) {
			s.To = c.afterGap(s, s.Missed)
			if c.penalised(s.Missed - 1) {
				s.From = c.afterGap(s, s.Missed-1)
			} else { // where the penalty begins the ceiling falls at once: nobody uses it
				s.From = min(s.From, s.To)
			}
		}
	}
	s.Second += n * second
	s.Used, s.Offered = 0, 0
	return s
}

// verdict returns by how many slopes a second with traffic moves the ramp. A second
// in which nothing was offered says nothing.
func (c Config) verdict(s State) int64 {
	reached := s.Used*100 >= c.ThresholdPercentage*s.Offered
	switch {
	case s.Offered == 0:
		return 0
	case c.Mode == Relaxed, reached:
		return 1
	case c.Mode == GoBackN:
		return -1
	}
	return 0
}

// penalised tells whether the second after so many missed ones begins too late.
func (c Config) penalised(missed int64) bool {
	return c.Mode == GoBackN && (missed+1)*second > c.CoolDownPeriod.Microseconds()
}

// afterGap returns where the ramp stands after so many missed seconds: the penalty
// counts from the last second with traffic, and for every one since.
func (c Config) afterGap(s State, missed int64) int64 {
	return s.clamp(s.Base - missed*c.RampDownPercentage*(second/100))
}

func (s State) clamp(progress int64) int64 { return max(0, min(progress, s.Ramp)) }
