package listen

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultQuiet is how long a server must be idle before it ends within its grace.
const DefaultQuiet = 2 * time.Second

// A Server serves HTTP on a Set, and ends without cutting off its users. When a sidecar and its user are stopped together, the user
// continues for a while. So the server continues until it was unused for Quiet, or Grace is over.
type Server struct {
	HTTP *http.Server
	Set  *Set
	// Grace bounds how long the server continues after its context has ended.
	Grace time.Duration
	// Quiet defaults to DefaultQuiet.
	Quiet time.Duration
	// Busy reports whether the server is still needed besides requests under way, such as for its state. nil: never. It is called from one
	// goroutine.
	Busy func() bool

	active atomic.Int64 // requests under way
	begun  atomic.Int64 // requests so far
}

// Run serves until ctx has ended and the grace period is over, and closes the Set. Call it once. Errors: one that ended the server before
// ctx did. Requests cut off at the end are no error.
func (s *Server) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.HTTP.Handler = s.count(s.HTTP.Handler)
	s.HTTP.BaseContext, s.HTTP.ConnContext = BaseContext(s.HTTP.BaseContext), connContext
	var (
		wg     sync.WaitGroup
		once   sync.Once
		failed error
		broken = make(chan struct{})
	)
	for _, l := range s.Set.Listeners() {
		wg.Go(func() {
			if err := s.HTTP.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				once.Do(func() { failed = err; close(broken) })
			}
		})
	}
	select {
	case <-ctx.Done():
		s.linger(broken)
	case <-broken:
	}
	_ = s.HTTP.Close() // callers see cut-off requests
	wg.Wait()
	return errors.Join(failed, s.Set.Close())
}

// linger waits until the server was unused for a while, or the grace period is over.
func (s *Server) linger(broken <-chan struct{}) {
	quiet := s.Quiet
	if quiet <= 0 {
		quiet = DefaultQuiet
	}
	end := time.NewTimer(s.Grace)
	defer end.Stop()
	tick := time.NewTicker(max(quiet/20, time.Millisecond))
	defer tick.Stop()
	begun, since := s.begun.Load(), time.Now()
	for {
		select {
		case <-broken:
			return
		case <-end.C:
			return
		case now := <-tick.C:
			if n := s.begun.Load(); n != begun || s.active.Load() > 0 || s.Busy != nil && s.Busy() {
				begun, since = n, now
			}
			if now.Sub(since) >= quiet {
				return
			}
		}
	}
}

// count counts requests.
func (s *Server) count(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.begun.Add(1)
		s.active.Add(1)
		defer s.active.Add(-1)
		h.ServeHTTP(w, r)
	})
}
