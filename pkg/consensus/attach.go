package consensus

import (
	"context"
	"fmt"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// start begins to sync, when failFast with a sync whose error it returns; the member is then of no use.
func (m *Member) start(ctx context.Context, failFast bool) error {
	if failFast {
		if err := m.syncFirst(ctx); err != nil {
			return fmt.Errorf("consensus: first sync of pool %q: %w", m.pool, err)
		}
	}
	m.started.Store(true)
	go m.run() //nolint:gosec // the loop outlives the call, and ends with Leave
	if store, ok := m.store.(driver.Pusher); ok {
		go m.listen(store, m.pool)
	} else {
		close(m.unwatched)
	}
	return nil
}

// Attach connects the Throttle that uses the share. Call it once.
func (m *Member) Attach(h sharing.Holder) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.holder = h
	m.terms = h.Terms()
	if m.p.Configure(m.terms); m.terms.Spacing > 0 {
		m.beginReserving()
	}
	m.push()
	select {
	case m.attached <- struct{}{}:
	default:
	}
}

// attachWithin is how long the first sync waits for a limiter that is made right after Join.
const attachWithin = 20 * time.Millisecond

// awaitLimiter waits until a limiter is attached, but not long. The first sync then names its terms: a pool that learns only from the
// second one that it is to issue tokens has given out shares, and issues nothing until they are returned, a sync later.
func (m *Member) awaitLimiter() {
	timer := time.NewTimer(attachWithin)
	defer timer.Stop()
	select {
	case <-m.attached:
	case <-timer.C:
	case <-m.quit:
	}
}
