package httpthrottle_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// The same with real connections: the refused call and the others end, over each protocol.
func TestRefusalWhoseBodyNeverEndsOverTheWire(t *testing.T) {
	for _, way := range []string{h1, h2} {
		t.Run(way, func(t *testing.T) {
			var mu sync.Mutex
			var seen []time.Time
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				seen = append(seen, time.Now())
				n := len(seen)
				mu.Unlock()
				if n > 1 {
					return
				}
				w.Header().Set("Retry-After", "2")
				w.WriteHeader(http.StatusTooManyRequests)
				for r.Context().Err() == nil {
					_, _ = io.WriteString(w, " ")
					_ = http.NewResponseController(w).Flush()
					time.Sleep(10 * time.Millisecond)
				}
			}))
			server.EnableHTTP2 = way == h2
			server.StartTLS()
			t.Cleanup(server.Close)
			tr := httpthrottle.NewTransport(server.Client().Transport, nil)
			var calls sync.WaitGroup
			for range 5 {
				calls.Go(func() { require.NoError(t, exchange(tr, wireRequest(t, http.MethodGet, server.URL, ""))) })
				require.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return len(seen) > 0 }, 10*time.Second, time.Millisecond)
				time.Sleep(50 * time.Millisecond)
			}
			calls.Wait()
			require.Len(t, seen, 6)
			require.GreaterOrEqual(t, seen[1].Sub(seen[0]), 2*time.Second)
		})
	}
}
