package protocol

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/pooldoc"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// SavePause pauses a pool, or one tag of it, from outside. p.Until counts by the local clock; the zero
// Time lasts until ClearPause. Of two pauses the one that ends later counts. Processors stop when they
// are notified, or with their next sync. The pool must have a record: a processor has been in it. A
// pause saved for an empty pool begins when a processor joins. SavePause blocks until the store has
// answered; ctx bounds it.
//
// The pause of the whole pool always has room, and replaces a document that this release cannot read. Too many tags,
// or too many bytes of their reasons, leave no room for one more tag.
//
// Errors: *throttle.PauseError when p is invalid, or there is no room; one that wraps
// ErrNoPool; *ConflictError when others keep changing it at the same time; those of the store.
func SavePause(ctx context.Context, s driver.Store, pool string, p limit.Paused) error {
	if err := p.Check(time.Now()); err != nil {
		return err
	}
	err := changePauses(ctx, s, pool, p.Tag, func(n *pauseList, _ driver.Version) (changed bool, err error) {
		e := entry{tag: p.Tag, reason: p.Reason, by: p.By}
		if !p.Until.IsZero() {
			e.left, e.until = max(time.Until(p.Until), time.Microsecond), p.Until.Round(0)
		}
		for _, o := range n.entries {
			// The time left is not known here, but it is at most this.
			if o.tag == p.Tag && (o.left == 0 || e.left > 0 && o.until.After(e.until)) {
				return false, nil
			}
		}
		next, ok := n.with(e, placesOfPool)
		if !ok {
			return false, n.full(p.Tag, "no more fit: end one first (numathrottle pause clear --tag TAG), or shorten the reasons")
		}
		*n = next
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("consensus: pausing pool %q: %w", pool, err)
	}
	return nil
}

// ClearPause ends the pause of a pool, with an empty tag, or that of one tag, if there is one.
// Processors go on at their next sync. With an empty tag it also ends all pauses in a document that this release cannot read. Errors are
// those of SavePause.
func ClearPause(ctx context.Context, s driver.Store, pool, tag string) error {
	if err := (&limit.Paused{Tag: tag}).Check(time.Now()); err != nil {
		return err
	}
	err := changePauses(ctx, s, pool, tag, func(n *pauseList, version driver.Version) (changed bool, err error) {
		before := len(n.entries)
		n.drop(tag)
		n.resumed = version
		return len(n.entries) < before, nil
	})
	if err != nil {
		return fmt.Errorf("consensus: resuming pool %q: %w", pool, err)
	}
	return nil
}

// LoadPauses returns the recorded pauses of a pool. Until is by the wall clock of the author; a pause
// whose Until is past may be over. Errors: one that wraps ErrNoPool, those of the store, and one for a
// document that this release cannot read.
func LoadPauses(ctx context.Context, s driver.Store, pool string) ([]limit.Paused, error) {
	docs, _, err := pooldoc.Load(ctx, s, pool)
	if err != nil {
		return nil, fmt.Errorf("consensus: loading pool %q: %w", pool, err)
	}
	n, err := PauseDoc.Read(PauseDoc.In(docs))
	if err != nil {
		return nil, err
	}
	return n.paused(), nil
}

// paused returns the list in its public form.
func (n *pauseList) paused() (list []limit.Paused) {
	for _, e := range n.entries {
		list = append(list, limit.Paused{Tag: e.tag, Until: e.until, Reason: e.reason, By: e.by})
	}
	return list
}

// changePauses changes the document of a pool, and pushes the result. tag is whose pause changes. A document that cannot be read is one
// of pauses of a later release, or damaged, and stops the processors that cannot read it: a change for the whole pool replaces it.
func changePauses(ctx context.Context, s driver.Store, pool, tag string, change func(*pauseList, driver.Version) (bool, error)) error {
	var n pauseList
	version, err := PauseDoc.Change(ctx, s, pool, func(r pooldoc.Recorded[pauseList]) (pauseList, bool, error) {
		if r.Err != nil && tag != "" {
			return n, false, fmt.Errorf("%w; a change for the whole pool, such as numathrottle resume without a tag, replaces it", r.Err)
		}
		n = r.Value
		changed, err := change(&n, r.Next)
		return n, changed || r.Err != nil, err
	})
	if err == nil && version > 0 {
		n := Notification{From: rand.Text(), Version: version, Pauses: &n}
		if text, err := n.Encode(); err == nil {
			_ = Push(ctx, s, pool, text) // who misses it sees the pause with the next sync
		}
	}
	return err
}
