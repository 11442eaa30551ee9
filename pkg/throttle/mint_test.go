package throttle

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A mint issues the slots of one pool, as a store does, on the virtual clock.
type mint struct {
	mu      sync.Mutex
	next    time.Time
	slots   []time.Time
	orders  int
	returns int
	down    bool
	live    int // contenders
}

var errDown = errors.New("down")

// reserve is one step of the store.
func (m *mint) reserve(o sharing.Order) (sharing.Slots, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.orders++
	if m.down {
		return sharing.Slots{}, errDown
	}
	now := time.Now()
	var rest int64
	if o.Return != 0 && o.Return == m.next.UnixNano() {
		m.next = m.next.Add(-time.Duration(o.Unused) * o.Spacing)
		m.slots = m.slots[:len(m.slots)-o.Unused]
		m.returns += o.Unused
		rest = m.next.UnixNano()
	}
	s := sharing.Slots{Last: rest, Spacing: o.Spacing, Part: max(1, (o.Ahead+1)/m.live)}
	first := m.next
	if first.Before(now) {
		first = now
	}
	s.Wait = first.Sub(now)
	for s.Count < o.Count && !first.After(now.Add(time.Duration(o.Ahead)*o.Spacing)) {
		m.slots = append(m.slots, first)
		first = first.Add(o.Spacing)
		m.next = first
		s.Count++
	}
	if s.Count > 0 {
		s.Last = m.next.UnixNano()
	}
	s.Next = first.Sub(now)
	if s.Count < o.Count || o.Ahead == 0 {
		s.Again = max(s.Next-time.Duration(o.Ahead)*o.Spacing, 0) + time.Duration(rand.Int64N(int64(m.live)*int64(o.Spacing)/40+1))
	}
	return s, nil
}

// A clerk is one processor's way to a mint.
type clerk struct {
	*script
	mint     *mint
	up, back time.Duration
}

func (c *clerk) Reserve(o sharing.Order, done func(sharing.Slots, error)) {
	go func() {
		time.Sleep(c.up)
		s, err := c.mint.reserve(o)
		time.Sleep(c.back)
		done(s, err)
	}()
}

func (c *clerk) Pause(context.Context, time.Time, string, ...PauseOption) (PauseReceipts, error) {
	return PauseReceipts{}, errDown
}

func (c *clerk) Resume(context.Context, ...PauseOption) error { return errDown }

func (c *clerk) RetryAfter(time.Time, string) {}

var _ sharing.Pool = (*clerk)(nil)

// issued returns a Throttle whose tokens are issued.
func issued(t testing.TB, l Limit, opts ...Option) (*Throttle, *clerk) {
	t.Helper()
	c := &clerk{script: &script{first: limit.Lease{Issuing: true}}, mint: &mint{live: 1}}
	th, err := New(l, append(opts, WithSharer(c))...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = th.Close() })
	return th, c
}

// set changes the mint.
func (m *mint) set(change func(m *mint)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(m)
}

// issued returns the slots that are reserved, asked how many orders there were, and
// returned how many slots were given back.
func (m *mint) issued() (slots []time.Time) {
	m.set(func(m *mint) { slots = slices.Clone(m.slots) })
	return slots
}

func (m *mint) asked() (n int) {
	m.set(func(m *mint) { n = m.orders })
	return n
}

func (m *mint) returned() (n int) {
	m.set(func(m *mint) { n = m.returns })
	return n
}
