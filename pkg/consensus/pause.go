package consensus

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/pooldoc"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A pauseCall is one call of Pause or Resume under way.
type pauseCall struct {
	stop     stop // a Resume uses only the tag
	resume   bool
	since    Version
	made     []Version // pushed versions that contain this change
	recorded Version   // version on record; 0: none yet
	late     bool      // somebody has resumed since; the call changes nothing
}

// Pause stops the whole pool, or one tag of it; see throttle.Throttle.Pause. The holder of this
// Member stops before any other processor is notified. Pause blocks until the store has answered
// and the receipts are in, or their wait is over.
//
// Errors: *throttle.PauseError; throttle.ErrClosed after Leave; those of the store. After a store
// error the receipts still list the processors that stopped, and the next requests propose the
// pause until it is recorded.
func (m *Member) Pause(ctx context.Context, until time.Time, reason string, opts ...limit.PauseOption) (limit.PauseReceipts, error) {
	s := limit.NewPauseSettings(opts...)
	if err := s.Check(); err != nil {
		return limit.PauseReceipts{}, err
	}
	c, err := m.newPause(limit.Paused{Tag: s.Tag, Until: until, Reason: reason})
	if err != nil {
		return limit.PauseReceipts{}, err
	}
	c.since = Version(s.Since)
	m.mu.Lock()
	done, err := m.beginPause(c)
	m.mu.Unlock()
	if err != nil || done {
		return m.receipts(c), err
	}
	began := time.Now()
	err = m.record(ctx, c)
	if c.late {
		return m.receipts(c), nil
	}
	m.awaitReceipts(ctx, c, s.Wait-time.Since(began))
	if err != nil {
		err = fmt.Errorf("consensus: the pause is not on record yet: %w", err)
	}
	return m.receipts(c), err
}

// newPause returns the call of a pause. The error is a *throttle.PauseError.
func (m *Member) newPause(p limit.Paused) (*pauseCall, error) {
	now := time.Now()
	if err := p.Check(now); err != nil {
		return nil, err
	}
	c := &pauseCall{stop: stop{tag: p.Tag, reason: p.Reason, by: m.author(), end: forever}}
	if !p.Until.IsZero() {
		left := time.Until(p.Until)
		c.stop.end, c.stop.until = m.now()+left, now.Add(left).Round(0)
	}
	return c, nil
}

// author is how this processor signs its pauses: its ID, or "" if that is not valid.
func (m *Member) author() string {
	by := m.p.cfg.ID
	if (&limit.Paused{By: by}).Check(time.Time{}) != nil {
		return ""
	}
	return by
}

// Resume ends a pause of the whole pool, or of one tag; see throttle.Throttle.Resume. Errors are
// those of Pause; after a store error nothing is resumed.
func (m *Member) Resume(ctx context.Context, opts ...limit.PauseOption) error {
	s := limit.NewPauseSettings(opts...)
	if err := s.Check(); err != nil {
		return err
	}
	c := &pauseCall{stop: stop{tag: s.Tag}, resume: true}
	m.mu.Lock()
	left := m.p.left()
	m.p.pauses.forget(s.Tag)
	m.mu.Unlock()
	if left {
		return limit.ErrClosed
	}
	if err := m.record(ctx, c); err != nil {
		return fmt.Errorf("consensus: resuming: %w", err)
	}
	return nil
}

// beginPause puts a pause in force here. If done is true, nobody needs to be notified. m.mu is held.
func (m *Member) beginPause(c *pauseCall) (done bool, err error) {
	if m.p.left() {
		return true, limit.ErrClosed
	}
	if done, err = m.p.beginPause(m.now(), c); err == nil && !done {
		m.push()
	}
	return done, err
}

// notifyPatience is how long the notification of a pause with PauseSince waits for the store, which
// knows whether somebody has resumed since. A slower store may not answer at all.
const notifyPatience = 25 * time.Millisecond

// record pushes the change of a call and has the store record it, unless it is on record.
func (m *Member) record(ctx context.Context, c *pauseCall) error {
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
	m.p.pauses.release(c.stop.tag, err == nil)
	m.push()
	return err
}

// recordOnce is one attempt of record. asked reports whether the store was asked.
func (m *Member) recordOnce(ctx context.Context, notifying *sync.WaitGroup, c *pauseCall) (asked bool, err error) {
	m.mu.Lock()
	doc, news, err := m.p.pauseChange(m.now(), c, m.self, uint16(rand.Uint32()))
	pool, timeout := m.pool, SyncTimeout(m.p.lease)
	if err != nil {
		m.push() // a pause without room has ended here
	}
	m.mu.Unlock()
	if err != nil {
		return false, err
	}
	decided := m.spread(ctx, notifying, c, news)
	if c.recorded > 0 {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = m.save(ctx, pool, c, doc)
	conflict := (*ConflictError)(nil)
	again := errors.As(err, &conflict)
	decided(!again && !c.late && (c.recorded == 0 || c.recorded == doc.Version))
	return true, err
}

// spread notifies the others of a change, concurrently with the caller. A pause with PauseSince
// waits until it is known that nobody has resumed since, or for notifyPatience: the caller must
// call decided. A Resume notifies nobody: a notification can only stop, and stopped processors
// continue when they see the record.
func (m *Member) spread(ctx context.Context, notifying *sync.WaitGroup, c *pauseCall, news []byte) (decided func(good bool)) {
	none := func(bool) {}
	if c.resume {
		return none
	}
	if c.since == 0 || c.recorded > 0 {
		notifying.Go(func() { m.notify(ctx, news) })
		return none
	}
	notify := func() {
		m.notify(context.WithoutCancel(ctx), news) // ctx may have ended with the saving
	}
	notifying.Add(1)
	late := time.AfterFunc(notifyPatience, func() {
		defer notifying.Done()
		notify()
	})
	return func(good bool) {
		if !late.Stop() {
			return
		}
		if good {
			notifying.Go(notify)
		}
		notifying.Done()
	}
}

// save saves a change. On a conflict it loads the recorded document instead.
func (m *Member) save(ctx context.Context, pool string, c *pauseCall, doc driver.DocumentReport) error {
	_, err := m.store.Save(ctx, pool, doc)
	if err == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.p.recorded(m.now(), driver.Document{Name: doc.Name, Version: doc.Version, Body: doc.Body})
		c.recorded = doc.Version
		m.push()
		return nil
	}
	conflict := (*ConflictError)(nil)
	var found driver.Document
	if errors.As(err, &conflict) {
		docs, _, lost := pooldoc.Load(ctx, m.store, pool)
		if lost != nil {
			return lost
		}
		found = pauseDoc.In(docs)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	settled := m.p.refused(m.now(), c, found, conflict != nil)
	m.push()
	if settled {
		return nil
	}
	return err
}

// PauseNotification returns the notification of a change of the document "pause", for Pusher.Push.
// from identifies the process. It fails for a document that this release cannot read.
func PauseNotification(from string, d *driver.DocumentReport) ([]byte, error) {
	n, err := parsePauseList(d.Body)
	if err != nil {
		return nil, err
	}
	flash := notification{from: from, version: d.Version, pauses: &n}
	return flash.encode()
}
