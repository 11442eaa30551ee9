package memstore

import (
	"context"
	"sync"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

var _ driver.Pusher = (*Store)(nil)

// backlog is how many news may wait for one watcher. News beyond that are lost.
const backlog = 256

// A watcher is one call of Watch.
type watcher struct {
	news chan []byte
	done chan struct{} // closed when it has stopped
}

// Push hands news to all watchers of the pool without blocking. Errors: *driver.RequestError for a name that no pool can have or news of a
// wrong size, and the context's own if that has ended before the call.
func (s *Store) Push(ctx context.Context, pool string, news []byte) error {
	if err := s.lock(ctx, driver.ValidateNews(pool, news)); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for w := range s.watchers[pool] {
		select {
		case w.news <- append([]byte(nil), news...):
		default:
		}
	}
	return nil
}

// Watch calls heard with all news of a pool until stop is called. Errors are those of Push.
func (s *Store) Watch(ctx context.Context, pool string, received func(news []byte)) (stop func(), err error) {
	if err := driver.ValidatePool(pool); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := &watcher{news: make(chan []byte, backlog), done: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watchers == nil {
		s.watchers = map[string]map[*watcher]bool{}
	}
	if s.watchers[pool] == nil {
		s.watchers[pool] = map[*watcher]bool{}
	}
	s.watchers[pool][w] = true
	go w.run(received)
	return sync.OnceFunc(func() {
		close(w.done)
		s.mu.Lock()
		defer s.mu.Unlock()
		if delete(s.watchers[pool], w); len(s.watchers[pool]) == 0 {
			delete(s.watchers, pool)
		}
	}), nil
}

func (w *watcher) run(received func(news []byte)) {
	for {
		select {
		case <-w.done:
			return
		case news := <-w.news:
			received(news)
		}
	}
}
