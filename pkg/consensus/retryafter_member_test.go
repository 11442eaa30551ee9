package consensus_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// A time that one processor of three or more is told pauses nobody; told to two, it pauses
// all for as long as both were told to wait, so that the worst one alone keeps nobody waiting.
func TestTwoMustBeTold(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		nodes := busy(t, s, 4, thousand)
		now := time.Now()
		nodes[0].th.RetryAfter(now.Add(20*time.Second), "status 429")
		time.Sleep(5 * time.Second)
		for _, n := range nodes {
			require.Nil(t, n.th.Status().Paused, "one bad processor alone")
		}
		nodes[1].th.RetryAfter(now.Add(time.Hour), "status 429")
		within(t, interval, "a pause of all", func() bool {
			for _, n := range nodes {
				if n.th.Status().Paused == nil {
					return false
				}
			}
			return true
		})
		time.Sleep(time.Second)
		require.WithinDuration(t, now.Add(20*time.Second), nodes[2].th.Status().Paused.Until, 2*time.Second)
		require.Equal(t, "status 429", nodes[2].th.Status().Paused.Reason)
		time.Sleep(20 * time.Second)
		for _, n := range nodes {
			require.Nil(t, n.th.Status().Paused, "it ends by itself")
		}
		nodes[2].th.RetryAfter(time.Now().Add(10*time.Second), "status 429")
		within(t, interval, "a pause, for one has been told of an hour", func() bool { return nodes[3].th.Status().Paused != nil })
		time.Sleep(12 * time.Second)
		require.Nil(t, nodes[3].th.Status().Paused)
		nodes[1].th.RetryAfter(time.Now().Add(2*time.Hour), "status 429")
		time.Sleep(5 * time.Second)
		require.Nil(t, nodes[0].th.Status().Paused, "what others were told is over")
	})
}

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

// In a pool of one or two, what one is told counts for both.
func TestOneOfTwoIsBelieved(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		nodes := busy(t, s, 2, thousand)
		nodes[0].th.RetryAfter(time.Now().Add(20*time.Second), "status 429")
		require.NotNil(t, nodes[0].th.Status().Paused, "no later call of the one that was told is let through")
		within(t, interval, "a pause of both", func() bool { return nodes[1].th.Status().Paused != nil })
	})
}

// Slots in flight are paused in the same way, though they tell no limit.
func TestToldToSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		var slots []*throttle.InFlight
		for i := range 3 {
			m, err := consensus.Join(t.Context(), s, "pool", consensus.WithID(fmt.Sprint("p", i)), consensus.WithLogger(quiet))
			require.NoError(t, err)
			f, err := throttle.NewInFlight(30, throttle.WithSharer(m), throttle.OnClose(m.Leave))
			require.NoError(t, err)
			defer func() { require.NoError(t, f.Close()) }()
			slots = append(slots, f)
		}
		time.Sleep(5 * time.Second)
		slots[0].RetryAfter(time.Now().Add(time.Minute), "status 429")
		time.Sleep(3 * time.Second)
		require.Nil(t, slots[0].Status().Paused)
		slots[2].RetryAfter(time.Now().Add(time.Minute), "status 429")
		time.Sleep(2 * time.Second)
		for _, f := range slots {
			require.NotNil(t, f.Status().Paused)
		}
	})
}

// Whoever is told while it leaves, or when it has left, stops nobody.
func TestToldWhenLeaving(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
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
