package consensus

import (
	"context"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// RetryAfter implements sharing.Pool.
func (m *Member) RetryAfter(until time.Time, reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.p.Left() {
		return
	}
	now := m.now()
	m.p.RetryAfter(now, now+time.Until(until), reason)
	m.judge()
	m.Poke() // the others should know soon
}

// judge pauses the pool if there is a quorum for it: this processor at once, the others in the
// background. m.mu is held.
func (m *Member) judge() {
	end, reason, due := m.p.RetryQuorum(m.now())
	if !due || m.p.Left() {
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
		ctx, cancel := context.WithTimeout(life, 2*protocol.SyncTimeout(MinLease))
		defer cancel()
		if err := m.record(ctx, c); err != nil && ctx.Err() == nil {
			m.log.Warn("the pause that the called service asked for is not on record yet", "error", err, "until", until)
		}
	})
}
