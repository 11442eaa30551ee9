package protocol

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// A retryAfter is a request of the called service to this processor, and to others: make no call
// before a time. One processor alone does not pause the pool. The quorum is two processors, or one
// in a pool of at most two. It is a part of pausing.
type retryAfter struct {
	end    time.Duration // local time
	reason string
	done   bool  // the pool was paused for it
	others int64 // the latest logical time requested of another processor
	live   int   // processors in the pool
}

// until is the logical time for the note: until then the service has asked this processor to wait;
// 0: it has not.
func (t *retryAfter) until(logical int64, now time.Duration) int64 {
	if t.end <= now {
		return 0
	}
	return min(logical+(t.end-now).Microseconds(), wire.MaxMicros)
}

// few is the size of the largest pool in which one processor is a quorum.
const few = 2

// RetryAfter takes a request of the called service to this processor: make no call before end, in
// local time. An end hardly later than the previous one changes nothing.
func (p *Processor) RetryAfter(now, end time.Duration, reason string) {
	t := &p.Pauses.retry
	if end <= now || end-t.end <= slack(end-now) {
		return
	}
	t.end, t.reason, t.done = end, reason, false
	if p.state == StateHolding || p.state == StateLost {
		p.urgency = urgencyNow
	}
}

// RetryQuorum reports once for each end whether a quorum was asked to wait, so that the pool should
// be paused, and until when. In a pool of at most two, that is this processor's own end. In a
// larger one, it is the time until which this processor and another were both asked to wait.
func (p *Processor) RetryQuorum(now time.Duration) (end time.Duration, reason string, due bool) {
	c, t := &p.clock, &p.Pauses.retry
	if t.done || t.end <= now || c.answers == 0 || t.live > few && t.others <= c.logical(now) {
		return 0, "", false
	}
	t.done = true
	end = t.end
	if t.live > few {
		end = min(end, now+time.Duration(t.others-c.logical(now))*time.Microsecond)
	}
	return end, t.reason, true
}
