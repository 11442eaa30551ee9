package throttle

import (
	"math/rand/v2"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/limit"
)

// A Clock tells a limiter the time and wakes it, in place of the machine's clock:
// for simulations and for tests of code that is limited. Its methods may be called
// from any goroutine; Now must not block and must not go back.
//
// Lease.Until and the deadlines of contexts are compared with its times. A Clock may also have the
// method Float64() float64, which then decides what is left to chance.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f on some goroutine once d has passed, unless the Timer was
	// stopped or set anew; f must not be called before AfterFunc or Reset returns.
	AfterFunc(d time.Duration, f func()) Timer
}

// chance returns a number from 0 up to 1: of the clock, if that has the method Float64, so that a
// simulation can be repeated.
func (p *plumbing) chance() float64 {
	if c, ok := p.clock.(interface{ Float64() float64 }); ok {
		return c.Float64()
	}
	return rand.Float64()
}

// A Timer is what Clock.AfterFunc returns; *time.Timer is one.
type Timer = limit.Timer

// centuries is a time that no timer lives to see.
const centuries = 1 << 62

// begin makes the present moment the origin of the Throttle's times, and makes
// its timer.
func (t *Throttle) begin() {
	if t.clock == nil {
		t.base = time.Now()
	} else {
		t.base = t.clock.Now()
	}
	t.timer = t.afterFunc(centuries, t.onTimer)
}

// read returns the time since base.
func (t *Throttle) read() int64 {
	if t.clock == nil {
		return int64(time.Since(t.base))
	}
	return int64(t.clock.Now().Sub(t.base))
}
