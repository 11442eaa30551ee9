package consensus_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/world"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A pod is a node with a channel for news.
type pod struct {
	*node

	line *world.Line
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
	l := world.NewLine(p.store, p.hub)
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
