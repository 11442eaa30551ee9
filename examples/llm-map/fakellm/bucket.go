package fakellm

import (
	"math"
	"time"
)

// A bucket is a token bucket. It has no clock: the caller passes the time, which never goes back. Negative levels are debt, which earnings
// pay off.
type bucket struct {
	perSecond float64 // 0: no limit
	capacity  float64
	level     float64
	at        time.Time
}

func newBucket(perMinute int, slice time.Duration, now time.Time) bucket {
	perSecond := float64(perMinute) / 60
	capacity := perSecond * slice.Seconds()
	return bucket{perSecond: perSecond, capacity: capacity, level: capacity, at: now}
}

func (b *bucket) unlimited() bool { return b.perSecond == 0 }

// advance adds the earnings until now.
func (b *bucket) advance(now time.Time) {
	if d := now.Sub(b.at); d > 0 {
		b.level = min(b.capacity, b.level+b.perSecond*d.Seconds())
		b.at = now
	}
}

// has reports whether n can be taken.
func (b *bucket) has(n float64) bool {
	const rounding = 1e-6 // what was earned in many small steps
	return b.unlimited() || b.level+rounding >= n
}

// take takes n, into debt if necessary, but never deeper than the capacity. Refused calls count, but an hour of them does not cost an hour.
func (b *bucket) take(n float64) {
	if !b.unlimited() {
		b.level = max(b.level-n, -b.capacity)
	}
}

// give returns n.
func (b *bucket) give(n float64) {
	if !b.unlimited() {
		b.level = min(b.level+n, b.capacity)
	}
}

// wait returns the time until n can be taken; false if never.
func (b *bucket) wait(n float64) (time.Duration, bool) {
	switch {
	case b.has(n):
		return 0, true
	case n > b.capacity:
		return 0, false
	}
	return time.Duration(math.Ceil((n - b.level) / b.perSecond * 1e9)), true
}

// full returns the time until the bucket is full again.
func (b *bucket) full() time.Duration {
	if b.unlimited() {
		return 0
	}
	return time.Duration((b.capacity - b.level) / b.perSecond * 1e9)
}

// remaining returns the whole number that can be taken.
func (b *bucket) remaining() int { return max(0, int(b.level)) }
