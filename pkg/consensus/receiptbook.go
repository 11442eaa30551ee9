package consensus

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

const (
	// pushTimeout bounds one push, which is only a hint.
	pushTimeout  = 500 * time.Millisecond
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
	pushed map[string]Version // by ID
	came   chan struct{}      // closed when one comes
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
		if bad := (*RequestError)(nil); errors.Is(err, ErrNoPush) || errors.As(err, &bad) {
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
	n, err := parseNotification(news)
	if err != nil || n.from == m.self {
		return // somebody else's, or of a later release
	}
	m.mu.Lock()
	if m.p.left() {
		m.mu.Unlock()
		return
	}
	if n.pauses == nil {
		m.noteReceipt(n.id, n.version)
		m.mu.Unlock()
		return
	}
	reply := notification{from: m.self, version: m.p.notified(m.now(), n), id: m.p.cfg.ID}
	m.push()
	many := m.p.answer.Live > mostPushers
	m.mu.Unlock()
	if text, err := reply.encode(); err == nil && reply.version > 0 && !many {
		m.notify(context.Background(), text)
	}
}

// notify pushes a notification, if the store has a channel for them. A processor that misses it sees
// the pause with the next sync.
func (m *Member) notify(ctx context.Context, news []byte) {
	if err := push(ctx, m.store, m.pool, news); err != nil && !errors.Is(err, ErrNoPush) {
		m.log.Debug("news were not pushed", "error", err)
	}
}

// push pushes a notification. The error is ErrNoPush for a store that cannot.
func push(ctx context.Context, s Store, pool string, news []byte) error {
	store, ok := s.(driver.Pusher)
	if !ok {
		return ErrNoPush
	}
	ctx, cancel := context.WithTimeout(ctx, pushTimeout)
	defer cancel()
	return store.Push(ctx, pool, news)
}

// noteReceipt books a receipt that was pushed. m.mu is held.
func (m *Member) noteReceipt(id string, v Version) {
	r := &m.receipt
	if _, known := r.pushed[id]; !known && len(r.pushed) >= 2*mostPushers {
		r.pushed = nil // mostly of processors that have gone
	}
	if r.pushed == nil {
		r.pushed = map[string]Version{}
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
func (m *Member) awaitReceipts(ctx context.Context, c *pauseCall, wait time.Duration) {
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
func (m *Member) answered(c *pauseCall) (answered, missing []string) {
	holds := func(v Version) bool {
		return v > 0 && (c.recorded > 0 && v >= c.recorded || slices.Contains(c.made, v))
	}
	self := false
	for _, row := range m.p.answer.Roster {
		switch {
		case row.ID == m.p.cfg.ID:
			self = true
			answered = append(answered, row.ID)
		case holds(noteIn(row.Note).paused) || holds(m.receipt.pushed[row.ID]):
			answered = append(answered, row.ID)
		default:
			missing = append(missing, row.ID)
		}
	}
	if !self {
		answered = append(answered, m.p.cfg.ID)
		slices.Sort(answered)
	}
	return answered, missing
}

// receipts returns the result of a call.
func (m *Member) receipts(c *pauseCall) (r limit.PauseReceipts) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.Generation = uint64(m.p.pauses.version)
	if len(c.made) > 0 {
		r.Answered, r.Missing = m.answered(c)
	}
	if end, ok := m.p.pauseEnd(m.now(), c.stop.tag); ok {
		r.Until = m.base.Add(end)
	}
	return r
}
