package consensus

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
)

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

// attachWithin is how long the first sync waits for a limiter, which is made right after Join.
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
