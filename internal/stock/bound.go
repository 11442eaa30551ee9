package stock

import (
	"math"
	"time"
)

// A bound holds a tag below a rate that is not its quota's: what the called service takes of its calls. It saves up
// what it earns in a tenth of a second, or the largest draw that was asked for. The zero bound is none.
type bound struct {
	rate    float64 // tokens per second; 0: there is none
	level   float64 // below 0 after draws that did not ask, and for what was used above what was drawn
	at      int64
	largest int64
	pressed bool
}

// boundRoom is for how long a bound saves up.
const boundRoom = 0.1 // seconds

// whole is what a level may lack of a whole token by rounding.
const whole = 1e-6

// set puts another rate in force. A bound begins empty.
func (b *bound) set(now int64, rate float64) {
	if !(rate > 0) || math.IsInf(rate, 1) { // NaN is none
		*b = bound{}
		return
	}
	if b.rate == 0 {
		*b = bound{at: now}
	}
	b.settle(now)
	b.rate = rate
}

func (b *bound) settle(now int64) {
	b.level = min(b.level+b.rate*time.Duration(max(now-b.at, 0)).Seconds(), b.room())
	b.at = max(b.at, now)
}

// has tells whether there are n tokens. A draw that finds none is saved up for.
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

// left is how many tokens there are.
func (b *bound) left(now int64) int64 {
	if b.rate == 0 {
		return Endless
	}
	b.settle(now)
	return int64(max(math.Floor(b.level+whole), 0))
}

// room is how much is saved up.
func (b *bound) room() float64 { return max(b.rate*boundRoom, float64(b.largest), 1) }

// take takes n tokens. Those that did not ask, for they had waited for something else when the bound came, make no more debt
// than can be saved up: there may be any number of them, and nobody else of the tag would get anything until that is earned.
func (b *bound) take(now, n int64) {
	if b.rate > 0 {
		b.settle(now)
		b.level = max(b.level-float64(n), min(b.level, -b.room()))
	}
}

// owe takes n tokens that were used, which make no more debt than is earned in longest.
func (b *bound) owe(now, n int64, longest time.Duration) {
	if b.rate > 0 {
		b.settle(now)
		b.level = max(b.level-float64(n), min(b.level, -b.rate*longest.Seconds()))
	}
}

// giveBack gives n tokens back.
func (b *bound) giveBack(now, n int64) {
	if b.rate > 0 {
		b.settle(now)
		b.level += float64(n)
	}
}

// due is how long it takes until n tokens are there.
func (b *bound) due(now, n int64) time.Duration {
	if b.rate == 0 {
		return 0
	}
	b.settle(now)
	return seconds((float64(n) - b.level) / b.rate)
}

// earns is how long it takes to earn n tokens.
func (b *bound) earns(n int64) time.Duration {
	if b.rate == 0 {
		return 0
	}
	return seconds(float64(n) / b.rate)
}

// seconds is a time, rounded up.
func seconds(s float64) time.Duration {
	return time.Duration(min(math.Ceil(max(s, 0)*1e9), math.MaxInt64/4))
}

// SetBound holds draws below a rate in tokens per second, whatever the quota says and whether it is in shadow or not;
// 0 or +Inf: nothing but the quota holds them.
func (s *Stock) SetBound(now int64, rate float64) { s.bound.set(now, rate) }

// Bound is the rate that SetBound has set; 0: there is none.
func (s *Stock) Bound() float64 { return s.bound.rate }

// Pressed tells whether the bound has held a draw back since the last call. waiting is how many tokens the first one
// wants that waits; 0: nobody waits.
func (s *Stock) Pressed(now, waiting int64) (pressed bool) {
	b := &s.bound
	pressed = b.pressed || waiting > 0 && b.left(now) < waiting
	b.pressed = false
	return pressed
}
