package fakellm

import (
	"math"
	"time"
)

// A bucket is a token bucket. It has no clock: the caller says what time it is, and the
// times never go back. Negative levels are debt, which is paid off by what is earned.
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

// advance earns what is due until now.
func (b *bucket) advance(now time.Time) {
	if d := now.Sub(b.at); d > 0 {
		b.level = min(b.capacity, b.level+b.perSecond*d.Seconds())
		b.at = now
	}
}

// has tells whether n can be taken.
func (b *bucket) has(n float64) bool {
	const rounding = 1e-6 // what was earned in many small steps
	return b.unlimited() || b.level+rounding >= n
}

// take takes n, into debt if need be, but never deeper than the capacity: calls that were
// refused count, and an hour of them is not paid for by an hour.
func (b *bucket) take(n float64) {
	if !b.unlimited() {
		b.level = max(b.level-n, -b.capacity)
	}
}

// give gives n back.
func (b *bucket) give(n float64) {
	if !b.unlimited() {
		b.level = min(b.level+n, b.capacity)
	}
}

// wait is how long it takes until n can be taken; false if that is never.
func (b *bucket) wait(n float64) (time.Duration, bool) {
	switch {
	case b.has(n):
		return 0, true
	case n > b.capacity:
		return 0, false
	}
	return time.Duration(math.Ceil((n - b.level) / b.perSecond * 1e9)), true
}

// full is how long it takes until the bucket is full again.
func (b *bucket) full() time.Duration {
	if b.unlimited() {
		return 0
	}
	return time.Duration((b.capacity - b.level) / b.perSecond * 1e9)
}

// remaining is the whole number that can be taken.
func (b *bucket) remaining() int { return max(0, int(b.level)) }
