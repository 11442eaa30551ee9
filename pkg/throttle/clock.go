package throttle

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
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

// A Timer is what Clock.AfterFunc returns; *time.Timer is one.
type Timer = limit.Timer

// centuries is a time that no timer lives to see.
const centuries = 1 << 62
