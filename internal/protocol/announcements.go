package protocol

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
)

// announcements are the limits that the called service announced to the processors of a pool.
type announcements struct {
	reports []ceiling.Rate
	follows bool
	first   ceiling.Rate // the lowest; the zero Rate: none
}

// add adds what one processor reports, whose limit is not zero.
func (s *announcements) add(n *Note) {
	s.follows = s.follows || n.follows
	if n.announced > 0 {
		s.reports = append(s.reports, ceiling.Rate{Max: n.announced, Per: n.limit.Per})
	}
	if first := (ceiling.Rate{Max: n.first, Per: n.limit.Per}); n.first > 0 && (s.first.Max == 0 || first.Below(s.first)) {
		s.first = first
	}
}

// An Announced is a limit that the called service announces, as the processors of a pool agree: Max per Per. The zero Announced is none.
type Announced struct {
	Max int
	Per time.Duration
	// Followed means that it is the limit in force, because it is lower than the configured one and a processor follows it.
	Followed bool
	// Awaited means that nothing is announced yet, and the limit in force is the one until then.
	Awaited bool
}

// agreed returns what the service announces to a pool of so many processors, and the limit that the pool follows; the zero Rate: none.
func (s *announcements) agreed(processors int) (told, followed ceiling.Rate) {
	told = ceiling.Agree(s.reports, processors, s.first)
	switch {
	case !s.follows:
	case told.Max > 0:
		followed = told
	default:
		followed = s.first
	}
	return told, followed
}

// over returns what the service announces to a pool of so many processors, and the limit in force instead of the lowest configured one.
func (s *announcements) over(lowest ceiling.Rate, processors int) (Announced, ceiling.Rate) {
	told, in := s.agreed(processors)
	a := Announced{Max: int(told.Max), Per: told.Per}
	if in.Max == 0 || !in.Below(lowest) {
		return a, lowest
	}
	a.Followed, a.Awaited = told.Max > 0, told.Max == 0
	return a, in
}
