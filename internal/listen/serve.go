package listen

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// Serve serves the set with an HTTP server until ctx ends, and then lets requests under way
// go on for at most grace. It closes the set. Errors: what ended the server before ctx did.
// That requests were cut off at the end of grace is none.
func Serve(ctx context.Context, set *Set, server *http.Server, grace time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		wg     sync.WaitGroup
		once   sync.Once
		failed error
	)
	for _, l := range set.Listeners() {
		wg.Go(func() {
			if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				once.Do(func() { failed = err })
				cancel()
			}
		})
	}
	<-ctx.Done()
	end, done := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer done()
	if server.Shutdown(end) != nil {
		_ = server.Close() // what is cut off is the callers' to see
	}
	wg.Wait()
	return errors.Join(failed, set.Close())
}
