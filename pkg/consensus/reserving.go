package consensus

import (
	"context"
	"errors"
	mathrand "math/rand/v2"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
)

// A reserver holds a Member's requests for slots.
type reserver struct {
	orders chan order    // for the goroutine that sends them; one at a time
	done   chan struct{} // closed when that has ended

	begun bool // guarded by Member.mu
}

var errLeft = errors.New("consensus: the pod has left its pool")

type order struct {
	sharing.Order
	done func(sharing.Slots, error)
}

func newReserver() reserver {
	return reserver{orders: make(chan order, 1), done: make(chan struct{})}
}

// Reserve asks the store for slots in the background; see sharing.Pool.
func (m *Member) Reserve(o sharing.Order, done func(sharing.Slots, error)) {
	m.slots.orders <- order{o, done} // has room: there is one order at a time
}

// beginReserving starts the goroutine that sends orders, once. A goroutine per order would have to
// grow its stack each time, which takes longer than the rest. m.mu is held.
func (m *Member) beginReserving() {
	if m.slots.begun {
		return
	}
	m.slots.begun = true
	go func() {
		defer close(m.slots.done)
		ctx, cancel := m.lifetime()
		defer cancel()
		for {
			select {
			case o := <-m.slots.orders:
				o.done(m.reserve(ctx, o.Order))
			case <-ctx.Done():
				return
			}
		}
	}()
}

func (m *Member) reserve(ctx context.Context, o sharing.Order) (sharing.Slots, error) {
	m.mu.Lock()
	if m.p.Left() {
		m.mu.Unlock()
		return sharing.Slots{}, errLeft
	}
	ctx, cancel := context.WithTimeout(ctx, protocol.SyncTimeout(m.p.Lease))
	defer cancel()
	sent := m.now()
	req, o := m.p.Reserve(sent, o)
	m.mu.Unlock()

	res, err := m.store.Reserve(ctx, req)

	m.mu.Lock()
	defer m.mu.Unlock()
	return m.p.Reserved(o, res, m.now()-sent, mathrand.Float64(), err)
}

// stopReserving waits for the request under way, which ends with the Member.
func (m *Member) stopReserving() {
	m.mu.Lock()
	begun := m.slots.begun
	m.mu.Unlock()
	if begun {
		<-m.slots.done
	}
}
