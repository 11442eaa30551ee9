package ramp

// A Step is the pool's information at one step. It does not matter which processor makes it, nor how many are made: a step in two parts
// with the same rates has the same result.
type Step struct {
	// Now is the logical time in microseconds. One before the last step's counts as that.
	Now int64
	// Used and Offered are rates since the last step, in 1e-9 of the limit's Max: the pool's use, and how much it could have used. A Used
	// above 0 is traffic.
	Used, Offered int64
	// Empty means that no processor was in the pool before this step.
	Empty bool
	// Halted means that nothing could be granted since the last step. Scheduled, which otherwise depends only on time, stands still; the
	// other modes see it in Offered.
	Halted bool
	// Silence is how long, in microseconds of the store's own clock, no step was made: the logical clock stands still without requests.
	Silence int64
}

// Next returns the state and the ceiling after a step. The Config must be valid, and
// the State one that Next returned, of whatever Config, or the zero State.
func (c Config) Next(s State, st Step) (State, Ceiling) {
	now := min(max(st.Now, s.At, 0), maxMicros)
	switch {
	case !s.known() || st.Silence > c.TTL.Microseconds() || st.Empty && !c.ResumedRampUp:
		s = c.scale().hold(0, now)
	case st.Empty: // the empty time moves nothing
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

// scale returns a state with only the fields that define the scale of progress.
func (c Config) scale() State {
	return State{Min: c.Min, Max: c.Max, Per: c.Per.Microseconds(), Ramp: c.RampUpDuration.Microseconds()}
}

func (s State) sameScale(o State) bool {
	return s.Min == o.Min && s.Max == o.Max && s.Per == o.Per && s.Ramp == o.Ramp
}

// rescale carries the ceiling of the last step over to another configuration: the pool keeps its rate, unless the new bounds forbid it. The
// conversions keep every compiler from fusing operations: a state is the same on all of them.
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

// judge advances the state to now. A second is judged when it is over, and the ramp moves in the second after it. The first of the seconds
// since the last step also includes the rates gathered before. All others are equal and judged together.
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

// millis returns the weight of a rate. Whole milliseconds keep the sums small, and differences of rounded times add up for any division of
// the time.
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
			} else { // the ceiling falls at once when the penalty begins: nobody uses it
				s.From = min(s.From, s.To)
			}
		}
	}
	s.Second += n * second
	s.Used, s.Offered = 0, 0
	return s
}

// verdict returns by how many slopes a second with traffic moves the ramp. A second without an offer moves nothing.
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

// penalised reports whether the second after so many missed ones begins too late.
func (c Config) penalised(missed int64) bool {
	return c.Mode == GoBackN && (missed+1)*second > c.CoolDownPeriod.Microseconds()
}

// afterGap returns the position of the ramp after so many missed seconds: the penalty counts from the last second with traffic, for every
// second since.
func (c Config) afterGap(s State, missed int64) int64 {
	return s.clamp(s.Base - missed*c.RampDownPercentage*(second/100))
}

func (s State) clamp(progress int64) int64 { return max(0, min(progress, s.Ramp)) }
