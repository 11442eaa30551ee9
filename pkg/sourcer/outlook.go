package sourcer

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// An outlook is a source's expectation of its limiter at one moment; for an All it is that of the scarcest.
type outlook struct {
	tokens float64 // at hand
	rate   float64 // earned, per second
	room   float64 // what the bucket holds at most, at least one token
	// open reports that tokens can be used: there is a share, and no pause.
	open, closed bool
	// keeps reports that tokens may be used later than they were granted.
	keeps bool
	// Tokens granted earlier are void if there was a pause since, or if the lease may have ended.
	pauses int64
	until  time.Time // of the lease; the zero Time: it does not end
}

// outlooks returns the function that reads the outlook of l; nil if l does not report it.
func outlooks(l throttle.Limiter) func() outlook {
	switch l := l.(type) {
	case interface{ Status() throttle.Status }:
		return func() outlook { return newOutlook(l.Status()) }
	case interface{ Statuses() []throttle.Status }:
		if len(l.Statuses()) > 0 {
			return func() outlook { return newOutlook(l.Statuses()...) }
		}
	}
	return nil
}

// largestCost is the largest possible cost of one draw from l, as far as l reports it.
func largestCost(l throttle.Limiter) int {
	s, ok := l.(interface{ Status() throttle.Status })
	if !ok {
		return maxTokens
	}
	switch limit := s.Status().Limit; {
	case limit.Max == 0:
		return maxTokens
	case limit.Hard:
		return limit.Burst
	default:
		return max(limit.Max, limit.Burst)
	}
}

func newOutlook(all ...throttle.Status) outlook {
	o := outlook{open: true, keeps: true}
	for i, st := range all {
		one := float64(max(st.Limit.Burst, 1)) * float64(st.Lease.Share) / float64(limit.WholeShare)
		if i == 0 {
			o.tokens, o.rate, o.room, o.until = st.Tokens, st.Rate, one, st.Lease.Until
		}
		o.tokens, o.rate, o.room = min(o.tokens, st.Tokens), min(o.rate, st.Rate), min(o.room, one)
		o.closed = o.closed || st.Closed
		o.open = o.open && !st.Closed && st.Lease.Share > 0 && st.Paused == nil
		o.keeps = o.keeps && !st.Limit.Hard && !st.Limit.Strict
		o.pauses += st.Pauses
		if u := st.Lease.Until; !u.IsZero() && (o.until.IsZero() || u.Before(o.until)) {
			o.until = u
		}
	}
	o.room = max(o.room, 1)
	return o
}

// void reports whether tokens that were granted under o, or before, must not be used any more at now, given the newer outlook.
func (o outlook) void(newer outlook, now time.Time) bool {
	return !newer.open || newer.pauses != o.pauses || !o.until.IsZero() && now.After(o.until)
}

// earns returns how long it takes until n tokens are at hand, if nobody else draws.
func (o outlook) earns(n int) time.Duration {
	d := (float64(n) - o.tokens) / o.rate * float64(time.Second)
	return time.Duration(max(0, min(d, float64(time.Hour))))
}
