package brownout

// A service accepts calls at a rate that varies with time, with a burst of a tenth of a second, and refuses all others.
type service struct {
	rate  func(ms int) float64 // per second
	level float64
	can   float64 // calls that it could have accepted so far
}

// tick advances the service to the next millisecond.
func (s *service) tick(ms int) {
	rate := s.rate(ms)
	s.can += rate / 1000
	s.level = min(s.level+rate/1000, max(1, rate/10))
}

// take makes one call.
func (s *service) take() bool {
	if s.level < 1 {
		return false
	}
	s.level--
	return true
}

// Falls returns a service with a capacity of high calls per second, but low between the seconds from and until.
func Falls(high, low float64, from, until int) func(ms int) float64 {
	return func(ms int) float64 {
		if ms >= from*1000 && ms < until*1000 {
			return low
		}
		return high
	}
}
