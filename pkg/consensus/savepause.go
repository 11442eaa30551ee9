package consensus

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// SavePause pauses a pool, or one tag of it, from outside: p.Until counts by the local clock,
// and the zero Time is until ClearPause. Of two pauses the one that ends later counts. Processors
// stop when they hear of it, with their next sync at the latest. The pool must have a
// record: a processor has been in it. A pause that is saved while nobody is there begins when a
// processor joins. ctx bounds the call.
//
// Errors: *throttle.PauseError when p is invalid, or too many tags are paused; one that wraps
// ErrNoPool; *ConflictError when others keep changing it at the same time; those of the store.
func SavePause(ctx context.Context, s Store, pool string, p throttle.Paused) error {
	if err := p.Check(time.Now()); err != nil {
		return err
	}
	err := changePauses(ctx, s, pool, func(n *notice, _ Version) (changed bool) {
		e := entry{tag: p.Tag, reason: p.Reason}
		if !p.Until.IsZero() {
			e.left, e.until = max(time.Until(p.Until), time.Microsecond), p.Until.Round(0)
		}
		for _, o := range n.entries {
			// What is left of it cannot be told here, but it is no more than this.
			if o.tag == p.Tag && (o.left == 0 || e.left > 0 && o.until.After(e.until)) {
				return false
			}
		}
		n.drop(p.Tag)
		n.entries = append(n.entries, e)
		return true
	})
	if err != nil {
		return fmt.Errorf("consensus: pausing pool %q: %w", pool, err)
	}
	return nil
}

// ClearPause ends the pause of a pool, with an empty tag, or that of one tag, if there is one.
// Processors go on at their next sync. Errors are those of SavePause.
func ClearPause(ctx context.Context, s Store, pool, tag string) error {
	if err := (&throttle.Paused{Tag: tag}).Check(time.Now()); err != nil {
		return err
	}
	err := changePauses(ctx, s, pool, func(n *notice, version Version) (changed bool) {
		before := len(n.entries)
		n.drop(tag)
		n.resumed = version
		return len(n.entries) < before
	})
	if err != nil {
		return fmt.Errorf("consensus: resuming pool %q: %w", pool, err)
	}
	return nil
}

// LoadPauses returns the pauses of a pool that are on record. Until is what the wall clock of
// whoever paused said; one whose Until is past may be over. Errors: one that wraps ErrNoPool, those of
// the store, and one for a document that this release cannot read.
func LoadPauses(ctx context.Context, s Store, pool string) ([]throttle.Paused, error) {
	docs, _, err := load(ctx, s, pool)
	if err != nil {
		return nil, fmt.Errorf("consensus: loading pool %q: %w", pool, err)
	}
	n, err := noticeOf(docs)
	if err != nil {
		return nil, err
	}
	var list []throttle.Paused
	for _, e := range n.entries {
		list = append(list, throttle.Paused{Tag: e.tag, Until: e.until, Reason: e.reason})
	}
	return list, nil
}

func noticeOf(docs []Document) (notice, error) {
	doc := documentOf(docs, pauseDocument)
	if doc.Version == 0 {
		return notice{}, nil
	}
	return parseNotice(doc.Body)
}

// changePauses changes the document of a pool, and pushes what has become of it.
func changePauses(ctx context.Context, s Store, pool string, change func(*notice, Version) bool) error {
	var err error
	for range 5 { // somebody else may change it meanwhile
		var docs []Document
		if docs, _, err = load(ctx, s, pool); err != nil {
			return err
		}
		n, err := noticeOf(docs)
		if err != nil {
			return err
		}
		base := documentOf(docs, pauseDocument).Version
		version := NextVersion(base, uint16(mathrand.Uint32()))
		if !change(&n, version) {
			return nil
		}
		body, err := n.body()
		if err != nil {
			return err
		}
		_, err = s.Save(ctx, pool, DocumentReport{Name: pauseDocument, Version: version, Base: base, Body: body})
		if err == nil {
			pushNotice(ctx, s, pool, newsflash{from: rand.Text(), version: version, notice: &n})
			return nil
		}
		if conflict := (*ConflictError)(nil); !errors.As(err, &conflict) {
			return err
		}
	}
	return err
}

// pushNotice pushes news if the store can. What is not heard is seen with the next sync.
func pushNotice(ctx context.Context, s Store, pool string, n newsflash) {
	store, ok := s.(Pusher)
	if !ok {
		return
	}
	if text, err := n.encode(); err == nil {
		ctx, cancel := context.WithTimeout(ctx, pushTimeout)
		defer cancel()
		_ = store.Push(ctx, pool, text)
	}
}
