package open

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// A refuser is a service that refuses some processors once, and keeps when it saw calls.
type refuser struct {
	mu     sync.Mutex
	refuse map[string]string // Retry-After by processor
	calls  map[string][]time.Time
}

// RoundTrip answers a call; the processor is its host.
func (r *refuser) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	by := req.URL.Host
	r.calls[by] = append(r.calls[by], time.Now())
	res := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: req}
	if after := r.refuse[by]; after != "" {
		res.StatusCode = http.StatusTooManyRequests
		res.Header.Set("Retry-After", after)
		delete(r.refuse, by)
	}
	return res, nil
}

// set makes the service refuse the next call of a processor.
func (r *refuser) set(by, after string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuse[by] = after
}

// since returns how many calls of a processor the service has seen since then.
func (r *refuser) since(by string, then time.Time) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, at := range r.calls[by] {
		if at.After(then) {
			n++
		}
	}
	return n
}

// A service that tells two processors of three when to come back stops all three, also the
// one that it has told nothing; one that tells a single processor stops that one.
func TestWhatTheServiceTellsTwoStopsThePool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, service := memstore.New(), &refuser{refuse: map[string]string{}, calls: map[string][]time.Time{}}
		var limits []*throttle.Throttle
		var callers sync.WaitGroup
		ctx, stop := context.WithCancel(t.Context())
		for i := range 3 {
			id := fmt.Sprint("p", i)
			member, err := consensus.Join(t.Context(), store, "pool", consensus.WithID(id), consensus.WithLogger(quiet()))
			require.NoError(t, err)
			th, err := throttle.New(throttle.Limit{Max: 30}, throttle.WithName("pool"), throttle.WithSharer(member), throttle.OnClose(member.Leave))
			require.NoError(t, err)
			defer func() { require.NoError(t, th.Close()) }()
			limits = append(limits, th)
			callers.Go(func() { callUntil(ctx, httpthrottle.NewTransport(service, th), id) })
		}
		defer callers.Wait()
		defer stop()
		time.Sleep(10 * time.Second)
		for i := range limits {
			require.Greater(t, service.since(fmt.Sprint("p", i), time.Now().Add(-2*time.Second)), 5, "p%d does not call", i)
		}

		service.set("p0", "30")
		time.Sleep(5 * time.Second)
		require.Zero(t, service.since("p0", time.Now().Add(-2*time.Second)))
		require.Greater(t, service.since("p2", time.Now().Add(-2*time.Second)), 5, "one alone stops nobody else")
		require.Nil(t, limits[2].Status().Paused)

		service.set("p1", "50")
		told := time.Now()
		time.Sleep(3 * time.Second)
		for i, th := range limits {
			paused := th.Status().Paused
			require.NotNil(t, paused, "p%d", i)
			require.WithinDuration(t, told.Add(25*time.Second), paused.Until, 4*time.Second, "as long as both were told")
			require.Equal(t, "the service answered with status 429", paused.Reason)
		}
		time.Sleep(21 * time.Second)
		for i := range limits {
			require.Zero(t, service.since(fmt.Sprint("p", i), told.Add(3*time.Second)), "p%d calls in the pause", i)
		}
		time.Sleep(10 * time.Second)
		for i, th := range limits {
			require.Nil(t, th.Status().Paused)
			require.Equal(t, i != 1, service.since(fmt.Sprint("p", i), told.Add(24*time.Second)) > 5, "p%d", i)
		}
		require.Equal(t, 1, limits[1].Status().Waiting, "what it was told beyond that it waits for itself")
	})
}

// callUntil calls again and again for one processor, until ctx ends.
func callUntil(ctx context.Context, tr http.RoundTripper, id string) {
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+id, http.NoBody)
		if err != nil {
			return
		}
		if res, err := tr.RoundTrip(req); err == nil {
			_ = res.Body.Close()
		}
	}
}
