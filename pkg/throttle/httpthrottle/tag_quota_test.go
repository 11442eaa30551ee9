package httpthrottle_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/quotatest"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// tenant is the header that has the tag.
const tenant = "Tenant"

var byTenant = httpthrottle.WithTag(func(r *http.Request) string { return r.Header.Get(tenant) })

// get sends a request for a tag.
func get(ctx context.Context, client *http.Client, url, tag string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	req.Header[tenant] = []string{tag} // as it is
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// Over a real server: a call whose tag is exhausted or paused waits by itself, and the service sees no more of a tag than its quota.
func TestATagThatIsHeldBackHoldsUpNoOtherCall(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{}
	server, _ := serveHTTP(t, func(_ int, _ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen[r.Header.Get(tenant)]++
	})
	th := quotatest.New(t)
	client := &http.Client{Transport: httpthrottle.NewTransport(&http.Transport{}, th, byTenant)}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithCancel(t.Context())
	held, free := make(chan error, 15), make(chan error, 5)
	for range 5 {
		for _, tag := range []string{quotatest.Total, quotatest.Paused, quotatest.Budget} {
			go func() { held <- get(ctx, client, server.URL, tag) }()
		}
		go func() { free <- get(ctx, client, server.URL, quotatest.Free) }()
	}
	for range 5 {
		require.NoError(t, <-free)
	}
	for range quotatest.Amount {
		require.NoError(t, <-held)
	}
	require.Empty(t, held)
	cancel()
	for range 15 - quotatest.Amount {
		require.ErrorIs(t, <-held, context.Canceled)
	}
	require.Equal(t, map[string]int{quotatest.Free: 5, quotatest.Budget: quotatest.Amount}, seen)
	require.Equal(t, map[string]int64{quotatest.Free: 5, quotatest.Budget: quotatest.Amount}, quotatest.Used(th))
}

// A call that cannot be made before its deadline fails at once, and says for which tag, why, and when to try again.
func TestAnErrorOfACallNamesTagReasonAndTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := quotatest.New(t)
		client := &http.Client{Transport: httpthrottle.NewTransport(serve(answer{status: 200}), th, byTenant), Timeout: time.Minute}
		began := time.Now()
		for range quotatest.Amount {
			require.NoError(t, get(t.Context(), client, "http://example.invalid", quotatest.Budget))
		}
		for _, tag := range []string{quotatest.Total, quotatest.Paused, quotatest.Budget} {
			require.NoError(t, quotatest.Fault(get(t.Context(), client, "http://example.invalid", tag), tag))
		}
		require.NoError(t, get(t.Context(), client, "http://example.invalid", quotatest.Free))
		require.Less(t, time.Since(began), time.Millisecond, "the first token of all has to come")
	})
}

// What the service refuses to one tag holds back that tag alone: also where its limit is one of several.
func TestARefusalOfATagHoldsBackNoOther(t *testing.T) {
	for name, join := range map[string]func(*throttle.Throttle, *throttle.Throttle) throttle.Limiter{
		"one limit": func(th, _ *throttle.Throttle) throttle.Limiter { return th },
		"several": func(th, requests *throttle.Throttle) throttle.Limiter {
			return throttle.All(th, throttle.PerCall(requests))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th := quotatest.New(t)
				requests, err := throttle.New(throttle.Limit{Max: 1000})
				require.NoError(t, err)
				defer func() { require.NoError(t, requests.Close()) }()
				time.Sleep(time.Second)
				s := serve(answer{status: 429, header: http.Header{"Retry-After": {"30"}}}, answer{status: 200})
				transport := httpthrottle.NewTransport(s, join(th, requests), byTenant, httpthrottle.WithMaxAttempts(1))
				client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
				began := time.Now()
				require.NoError(t, get(t.Context(), client, "http://example.invalid", quotatest.Budget)) // the refusal, as it came
				require.NoError(t, get(t.Context(), client, "http://example.invalid", quotatest.Free))
				require.Zero(t, time.Since(began))
				err = get(t.Context(), client, "http://example.invalid", quotatest.Budget)
				e, ok := errors.AsType[*throttle.Error](err)
				require.True(t, ok, err)
				require.Equal(t, throttle.ReasonPause, e.Reason)
				require.Equal(t, quotatest.Budget, e.Tag)
				require.Equal(t, 30*time.Second, e.RetryAfter)
			})
		})
	}
}

// Whatever a request makes of its tag, it draws for one: the quota of tags that have none of their own. Neither an error nor a pause
// remembers a long name. A function that panics draws nothing.
func TestHostileTagsOfCalls(t *testing.T) {
	for name, tag := range quotatest.Hostile() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th := quotatest.New(t)
				time.Sleep(time.Second)
				s := serve(answer{status: 200}, answer{status: 429, header: http.Header{"Retry-After": {"30"}}})
				client := &http.Client{Transport: httpthrottle.NewTransport(s, th, byTenant, httpthrottle.WithMaxAttempts(1)), Timeout: 10 * time.Second}
				for range quotatest.Amount {
					require.NoError(t, get(t.Context(), client, "http://example.invalid", tag))
				}
				err := get(t.Context(), client, "http://example.invalid", tag)
				e, ok := errors.AsType[*throttle.Error](err)
				require.True(t, ok, err)
				require.Equal(t, throttle.ReasonPause, e.Reason)
				require.Less(t, len(e.Error()), 200)
				require.Equal(t, map[string]int64{"": quotatest.Amount}, quotatest.Used(th))
				time.Sleep(time.Minute)
				e, ok = errors.AsType[*throttle.Error](get(t.Context(), client, "http://example.invalid", tag))
				require.True(t, ok)
				require.Equal(t, throttle.ReasonBudget, e.Reason)
				require.Empty(t, e.Tag)
			})
		})
	}
	th := quotatest.New(t)
	transport := httpthrottle.NewTransport(serve(answer{status: 200}), th, httpthrottle.WithTag(func(*http.Request) string { panic("mine") }))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://example.invalid", http.NoBody)
	require.NoError(t, err)
	require.PanicsWithValue(t, "mine", func() { _, _ = transport.RoundTrip(req) })
	require.Empty(t, quotatest.Used(th))
}
