package bucket

import "time"

// MostAway is how far ahead an Away looks.
const MostAway = 5 * time.Minute

// An Away holds the expected repeats of refused calls, by second. The zero Away is empty. It has no clock, and no lock.
type Away struct {
	seconds [MostAway/time.Second + 2]struct {
		at    int64
		units float64
	}
}

// Note adds units that will be asked for at a time, at most MostAway after now; nanoseconds since base.
func (a *Away) Note(now, at int64, units float64) {
	second := min(at, now+int64(MostAway)) / int64(time.Second)
	s := &a.seconds[second%int64(len(a.seconds))]
	if s.at != second {
		s.at, s.units = second, 0
	}
	s.units += units
}

// Due returns the units that will be asked for within a time from now, the rest of its last second included.
func (a *Away) Due(now int64, within time.Duration) (units float64) {
	if a == nil {
		return 0
	}
	last := (now + int64(min(within, MostAway))) / int64(time.Second)
	for second := now / int64(time.Second); second <= last; second++ {
		if s := a.seconds[second%int64(len(a.seconds))]; s.at == second {
			units += s.units
		}
	}
	return units
}
