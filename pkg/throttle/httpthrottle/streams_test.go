package httpthrottle_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// At a server that allows few streams on a connection net/http sends more on a new one than it may, and these are refused.
// Each of them is a request that was sent and had no answer. A limit on calls in flight keeps below it.
func TestFewStreams(t *testing.T) {
	const streams, calls = 5, 60
	for name, tc := range map[string]struct {
		slots, attempts int
		all             bool // each call has its answer
	}{
		"one attempt":             {0, 1, false},
		"many attempts":           {0, 50, true},
		"one attempt, with slots": {streams - 1, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			var seen, answered, unanswered atomic.Int64
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				seen.Add(1)
				time.Sleep(5 * time.Millisecond) // so that streams are open at the same time
			}))
			server.EnableHTTP2 = true
			server.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: streams}
			server.StartTLS()
			t.Cleanup(server.Close)
			limiter := throttle.Limiter(nil)
			if tc.slots > 0 {
				slots, err := throttle.NewInFlight(tc.slots)
				require.NoError(t, err)
				limiter = slots
			}
			client := &http.Client{Transport: httpthrottle.NewTransport(server.Client().Transport, limiter, httpthrottle.WithMaxAttempts(tc.attempts))}
			var all sync.WaitGroup
			for range calls {
				all.Go(func() {
					res, err := client.Get(server.URL)
					switch {
					case err == nil:
						answered.Add(1)
						_ = res.Body.Close()
					case errors.Is(err, httpthrottle.ErrUnanswered):
						unanswered.Add(1)
					default:
						t.Error(err)
					}
				})
			}
			all.Wait()
			require.EqualValues(t, calls, answered.Load()+unanswered.Load())
			require.Equal(t, answered.Load(), seen.Load(), "what was refused reached no handler")
			if tc.all { // else it depends on how fast the server is
				require.Zero(t, unanswered.Load(), "of %d calls", calls)
			}
		})
	}
}
