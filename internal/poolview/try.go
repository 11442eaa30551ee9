package poolview

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// Scratch is the pool that Try joins. Pools leaves it out.
const Scratch = "numathrottle check"

// Try does at a store what a pod does: it joins a pool that nobody else uses, asks for slots, and leaves it again. Other commands only read,
// which a replica, a full server or a user without all permissions allows. It returns the error of the store.
func Try(ctx context.Context, s driver.Store) error {
	var nonce [8]byte
	_, _ = rand.Read(nonce[:]) // never fails
	req := driver.Request{
		Pool: Scratch, ID: "check-" + rand.Text(), Incarnation: rand.Text(), Seq: 1, Nonce: binary.LittleEndian.Uint64(nonce[:]),
		Lease: driver.DefaultLease,
	}
	if _, err := s.Sync(ctx, req); err != nil {
		return err
	}
	_, err := s.Reserve(ctx, driver.Reserve{Pool: req.Pool, Spacing: wire.MinSpacing, Lease: req.Lease, Count: 1})
	return errors.Join(err, s.Leave(ctx, driver.Leave{
		Pool: req.Pool, ID: req.ID, Incarnation: req.Incarnation, Seq: 2, Unanswered: []driver.Ticket{{Seq: req.Seq, Nonce: req.Nonce}},
	}))
}

// newsPatience is how long TryNews waits for its own news, and newsTries how often it does: they may come late, or not at all.
const (
	newsPatience = 500 * time.Millisecond
	newsTries    = 4
)

// TryNews sends news through the store and waits for them, as pods do to pause at once. A store without a channel for news passes. It
// returns the error of the store, or ErrNoNews.
func TryNews(ctx context.Context, s driver.Store) error {
	p, ok := s.(driver.Pusher)
	if !ok {
		return nil
	}
	received := make(chan struct{}, 1)
	stop, err := p.Watch(ctx, Scratch, func([]byte) {
		select {
		case received <- struct{}{}:
		default:
		}
	})
	if errors.Is(err, driver.ErrNoPush) {
		return nil
	}
	if err != nil {
		return err
	}
	defer stop()
	for range newsTries {
		if err := p.Push(ctx, Scratch, []byte(Scratch)); err != nil {
			return err
		}
		select {
		case <-received:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(newsPatience):
		}
	}
	return ErrNoNews
}

// ErrNoNews is the error of TryNews for a store that takes news and delivers none.
var ErrNoNews = errors.New("the store delivers no news, so pods learn of a pause with their next sync: let its user publish and subscribe to them")
