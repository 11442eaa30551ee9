package consensus

import (
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A retryAfter is what the called service has asked of this processor, and of others: to make
// no call before a time. One processor alone does not pause the pool. Two do, or one of a
// pool of at most two: that is the quorum. It is a part of poolCeiling.
type retryAfter struct {
	end    time.Duration // local time
	reason string
	done   bool  // the pool was paused for it
	others int64 // the latest logical time that was asked of another processor
	live   int   // processors in the pool
}

// until is what the note says: the logical time until which the service has asked this
// processor to wait; 0: it has not.
func (t *retryAfter) until(logical int64, now time.Duration) int64 {
	if t.end <= now {
		return 0
	}
	return min(logical+(t.end-now).Microseconds(), driver.MaxMicros)
}

// retryWord begins the word of a note with note.retryAt, a logical time to base 36.
const retryWord = "t:"

// retryIn returns what such a word says; 0 if there is none.
func retryIn(more []string) (int64, bool) {
	for _, w := range more {
		if value, found := strings.CutPrefix(w, retryWord); found {
			n, ok := numeral(value, 36, driver.MaxMicros)
			return n, ok && n > 0
		}
	}
	return 0, true
}

// retryOf reads that word of a note, whether or not the note has a limit. 0: there is none.
func retryOf(words, more []string) int64 {
	if len(words) != 6 && len(words) != 1 {
		return 0
	}
	if n, ok := retryIn(more); ok {
		return n
	}
	return 0
}

// few is the size of the largest pool in which one processor is a quorum.
const few = 2

// RetryAfter takes what the called service has asked of this processor: to make no call before end,
// in local time. An end that is hardly later than the one before changes nothing.
func (p *Processor) RetryAfter(now, end time.Duration, reason string) {
	t := &p.ceiling.retry
	if end <= now || end-t.end <= slack(end-now) {
		return
	}
	t.end, t.reason, t.done = end, reason, false
	if p.state == StateHolding || p.state == StateLost {
		p.urgency = urgencyNow
	}
}

// RetryQuorum tells whether a quorum was asked to wait, so that the pool should be paused, and
// until when: as long as this processor and another were both asked to wait, or until its
// own end in a pool of at most two. It says so once for each end.
func (p *Processor) RetryQuorum(now time.Duration) (end time.Duration, reason string, due bool) {
	c := &p.ceiling
	t := &c.retry
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
