package consensus

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/pooldoc"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// Pause stops the whole pool, or one tag of it; see throttle.Throttle.Pause. The holder of this
// Member stops before any other processor is notified. Pause blocks until the store has answered
// and the receipts are in, or their wait is over.
//
// Errors: *throttle.PauseError; throttle.ErrClosed after Leave; those of the store. After a store
// error the receipts still list the processors that stopped, and the next requests propose the
// pause until it is recorded.
func (m *Member) Pause(ctx context.Context, until time.Time, reason string, opts ...limit.PauseOption) (limit.PauseReceipts, error) {
	s, err := sharing.PauseSettings(opts...)
	if err != nil {
		return limit.PauseReceipts{}, err
	}
	c, err := m.newPause(limit.Paused{Tag: s.Tag, Until: until, Reason: reason})
	if err != nil {
		return limit.PauseReceipts{}, err
	}
	m.mu.Lock()
	done, err := m.beginPause(c)
	m.mu.Unlock()
	if err != nil || done {
		return m.receipts(c), err
	}
	began := time.Now()
	err = m.record(ctx, c)
	m.awaitReceipts(ctx, c, s.Wait-time.Since(began))
	if err != nil {
		err = fmt.Errorf("consensus: the pause is not on record yet: %w", err)
	}
	return m.receipts(c), err
}

// newPause returns the call of a pause. The error is a *throttle.PauseError.
func (m *Member) newPause(p limit.Paused) (*protocol.PauseCall, error) {
	now := time.Now()
	if err := p.Check(now); err != nil {
		return nil, err
	}
	c := &protocol.PauseCall{Stop: protocol.LocalPause{Tag: p.Tag, Reason: p.Reason, By: m.author(), End: protocol.Forever}}
	if !p.Until.IsZero() {
		left := time.Until(p.Until)
		c.Stop.End, c.Stop.Until = m.now()+left, now.Add(left).Round(0)
	}
	return c, nil
}

// author is how this processor signs its pauses: its ID, or "" if that is not valid.
func (m *Member) author() string {
	by := m.p.Cfg.ID
	if (&limit.Paused{By: by}).Check(time.Time{}) != nil {
		return ""
	}
	return by
}

// Resume ends a pause of the whole pool, or of one tag; see throttle.Throttle.Resume. Errors are
// those of Pause; after a store error nothing is resumed.
func (m *Member) Resume(ctx context.Context, opts ...limit.PauseOption) error {
	s, err := sharing.PauseSettings(opts...)
	if err != nil {
		return err
	}
	c := &protocol.PauseCall{Stop: protocol.LocalPause{Tag: s.Tag}, Resume: true}
	m.mu.Lock()
	left := m.p.Left()
	m.p.Pauses.Forget(s.Tag)
	m.mu.Unlock()
	if left {
		return sharing.ErrClosed
	}
	if err := m.record(ctx, c); err != nil {
		return fmt.Errorf("consensus: resuming: %w", err)
	}
	return nil
}

// beginPause puts a pause in force here. If done is true, nobody needs to be notified. m.mu is held.
func (m *Member) beginPause(c *protocol.PauseCall) (done bool, err error) {
	if m.p.Left() {
		return true, sharing.ErrClosed
	}
	if done, err = m.p.BeginPause(m.now(), c); err == nil && !done {
		m.push()
	}
	return done, err
}

// record pushes the change of a call and has the store record it, unless it is on record.
func (m *Member) record(ctx context.Context, c *protocol.PauseCall) error {
	var notifying sync.WaitGroup
	defer notifying.Wait()
	asked := false
	err := pooldoc.Retry(func() (err error) {
		asked, err = m.recordOnce(ctx, &notifying, c)
		return err
	})
	if !asked {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.p.Pauses.Release(c.Stop.Tag, err == nil)
	m.push()
	return err
}

// recordOnce is one attempt of record. asked reports whether the store was asked.
func (m *Member) recordOnce(ctx context.Context, notifying *sync.WaitGroup, c *protocol.PauseCall) (asked bool, err error) {
	m.mu.Lock()
	doc, news, err := m.p.PauseChange(m.now(), c, m.self, uint16(rand.Uint32()))
	pool, timeout := m.pool, protocol.SyncTimeout(m.p.Lease)
	if err != nil {
		m.push() // a pause without room has ended here
	}
	m.mu.Unlock()
	if err != nil {
		return false, err
	}
	if !c.Resume { // a notification can only stop: stopped processors continue when they see the record
		notifying.Go(func() { m.notify(ctx, news) })
	}
	if c.Recorded > 0 {
		return false, nil
	}
	saving, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return true, m.save(saving, pool, c, doc)
}

// save saves a change. On a conflict it loads the recorded document instead.
func (m *Member) save(ctx context.Context, pool string, c *protocol.PauseCall, doc driver.DocumentReport) error {
	_, err := m.store.Save(ctx, pool, doc)
	if err == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.p.Recorded(m.now(), driver.Document{Name: doc.Name, Version: doc.Version, Body: doc.Body})
		c.Recorded = doc.Version
		m.push()
		return nil
	}
	conflict := (*driver.ConflictError)(nil)
	var found driver.Document
	if errors.As(err, &conflict) {
		docs, _, lost := pooldoc.Load(ctx, m.store, pool)
		if lost != nil {
			return lost
		}
		found = protocol.PauseDoc.In(docs)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	settled := m.p.Refused(m.now(), c, found, conflict != nil)
	m.push()
	if settled {
		return nil
	}
	return err
}
