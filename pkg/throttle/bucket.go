package throttle

import (
	"math/bits"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/limit"
)

// never is a time that no clock reaches.
const never = limit.Never

// rateBits is the binary places of a segment's rate: the smallest share of a limit
// still has eight, and the fastest rate at MaxShare 44 bits in all.
const rateBits = 38

// A segment is the bucket's law between two changes of the share: from start to
// until it earns at a constant rate. Times are nanoseconds since the Throttle was
// made, on the monotonic clock. It is immutable, so that draws read it without
// a lock.
type segment struct {
	start, until int64
	earned       int64  // units earned by start
	rate         uint64 // units per nanosecond, times 2^rateBits
	capacity     int64  // units
	lease        Lease
	// behind is the present segment, when this one only keeps draws out, and paused
	// the time until which a pause does.
	behind *segment
	paused int64
}

// newSegment returns the law for a lease that comes into force at now.
func newSegment(l Limit, sc scale, lease Lease, now, until, earned int64) *segment {
	s := &segment{start: now, until: until, earned: earned, lease: lease}
	if lease.Issuing { // tokens come as deposits
		s.capacity = sc.units(1)
		return s
	}
	share := float64(lease.Share) / float64(WholeShare)
	if l.Hard {
		s.capacity = sc.hardCapacity(l, lease.Share)
		switch {
		case share <= 0:
		case lease.Degraded:
			s.lease.Reason, share = ReasonStoreLost, 0
		case s.capacity < sc.units(1):
			s.lease.Reason, share = ReasonShareTooSmall, 0
		}
	} else {
		s.capacity = max(sc.units(1), int64(share*float64(sc.units(l.Burst))))
	}
	s.rate = uint64(sc.whole * share * (1 << rateBits))
	if share <= 0 {
		s.capacity, s.rate, s.until = 0, 0, now // no share: the segment is over before it begins
	}
	return s
}

// at returns the units earned by now, which must not be before start.
func (s *segment) at(now int64) int64 {
	hi, lo := bits.Mul64(uint64(now-s.start), s.rate)
	return s.earned + int64(hi<<(64-rateBits)|lo>>rateBits)
}

// by is at for any now: nothing is earned before start and after until.
func (s *segment) by(now int64) int64 { return s.at(max(s.start, min(now, s.until))) }

// valid tells whether the segment's share is in force at now.
func (s *segment) valid(now int64) bool { return now < s.until }

// wait returns how long it takes to earn units, rounded up; ok is false when the
// segment never does. A wait longer than a clock can tell is never.
func (s *segment) wait(units int64) (d time.Duration, ok bool) {
	if units <= 0 {
		return 0, true
	}
	if s.rate == 0 {
		return 0, false
	}
	hi, lo := bits.Mul64(uint64(units), 1<<rateBits)
	if hi >= s.rate {
		return never, true // centuries
	}
	q, r := bits.Div64(hi, lo, s.rate)
	if r > 0 {
		q++
	}
	return time.Duration(min(q, never)), true
}
