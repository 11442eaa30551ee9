package throttle

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
)

// A clock gives a limiter the time and wakes it, in place of the machine's clock, for simulations and for tests of rate-limited code. Its
// methods may be called from any goroutine. Now must not block or go back.
//
// Lease.Until and context deadlines are compared with its times. A clock may also have the method Float64() float64, which then replaces
// the source of randomness.
type clock interface {
	Now() time.Time
	// AfterFunc calls f on some goroutine once d has passed, unless the Timer was stopped or reset. f must not be called before AfterFunc
	// or Reset returns.
	AfterFunc(d time.Duration, f func()) sharing.Timer
}

// centuries is a duration that no timer reaches.
const centuries = 1 << 62
