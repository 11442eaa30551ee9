package consensus

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

const (
	watchTimeout = 2 * time.Second
	// watchAgain delays the next Watch after a failure, at first and at most.
	watchAgain     = time.Second
	watchAgainMost = 30 * time.Second
	// mostPushers is the size of the largest pool in which receipts are pushed. Each receipt goes
	// to all; in a larger pool they come with the syncs alone.
	mostPushers = 100
)

// receiptBook holds what a Member knows of receipts beyond the roster. It is guarded by Member.mu.
type receiptBook struct {
	pushed map[string]driver.Version // by ID
	came   chan struct{}             // closed when one comes
}

// listen watches the store's channel for news until the Member leaves.
func (m *Member) listen(store driver.Pusher, pool string) {
	defer close(m.unwatched)
	ctx, cancel := m.lifetime()
	defer cancel()
	warned := false
	for again := watchAgain; ; again = min(2*again, watchAgainMost) {
		attempt, over := context.WithTimeout(ctx, watchTimeout)
		stop, err := store.Watch(attempt, pool, m.receive)
		over()
		if err == nil {
			<-m.quit
			stop()
			return
		}
		if bad := (*RequestError)(nil); errors.Is(err, driver.ErrNoPush) || errors.As(err, &bad) {
			return
		}
		// A store that is away shows in the syncs.
		if away := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled); !away && !warned {
			warned = true
			m.log.Warn("no notifications of pauses: a pause counts from the next sync on", "error", err)
		}
		select {
		case <-m.quit:
			return
		case <-time.After(again):
		}
	}
}

// lifetime returns a context that ends when Leave begins. Cancel it when it is no longer needed.
func (m *Member) lifetime() (ctx context.Context, cancel context.CancelFunc) {
	ctx, cancel = context.WithCancel(context.Background())
	go func() {
		select {
		case <-m.quit:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// receive takes news.
func (m *Member) receive(news []byte) {
	n, err := protocol.ParseNotification(news)
	if err != nil || n.From == m.self {
		return // somebody else's, or of a later release
	}
	m.mu.Lock()
	if m.p.Left() {
		m.mu.Unlock()
		return
	}
	if n.Pauses == nil {
		m.noteReceipt(n.ID, n.Version)
		m.mu.Unlock()
		return
	}
	reply := protocol.Notification{From: m.self, Version: m.p.Notified(m.now(), n), ID: m.p.Cfg.ID}
	m.push()
	many := m.p.Answer.Live > mostPushers
	m.mu.Unlock()
	if text, err := reply.Encode(); err == nil && reply.Version > 0 && !many {
		m.notify(context.Background(), text)
	}
}

// notify pushes a notification, if the store has a channel for them. A processor that misses it sees
// the pause with the next sync.
func (m *Member) notify(ctx context.Context, news []byte) {
	if err := protocol.Push(ctx, m.store, m.pool, news); err != nil && !errors.Is(err, driver.ErrNoPush) {
		m.log.Debug("news were not pushed", "error", err)
	}
}

// noteReceipt books a receipt that was pushed. m.mu is held.
func (m *Member) noteReceipt(id string, v driver.Version) {
	r := &m.receipt
	if _, known := r.pushed[id]; !known && len(r.pushed) >= 2*mostPushers {
		r.pushed = nil // mostly of processors that have gone
	}
	if r.pushed == nil {
		r.pushed = map[string]driver.Version{}
	}
	r.pushed[id] = max(v, r.pushed[id])
	m.receiptsCame()
}

// receiptsCame wakes callers waiting for receipts. m.mu is held.
func (m *Member) receiptsCame() {
	if m.receipt.came != nil {
		close(m.receipt.came)
		m.receipt.came = nil
	}
}

// awaitReceipts waits until every live processor has sent its receipt, or for so long.
func (m *Member) awaitReceipts(ctx context.Context, c *protocol.PauseCall, wait time.Duration) {
	if wait <= 0 {
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		m.mu.Lock()
		_, missing := m.answered(c)
		if m.receipt.came == nil {
			m.receipt.came = make(chan struct{})
		}
		came := m.receipt.came
		m.mu.Unlock()
		if len(missing) == 0 {
			return
		}
		select {
		case <-came:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		case <-m.quit:
			return
		}
	}
}

// answered sorts the live processors by whether their receipt for a call is in. m.mu is held.
func (m *Member) answered(c *protocol.PauseCall) (answered, missing []string) {
	holds := func(v driver.Version) bool {
		return v > 0 && (c.Recorded > 0 && v >= c.Recorded || slices.Contains(c.Made, v))
	}
	self := false
	for _, row := range m.p.Answer.Roster {
		switch {
		case row.ID == m.p.Cfg.ID:
			self = true
			answered = append(answered, row.ID)
		case holds(protocol.NoteIn(row.Note).Paused) || holds(m.receipt.pushed[row.ID]):
			answered = append(answered, row.ID)
		default:
			missing = append(missing, row.ID)
		}
	}
	if !self {
		answered = append(answered, m.p.Cfg.ID)
		slices.Sort(answered)
	}
	return answered, missing
}

// receipts returns the result of a call.
func (m *Member) receipts(c *protocol.PauseCall) (r limit.PauseReceipts) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.Generation = uint64(m.p.Pauses.Version)
	if len(c.Made) > 0 {
		r.Answered, r.Missing = m.answered(c)
	}
	if end, ok := m.p.PauseEnd(m.now(), c.Stop.Tag); ok {
		r.Until = m.base.Add(end)
	}
	return r
}
