package throttle

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A ledger is what a model of draws on several limiters knows about one of them.
type ledger struct {
	limiter Limiter
	granted int64 // by draws that succeeded
	held    int   // by permits that were not settled
	used    int   // by those that were
}

// A weight is one limiter in a model's All.
type weight struct {
	of     int // index of the ledger
	factor int // of the cost; 0: one per call; 3: a third
}

func (w weight) price(n int) int {
	switch w.factor {
	case 0:
		return min(n, 1)
	case 3:
		return n / 3
	}
	return w.factor * n
}

// draws returns what a draw of n takes of the ledger: a draw that costs nothing takes a slot, or a token of another package's limiter.
func (w weight) draws(l *ledger, n int) int {
	if _, tokens := l.limiter.(*Throttle); tokens {
		return w.price(n)
	}
	return max(w.price(n), 1)
}

// A group is a model's All.
type group struct {
	all     Limiter
	weights []weight
}

// An allModel draws at random on random groups of random limiters, and keeps a ledger
// of what was granted.
type allModel struct {
	t       testing.TB
	r       *rand.Rand
	members []*ledger
	groups  []group
	sharers []*script

	mu      sync.Mutex
	permits []func() // settle one
	served  int
	wg      sync.WaitGroup
}

func TestAllRandomDraws(t *testing.T) {
	served := 0
	for seed := range uint64(120) {
		synctest.Test(t, func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("seed %d", seed)
				}
			}()
			m := newAllModel(t, seed)
			for range 120 {
				m.step()
			}
			m.finish()
			served += m.served
		})
	}
	require.Greater(t, served, 120*20, "the model draws")
}

func newAllModel(t testing.TB, seed uint64) *allModel {
	t.Helper()
	m := &allModel{t: t, r: rand.New(rand.NewPCG(seed, 21))}
	for range 2 + m.r.IntN(3) {
		var l Limiter
		switch m.r.IntN(6) {
		case 0:
			l = newForeign(10)
		case 1, 2:
			s := &script{first: limit.Lease{Share: wholeShare}}
			l = flight(t, 12+m.r.IntN(12), WithSharer(s))
			m.sharers = append(m.sharers, s)
		default:
			s := &script{first: limit.Lease{Share: wholeShare}}
			limit := Limit{Max: 30 + m.r.IntN(300), Burst: 1 + m.r.IntN(40)}
			th, err := New(limit, WithSharer(s))
			require.NoError(t, err)
			m.sharers = append(m.sharers, s)
			l = th
		}
		m.members = append(m.members, &ledger{limiter: l})
	}
	for range 4 {
		var g group
		var parts []Limiter
		for _, i := range m.r.Perm(len(m.members))[:1+m.r.IntN(len(m.members))] {
			w := weight{of: i, factor: m.r.IntN(4)}
			g.weights = append(g.weights, w)
			l := m.members[i].limiter
			if w.factor != 1 {
				l = Weigh(l, w.price)
			}
			parts = append(parts, l)
		}
		if g.all = All(parts...); m.r.IntN(2) == 0 {
			g.all = All(parts[0], All(parts[1:]...))
		}
		m.groups = append(m.groups, g)
	}
	return m
}

func (m *allModel) step() {
	time.Sleep(time.Duration(m.r.ExpFloat64() * float64(10*time.Millisecond)))
	switch m.r.IntN(10) {
	case 0, 1, 2, 3, 4:
		m.draw()
	case 5, 6, 7:
		m.settleOne()
	case 8:
		for _, l := range m.members {
			if f, ok := l.limiter.(*foreign); ok {
				f.add(m.r.IntN(5))
			}
		}
	default:
		if len(m.sharers) > 0 {
			s := m.sharers[m.r.IntN(len(m.sharers))]
			s.give([]float64{0, 0.3, 0.8, 1}[m.r.IntN(4)])
		}
	}
	m.check()
}

// draw begins one draw, with or without a deadline, and with a cancellation at times.
func (m *allModel) draw() {
	g := m.groups[m.r.IntN(len(m.groups))]
	back := m.r.IntN(2) == 0
	n, method := 1+m.r.IntN(5), m.r.IntN(4)
	if method == 0 {
		if p, ok := g.all.TryAcquire(n); ok {
			require.Equal(m.t, n, p.N())
			m.book(g, p, back)
		}
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	switch m.r.IntN(4) {
	case 0:
		ctx, cancel = context.WithTimeout(context.Background(), time.Duration(m.r.IntN(200))*time.Millisecond)
	case 1:
		time.AfterFunc(time.Duration(m.r.IntN(50))*time.Millisecond, cancel)
	}
	m.wg.Go(func() {
		defer cancel()
		acquire := g.all.Acquire
		if method == 1 {
			acquire = g.all.AcquireUpTo
		}
		p, err := acquire(ctx, n)
		if err != nil {
			if p.N() != 0 {
				m.t.Error("a permit beside an error")
			}
			return
		}
		if p.N() < 1 || p.N() > n || method != 1 && p.N() != n {
			m.t.Errorf("%d tokens, %d asked for", p.N(), n)
		}
		m.book(g, p, back)
	})
}

func (m *allModel) book(g group, p Permit, back bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.served++
	for _, w := range g.weights {
		l := m.members[w.of]
		l.granted += int64(w.draws(l, p.N()))
		l.held += w.draws(l, p.N())
	}
	used := p.N()
	if back {
		used = 0
	}
	m.permits = append(m.permits, func() {
		p.Settle(used)
		p.Cancel() // settled
		for _, w := range g.weights {
			l := m.members[w.of]
			l.held -= w.draws(l, p.N())
			l.used += w.price(used)
		}
	})
}

func (m *allModel) settleOne() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.permits) > 0 {
		i := m.r.IntN(len(m.permits))
		m.permits[i]()
		m.permits = append(m.permits[:i], m.permits[i+1:]...)
	}
}

// check compares the members with their ledgers, once every goroutine waits.
func (m *allModel) check() {
	synctest.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, l := range m.members {
		switch of := l.limiter.(type) {
		case *Throttle:
			require.Equal(m.t, l.granted, of.Status().Granted, "child %d, a Throttle", i)
			sound(m.t, of)
		case *InFlight:
			require.Equal(m.t, l.granted, of.Status().Granted, "child %d, an InFlight", i)
			require.Equal(m.t, l.held, of.Status().InUse, "child %d, an InFlight", i)
		case *foreign:
			of.mu.Lock()
			taken := of.granted - of.returned
			of.mu.Unlock()
			require.Equal(m.t, l.held+l.used, taken, "child %d, a foreign limiter", i)
		}
	}
}

// finish gives every child its share: everyone who waits is served, and nothing is
// left behind.
func (m *allModel) finish() {
	for _, s := range m.sharers {
		s.give(1)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
				m.settleOne()
				for _, l := range m.members {
					if f, ok := l.limiter.(*foreign); ok {
						f.add(1)
					}
				}
			}
		}
	})
	done := make(chan struct{})
	go func() { m.wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Hour):
		m.t.Error("callers wait although everything is to be had")
		for _, l := range m.members {
			if c, ok := l.limiter.(interface{ Close() error }); ok {
				_ = c.Close()
			}
		}
	}
	close(stop)
	wg.Wait()
	for len(m.permits) > 0 {
		m.settleOne()
	}
	m.check()
	for _, l := range m.members {
		switch of := l.limiter.(type) {
		case *Throttle:
			require.Zero(m.t, of.Status().Waiting)
			require.NoError(m.t, of.Close())
		case *InFlight:
			require.Zero(m.t, of.Status().Waiting)
			require.Zero(m.t, of.Status().InUse)
		}
	}
}
