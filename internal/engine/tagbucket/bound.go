package tagbucket

import (
	"math"
	"time"
)

// A bound holds a tag below a rate that is not its quota's: the called service's limit for its calls. It saves up the earnings of a tenth
// of a second, or the largest draw that was asked for. The zero bound is none.
type bound struct {
	rate    float64 // tokens per second; 0: there is none
	level   float64 // below 0 after draws that did not ask, and after use beyond the draws
	at      int64
	largest int64
	pressed bool
}

// boundRoom is for how long a bound saves up.
const boundRoom = 0.1 // seconds

// whole is how far rounding may leave a level below a whole token.
const whole = 1e-6

// set puts another rate in force. A bound begins empty.
func (b *bound) set(now int64, rate float64) {
	if !(rate > 0) || math.IsInf(rate, 1) { // NaN is none
		*b = bound{}
		return
	}
	b.settle(now)
	b.rate = rate
}

func (b *bound) settle(now int64) {
	b.level = min(b.level+b.rate*time.Duration(max(now-b.at, 0)).Seconds(), b.room())
	b.at = max(b.at, now)
}

// has reports whether there are n tokens. The bound saves up for a draw that finds none.
func (b *bound) has(now, n int64) bool {
	if b.rate == 0 {
		return true
	}
	b.largest = max(b.largest, n)
	b.settle(now)
	if b.level < float64(n)-whole {
		b.pressed = true
		return false
	}
	return true
}

// left returns how many tokens there are.
func (b *bound) left(now int64) int64 {
	if b.rate == 0 {
		return Endless
	}
	b.settle(now)
	return int64(max(math.Floor(b.level+whole), 0))
}

// room returns how much is saved up.
func (b *bound) room() float64 { return max(b.rate*boundRoom, float64(b.largest), 1) }

// take takes n tokens. A draw that did not ask, since it had waited for something else when the bound came, makes no more debt than can be
// saved up. There may be any number of such draws, and all others of the tag would get nothing until that is earned.
func (b *bound) take(now, n int64) {
	if b.rate == 0 {
		return
	}
	b.settle(now)
	b.level = max(b.level-float64(n), min(b.level, -b.room()))
}

// owe takes n tokens for use beyond the draws, with no more debt than is earned in longest.
func (b *bound) owe(now, n int64, longest time.Duration) {
	if b.rate == 0 {
		return
	}
	b.settle(now)
	b.level = max(b.level-float64(n), min(b.level, -b.rate*longest.Seconds()))
}

// giveBack gives n tokens back.
func (b *bound) giveBack(now, n int64) {
	if b.rate == 0 {
		return
	}
	b.settle(now)
	b.level += float64(n)
}

// due returns how long it takes until n tokens are there.
func (b *bound) due(now, n int64) time.Duration {
	if b.rate == 0 {
		return 0
	}
	b.settle(now)
	return seconds((float64(n) - b.level) / b.rate)
}

// earns returns how long it takes to earn n tokens.
func (b *bound) earns(n int64) time.Duration {
	if b.rate == 0 {
		return 0
	}
	return seconds(float64(n) / b.rate)
}

// seconds converts a time, rounded up.
func seconds(s float64) time.Duration {
	return time.Duration(min(math.Ceil(max(s, 0)*1e9), math.MaxInt64/4))
}

// SetBound holds draws below a rate in tokens per second, whatever the quota says, in shadow or not. With 0 or +Inf only the quota holds
// them.
func (s *Bucket) SetBound(now int64, rate float64) { s.bound.set(now, rate) }

// Bound returns the rate of SetBound; 0: there is none.
func (s *Bucket) Bound() float64 { return s.bound.rate }

// Pressed reports whether the bound has held a draw back since the last call. waiting is the number of tokens that the first waiting caller
// wants; 0: nobody waits.
func (s *Bucket) Pressed(now, waiting int64) (pressed bool) {
	b := &s.bound
	pressed = b.pressed || b.left(now) < waiting
	b.pressed = false
	return pressed
}
