package consensus

import (
	"context"
	"time"

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

// judge pauses the pool if there is a quorum for it. m.mu is held.
func (m *Member) judge() {
	now := m.now()
	end, reason, due := m.p.RetryQuorum(now)
	if !due || m.p.Left() {
		return
	}
	until := m.base.Add(end)
	m.judging.Go(func() {
		life, end := m.lifetime()
		defer end()
		ctx, cancel := context.WithTimeout(life, 2*SyncTimeout(MinLease))
		defer cancel()
		if _, err := m.Pause(ctx, until, reason, limit.WaitForReceipts(0)); err != nil && ctx.Err() == nil {
			m.log.Warn("the pause that the called service asked for is not on record yet", "error", err, "until", until)
		}
	})
}
