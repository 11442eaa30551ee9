package consensus

import (
	"context"
	"time"
)

// giveUpFor bounds Member.giveUp, as does half of the time that Leave has: the leave matters more.
const giveUpFor = 2 * time.Second

// mostRetiring bounds the requests of Member.giveUp. One names some hundred tags, and two may be for tokens that were given up since an
// earlier request, or granted without the store.
const mostRetiring = 16

// giveUp gives the limiter's tokens back to the budgets of its tags before the processor leaves, those that are set aside for it as well. It
// also reports what the limiter owes. A process that dies loses these tokens.
func (m *Member) giveUp(ctx context.Context) {
	most := giveUpFor
	if end, ok := ctx.Deadline(); ok {
		most = min(most, time.Until(end)/2)
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for answered := 0; m.retire(); {
		if answered == mostRetiring || ctx.Err() != nil {
			m.log.Info("left the pool without giving unused tokens back: budgets of tags count them as used")
			return
		}
		if m.sync(ctx) == nil {
			answered++
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// retire lets the limiter give up its tags' tokens. It reports whether the store is still to learn of any.
func (m *Member) retire() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.holder != nil && m.p.Retire(m.now(), m.holder.ReportTags)
}

// drawsBudgets reports whether the answer to a request may bring tokens of budgets, which are lost without it.
func (m *Member) drawsBudgets() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.p.DrawsBudgets()
}
