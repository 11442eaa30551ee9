package redpandaconnect

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A process is in a pool once: its resources of the pool share a limiter. Connect itself may build a resource several times when threads
// access it first at the same time. It uses the last one, and closes no other.

// A place identifies a limiter of this process.
type place struct{ store, pool, id string }

// A shared limiter is in use by at least one resource.
type shared struct {
	at      place
	limit   throttle.Limit // as it was given
	limiter *throttle.Throttle
	users   int
}

var limiters = struct {
	sync.Mutex

	at map[place]*shared
}{at: map[place]*shared{}}

// A lease is the use of a shared limiter by one resource.
type lease struct {
	of   *shared
	once sync.Once
	err  error
}

// share returns a lease of the limiter with these settings, and opens it for the first one.
func share(c numathrottle.Config) (*lease, error) {
	limiters.Lock()
	defer limiters.Unlock()
	at := place{c.Store, c.Pool, c.ID}
	s := limiters.at[at]
	if s == nil {
		l, err := numathrottle.Open(context.Background(), c)
		if err != nil {
			return nil, err
		}
		s = &shared{at: at, limit: c.Limit, limiter: l}
		limiters.at[at] = s
	}
	if c.Limit != s.limit {
		return nil, fmt.Errorf("numathrottle: the limit of pool %.256q is %s, allowed in a process that has the pool already: %s",
			c.Pool, c.Limit, s.limit)
	}
	s.users++
	return &lease{of: s}, nil
}

// release ends the lease. The last one closes the limiter. It may be called again.
func (l *lease) release() error {
	l.once.Do(func() {
		limiters.Lock()
		l.of.users--
		last := l.of.users == 0
		if last {
			delete(limiters.at, l.of.at)
		}
		limiters.Unlock()
		if last {
			l.err = l.of.limiter.Close()
		}
	})
	return l.err
}

// releaseIfLost ends the lease of a resource that nobody has and nobody has closed.
func (r *rateLimit) releaseIfLost() {
	runtime.AddCleanup(r, func(l *lease) { go func() { _ = l.release() }() }, r.lease)
}
