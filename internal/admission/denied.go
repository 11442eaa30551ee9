package admission

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Denied says that the tokens of a message did not come within MaxWait, or never can.
type Denied struct { //nolint:errname // it reads as what became of the message, in every wrapper
	// Err is the limiter's reason, with the time to try again; not nil.
	Err *throttle.Error
	// By is the gate that denied the message, and Tag its tag. If By is nil, RetryAfter knows nothing of other messages.
	By  *Admitter
	Tag string
	// Messages is how many come again together, for the tokens of Err; 0 means one.
	Messages int
}

// Error returns the limiter's text.
func (d *Denied) Error() string {
	if d.TooLarge() {
		return d.Err.Error()
	}
	return "not admitted within the longest wait: " + d.Err.Error()
}

// TooLarge reports whether the message costs more than can ever be granted.
func (d *Denied) TooLarge() bool { return d.Err.Reason == throttle.ReasonTooLarge }

// Why returns the reason and the tag, without figures, for a platform that counts answers by their texts.
func (d *Denied) Why() string {
	if d.Err.Tag != "" {
		return fmt.Sprintf("throttled (%s, tag %q)", d.Err.Reason, d.Err.Tag)
	}
	return fmt.Sprintf("throttled (%s)", d.Err.Reason)
}

// Unwrap returns the limiter's error.
func (d *Denied) Unwrap() error { return d.Err }

// minRetryAfter keeps the platform from sending a message again at once, as it does with a nack without a delay.
const minRetryAfter = 100 * time.Millisecond

// tooLargeAfter is when a message comes again whose cost can never be granted: the limit may have been raised.
const tooLargeAfter = time.Minute

// RetryAfter returns when the message should be tried again. Call it once for each nacked message, or once for all Messages together, for
// each call takes a place in the line of its Admitter. The first message comes when its tokens are expected. Each further one comes later by
// the time that its tokens take to accrue in this processor's share. All come early by half of the longest wait, since waiting for a turn
// is better than missing it. With several limiters it is the line of the one that refused (throttle.Error.By).
//
// It is at least 100 ms, and never less than the limiter's figure. A random part of a quarter of it is added, so that messages of several
// processors do not come back together. That part is at most a quarter of the time that the message's tokens take, where known. A message
// that costs more than can ever be granted has no turn, and comes again after a minute. A limiter whose rate is not known (Status) has no
// line: then only the random quarter spreads the messages.
func (d *Denied) RetryAfter() time.Duration {
	after := max(d.Err.RetryAfter, minRetryAfter)
	if d.TooLarge() {
		after = max(after, tooLargeAfter)
	}
	if d.By == nil || d.TooLarge() {
		return after + upTo(after/4)
	}
	after, each := d.By.turn(d.Tag, d.Err, after)
	jitter := after / 4
	if each > 0 {
		jitter = min(jitter, each/4)
	}
	after += upTo(jitter)
	d.By.nacked.note(d.By.logger(), max(d.Messages, 1), after, d.Err)
	return after
}

func upTo(d time.Duration) time.Duration { return time.Duration(rand.Int64N(int64(d) + 1)) }
