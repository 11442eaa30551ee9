package bucket

import (
	"math/bits"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// RateBits is the binary places of a segment's rate: the smallest share of a limit still has eight, and the fastest rate at MaxShare 44
// bits in all.
const RateBits = 38

// A Segment is the bucket's law between two changes of the share: from start to until it earns at a constant rate. Times are nanoseconds
// since the limiter was made, on the monotonic clock. It is immutable, so that draws read it without a lock.
type Segment struct {
	Start, Until int64
	Earned       int64  // units earned by Start
	Rate         uint64 // units per nanosecond, times 2^RateBits
	Capacity     int64  // units
	Lease        limit.Lease
	// Behind is the present segment, when this one only keeps draws out, and Paused
	// the time until which a pause does.
	Behind *Segment
	Paused int64
}

// segment returns the law for a lease that comes into force at now.
func (b *Bucket) segment(lease limit.Lease, now, until, earned int64) *Segment {
	s := &Segment{Start: now, Until: until, Earned: earned, Lease: lease}
	if lease.Issuing { // tokens come as deposits
		s.Capacity = b.Units(1)
		return s
	}
	share := float64(lease.Share) / float64(limit.WholeShare)
	if b.config.Hard {
		s.Capacity = b.hardCapacity(lease.Share)
		switch {
		case share <= 0:
		case lease.Degraded:
			s.Lease.Reason, share = limit.ReasonStoreLost, 0
		case s.Capacity < b.Units(1):
			s.Lease.Reason, share = limit.ReasonShareTooSmall, 0
		}
	} else {
		s.Capacity = max(b.Units(1), int64(share*float64(b.Units(b.config.Burst))))
	}
	s.Rate = uint64(b.Whole * share * (1 << RateBits))
	if share <= 0 {
		s.Capacity, s.Rate, s.Until = 0, 0, now // no share: the segment is over before it begins
	}
	return s
}

// At returns the units earned by now, which must not be before Start.
func (s *Segment) At(now int64) int64 {
	hi, lo := bits.Mul64(uint64(now-s.Start), s.Rate)
	return s.Earned + int64(hi<<(64-RateBits)|lo>>RateBits)
}

// By is At for any now: nothing is earned before Start and after Until.
func (s *Segment) By(now int64) int64 { return s.At(max(s.Start, min(now, s.Until))) }

// Valid reports whether the segment's share is in force at now.
func (s *Segment) Valid(now int64) bool { return now < s.Until }

// Wait returns how long it takes to earn units, rounded up; ok is false when the segment never does. A wait longer than a clock can show is
// sharing.Never.
func (s *Segment) Wait(units int64) (d time.Duration, ok bool) {
	if units <= 0 {
		return 0, true
	}
	if s.Rate == 0 {
		return 0, false
	}
	hi, lo := bits.Mul64(uint64(units), 1<<RateBits)
	if hi >= s.Rate {
		return sharing.Never, true // centuries
	}
	q, r := bits.Div64(hi, lo, s.Rate)
	if r > 0 {
		q++
	}
	return time.Duration(min(q, sharing.Never)), true
}
