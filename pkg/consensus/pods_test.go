package consensus_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/world"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A line is a processor's way to the store and its channel for news.
type line struct {
	world.Link

	hub    *memstore.Store
	deaf   atomic.Bool  // hears nothing, and nobody hears it
	slow   atomic.Int64 // how long saving takes
	pushed atomic.Int64 // news
}

func (l *line) Push(ctx context.Context, pool string, news []byte) error {
	if l.deaf.Load() {
		return errors.New("no channel")
	}
	l.pushed.Add(1)
	return l.hub.Push(ctx, pool, news)
}

func (l *line) Watch(ctx context.Context, pool string, received func([]byte)) (func(), error) {
	return l.hub.Watch(ctx, pool, func(news []byte) {
		if !l.deaf.Load() {
			received(news)
		}
	})
}

func (l *line) Save(ctx context.Context, pool string, d driver.DocumentReport) (driver.Version, error) {
	if l.Cut.Load() {
		return 0, world.ErrCut
	}
	if err := world.Sleep(ctx, time.Duration(l.slow.Load())); err != nil {
		return 0, err
	}
	return l.Link.Save(ctx, pool, d)
}

func (l *line) Load(ctx context.Context, pool string) ([]driver.Document, []driver.RosterRow, error) {
	if l.Cut.Load() {
		return nil, nil, world.ErrCut
	}
	return l.Link.Load(ctx, pool)
}

// A pod is a node with a channel for news.
type pod struct {
	*node

	line *line
}

// pods is a pool whose processors hear news.
type pods struct {
	store driver.Store
	hub   *memstore.Store
	limit throttle.Limit
	tag   string // of the limiters that are made from now on
	loss  consensus.StoreLoss
}

func newPods(s driver.Store) *pods {
	return &pods{store: s, hub: memstore.New(), limit: thousand, loss: consensus.Stop}
}

func (p *pods) join(t *testing.T, id string) *pod {
	t.Helper()
	l := &line{Link: world.Link{Store: p.store}, hub: p.hub}
	m, err := consensus.Join(t.Context(), l, "pool", consensus.WithID(id), consensus.WithLogger(quiet), consensus.WithOnStoreLoss(p.loss))
	require.NoError(t, err)
	th, err := throttle.New(p.limit, throttle.WithSharer(m), throttle.WithTag(p.tag), throttle.OnClose(m.Leave))
	require.NoError(t, err)
	n := &node{m: m, th: th, link: &l.Link}
	n.work(t, 2)
	return &pod{n, l}
}

func (p *pods) start(t *testing.T, n int) (all []*pod) {
	t.Helper()
	for i := range n {
		all = append(all, p.join(t, fmt.Sprint("p", i)))
	}
	time.Sleep(5 * time.Second)
	return all
}

// pause pauses and requires that all is well.
func (p *pod) pause(t *testing.T, d time.Duration, opts ...throttle.PauseOption) throttle.PauseReceipts {
	t.Helper()
	var until time.Time
	if d > 0 {
		until = time.Now().Add(d)
	}
	r, err := p.th.Pause(t.Context(), until, "the service is down", opts...)
	require.NoError(t, err)
	return r
}

func (p *pod) paused() bool { return p.th.Status().Paused != nil }

// end is when the pause ends here, without the stagger.
func (p *pod) end(t *testing.T) time.Time {
	t.Helper()
	e, ok := p.th.Paused("")
	require.True(t, ok)
	return e.Until
}

// requireStill fails if anybody is granted anything in d.
func requireStill(t *testing.T, d time.Duration, all ...*pod) {
	t.Helper()
	require.Zero(t, granted(d, all...))
}

func granted(d time.Duration, all ...*pod) (n int64) {
	for _, p := range all {
		n -= p.used.Load()
	}
	time.Sleep(d)
	for _, p := range all {
		n += p.used.Load()
	}
	return n
}

// restart ends a processor, with or without a word, and starts it again.
func (p *pods) restart(t *testing.T, old *pod, id string, leaves bool) *pod {
	t.Helper()
	p.stop(old, leaves)
	return p.join(t, id)
}

func (p *pods) stop(old *pod, leaves bool) {
	old.stop()
	if !leaves {
		old.link.Cut.Store(true)
	}
	_ = old.th.Close()
}

// cutOff takes the store away from some, or gives it back.
func cutOff(off bool, all ...*pod) {
	for _, p := range all {
		p.link.Cut.Store(off)
	}
}
