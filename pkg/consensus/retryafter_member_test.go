package consensus_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/world"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// overloaded is a service that refuses every call for half a minute.
type overloaded struct{}

func (overloaded) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"30"}}, Body: http.NoBody}, nil
}

// What a service says to the calls of two processors pauses the third one.
func TestTwoAreToldOverHTTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := busy(t, memstore.New(), 3, thousand)
		now := time.Now()
		for _, n := range nodes[:2] {
			require.Nil(t, nodes[2].th.Status().Paused)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://example.invalid/", http.NoBody)
			require.NoError(t, err)
			res, err := httpthrottle.NewTransport(overloaded{}, n.th, httpthrottle.WithMaxAttempts(1)).RoundTrip(req)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			time.Sleep(5 * time.Second)
		}
		paused := nodes[2].th.Status().Paused
		require.NotNil(t, paused)
		require.WithinDuration(t, now.Add(30*time.Second), paused.Until, 2*time.Second, "as long as both were told")
		require.Equal(t, "the service answered with status 429", paused.Reason)
	})
}

// Whoever is told while it leaves, or when it has left, stops nobody.
func TestToldWhenLeaving(t *testing.T) {
	eachServer(t, func(t *testing.T, s *world.Server) {
		nodes := busy(t, s, 2, thousand)
		nodes[0].m.RetryAfter(time.Now().Add(time.Minute), "status 429")
		nodes[0].stop()
		require.NoError(t, nodes[0].th.Close())
		nodes[0].m.RetryAfter(time.Now().Add(time.Hour), "status 429")
		nodes[0].th.RetryAfter(time.Now().Add(time.Hour), "status 429")
		time.Sleep(62 * time.Second)
		require.Nil(t, nodes[1].th.Status().Paused)
	})
}
