package world

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A Line is a Link with a channel for news. A Cut fails requests to save and load, too.
type Line struct {
	Link

	// Hub is the channel.
	Hub driver.Pusher
	// Deaf hears nothing, and is not heard.
	Deaf atomic.Bool
	// Saves is how long a request to save is on its way, as a time.Duration.
	Saves atomic.Int64
	// Pushed counts news.
	Pushed atomic.Int64
}

// NewLine returns a line without faults.
func NewLine(s driver.Store, hub driver.Pusher) *Line { return &Line{Link: Link{Store: s}, Hub: hub} }

// Push implements driver.Pusher.
func (l *Line) Push(ctx context.Context, pool string, news []byte) error {
	if l.Deaf.Load() {
		return errors.New("no channel")
	}
	l.Pushed.Add(1)
	return l.Hub.Push(ctx, pool, news)
}

// Watch implements driver.Pusher.
func (l *Line) Watch(ctx context.Context, pool string, heard func([]byte)) (func(), error) {
	return l.Hub.Watch(ctx, pool, func(news []byte) {
		if !l.Deaf.Load() {
			heard(news)
		}
	})
}

// Save implements driver.Store.
func (l *Line) Save(ctx context.Context, pool string, d driver.DocumentReport) (driver.Version, error) {
	if l.Cut.Load() {
		return 0, l.failure()
	}
	if err := Sleep(ctx, time.Duration(l.Saves.Load())); err != nil {
		return 0, err
	}
	return l.Link.Save(ctx, pool, d)
}

// Load implements driver.Store.
func (l *Line) Load(ctx context.Context, pool string) ([]driver.Document, []driver.RosterRow, error) {
	if l.Cut.Load() {
		return nil, nil, l.failure()
	}
	return l.Link.Load(ctx, pool)
}

// Mend ends all faults on the way to the store.
func (l *Line) Mend() {
	l.Link.Mend()
	l.Saves.Store(0)
}
