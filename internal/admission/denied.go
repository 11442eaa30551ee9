package admission

import (
	"math/rand/v2"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Denied says that the tokens of a message did not come within MaxWait.
type Denied struct { //nolint:errname // it reads as what became of the message, in every wrapper
	// Err is what the limiter said: why, and when to try again; not nil.
	Err *throttle.Error
}

// Error says what the limiter said.
func (d *Denied) Error() string { return "not admitted within the longest wait: " + d.Err.Error() }

// Unwrap returns the limiter's error.
func (d *Denied) Unwrap() error { return d.Err }

// minRetryAfter keeps the platform from sending a message again at once, as it does
// with a nack without a delay.
const minRetryAfter = 100 * time.Millisecond

// RetryAfter is when the message should be tried again: the time until its tokens
// would have come as far as that is known, at least 100 ms, and a random part of a
// quarter of it on top, so that messages that were refused together do not come
// back together. Each call draws its own part.
func (d *Denied) RetryAfter() time.Duration {
	after := max(d.Err.RetryAfter, minRetryAfter)
	return after + time.Duration(rand.Int64N(int64(after)/4+1))
}
