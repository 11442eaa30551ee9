package consensus

import (
	"context"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
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
	return min(logical+(t.end-now).Microseconds(), driver.MaxMicros)
}

// few is the size of the largest pool in which one processor is a quorum.
const few = 2

// retryAfter takes a request of the called service to this processor: make no call before end, in
// local time. An end hardly later than the previous one changes nothing.
func (p *Processor) retryAfter(now, end time.Duration, reason string) {
	t := &p.pauses.retry
	if end <= now || end-t.end <= slack(end-now) {
		return
	}
	t.end, t.reason, t.done = end, reason, false
	if p.state == StateHolding || p.state == StateLost {
		p.urgency = urgencyNow
	}
}

// retryQuorum reports once for each end whether a quorum was asked to wait, so that the pool should
// be paused, and until when. In a pool of at most two, that is this processor's own end. In a
// larger one, it is the time until which this processor and another were both asked to wait.
func (p *Processor) retryQuorum(now time.Duration) (end time.Duration, reason string, due bool) {
	c, t := &p.clock, &p.pauses.retry
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

// RetryAfter implements sharing.Pool.
func (m *Member) RetryAfter(until time.Time, reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.p.left() {
		return
	}
	now := m.now()
	m.p.retryAfter(now, now+time.Until(until), reason)
	m.judge()
	m.Poke() // the others should know soon
}

// judge pauses the pool if there is a quorum for it: this processor at once, the others in the
// background. m.mu is held.
func (m *Member) judge() {
	end, reason, due := m.p.retryQuorum(m.now())
	if !due || m.p.left() {
		return
	}
	until := m.base.Add(end)
	c, err := m.newPause(limit.Paused{Until: until, Reason: reason})
	done := false
	if err == nil {
		done, err = m.beginPause(c)
	}
	switch {
	case err != nil:
		m.log.Warn("the pause that the called service asked for is refused", "error", err, "until", until)
		return
	case done:
		return
	}
	m.judging.Go(func() {
		life, end := m.lifetime()
		defer end()
		ctx, cancel := context.WithTimeout(life, 2*SyncTimeout(MinLease))
		defer cancel()
		if err := m.record(ctx, c); err != nil && ctx.Err() == nil {
			m.log.Warn("the pause that the called service asked for is not on record yet", "error", err, "until", until)
		}
	})
}
