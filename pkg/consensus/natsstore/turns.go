package natsstore

import (
	"context"
	"fmt"
	"sync"
)

// turns serializes the syncs of one Store on one pool. Two concurrent syncs would compete for the same record, and one of them would have
// to try again. The zero value is ready to use.
type turns struct {
	mu sync.Mutex
	of map[string]*turn
}

// A turn is the right to execute a step on a pool.
type turn struct {
	free  chan struct{} // holds one value while nobody has the turn
	users int           // syncs that have the turn or wait for it
}

// take waits for the turn. If the context ends first, it returns the context's error. done gives the turn back.
func (t *turns) take(ctx context.Context, pool string) (done func(), err error) {
	it := t.enter(pool)
	select {
	case <-it.free:
		return func() {
			it.free <- struct{}{}
			t.leave(pool, it)
		}, nil
	case <-ctx.Done():
		t.leave(pool, it)
		return nil, fmt.Errorf("natsstore: pool %q: other syncs of this process were under way: %w", pool, ctx.Err())
	}
}

func (t *turns) enter(pool string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	it := t.of[pool]
	if it == nil {
		it = &turn{free: make(chan struct{}, 1)}
		it.free <- struct{}{}
		if t.of == nil {
			t.of = map[string]*turn{}
		}
		t.of[pool] = it
	}
	it.users++
	return it
}

func (t *turns) leave(pool string, it *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if it.users--; it.users == 0 {
		delete(t.of, pool)
	}
}
