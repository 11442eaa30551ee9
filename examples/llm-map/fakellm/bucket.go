package fakellm

import (
	"math"
	"time"
)

// A bucket is a token bucket. It has no clock: the caller passes the time, which never goes back. Negative levels are debt, which earnings
// pay off. The zero bucket limits nothing.
type bucket struct {
	perSecond float64
	capacity  float64
	level     float64
	at        time.Time
	zone      *time.Location // not nil: it earns nothing, but is full again at each midnight there
}

// newBucket returns a full bucket that earns amount in each period, and holds the earnings of slice. An amount of 0 means no limit.
func newBucket(amount int, period, slice time.Duration, now time.Time) bucket {
	perSecond := float64(amount) / period.Seconds()
	capacity := perSecond * slice.Seconds()
	return bucket{perSecond: perSecond, capacity: capacity, level: capacity, at: now}
}

// newDailyBucket returns a full bucket that is filled at each midnight of a zone.
func newDailyBucket(amount int, zone *time.Location, now time.Time) bucket {
	return bucket{capacity: float64(amount), level: float64(amount), at: now, zone: zone}
}

func (b *bucket) unlimited() bool { return b.capacity == 0 }

// advance adds the earnings until now.
func (b *bucket) advance(now time.Time) {
	d := now.Sub(b.at)
	switch {
	case d <= 0:
		return
	case b.zone == nil:
		b.level = min(b.capacity, b.level+b.perSecond*d.Seconds())
	case !now.Before(b.midnight()):
		b.level = b.capacity
	}
	b.at = now
}

// midnight returns the end of the day that the bucket's time is in.
func (b *bucket) midnight() time.Time {
	year, month, day := b.at.In(b.zone).Date()
	return time.Date(year, month, day+1, 0, 0, 0, 0, b.zone)
}

// has reports whether n can be taken.
func (b *bucket) has(n float64) bool {
	const rounding = 1e-6 // what was earned in many small steps
	return b.unlimited() || b.level+rounding >= n
}

// take takes n, into debt if necessary; a negative n is returned, up to the capacity.
func (b *bucket) take(n float64) {
	if !b.unlimited() {
		b.level = min(b.level-n, b.capacity)
	}
}

// punish takes n, but into no more debt than the capacity. Refused calls count, but an hour of them does not cost an hour.
func (b *bucket) punish(n float64) {
	if !b.unlimited() {
		b.level = max(b.level-n, min(b.level, -b.capacity))
	}
}

// wait returns the time until n can be taken; false if never.
func (b *bucket) wait(n float64) (time.Duration, bool) {
	switch {
	case b.has(n):
		return 0, true
	case n > b.capacity:
		return 0, false
	case b.zone != nil:
		return b.midnight().Sub(b.at), true
	}
	return time.Duration(math.Ceil((n - b.level) / b.perSecond * 1e9)), true
}

// full returns the time until the bucket is full again.
func (b *bucket) full() time.Duration {
	wait, _ := b.wait(b.capacity)
	return wait
}

// remaining returns the whole number that can be taken.
func (b *bucket) remaining() int { return max(0, int(b.level)) }
