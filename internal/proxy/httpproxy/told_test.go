package httpproxy

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// What a service asks for reaches the limit, through the bound on waits: so the pool may pause.
func TestARetryAfterReachesTheLimit(t *testing.T) {
	u := serve(t, func(w http.ResponseWriter, _ testkit.Request, _ int) {
		w.Header().Set("Retry-After", "100")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	th, err := throttle.New(throttle.Limit{Max: 1000}, throttle.WithName("p"))
	require.NoError(t, err)
	p := start(t, Config{Upstream: u.URL, Limiter: th, MaxWait: time.Second})
	res, _ := send(t, http.MethodPost, p.url, "x")
	require.Equal(t, 429, res.StatusCode)
	require.Eventually(t, func() bool { held, ok := th.Throttled(); return ok && held.Reason == throttle.ReasonPause }, 5*time.Second, time.Millisecond)
	res, body := send(t, http.MethodPost, p.url, "x")
	require.Equal(t, 429, res.StatusCode)
	require.Equal(t, "pause", reason(t, body))
	require.Len(t, u.Requests(), 1)
}

// What a service refuses to one tenant holds back no other, whether there are quotas or not.
func TestARetryAfterOfATenantHoldsBackNoOther(t *testing.T) {
	for name, opts := range map[string][]throttle.Option{
		"no quotas": nil,
		"quotas":    {throttle.WithQuotas(throttle.Quotas{Tags: map[string]throttle.Quota{"acme": {}}})},
	} {
		t.Run(name, func(t *testing.T) {
			u := serve(t, func(w http.ResponseWriter, r testkit.Request, _ int) {
				if r.Header.Get("X-Tenant") == "acme" {
					w.Header().Set("Retry-After", "100")
					w.WriteHeader(http.StatusTooManyRequests)
				}
			})
			th, err := throttle.New(throttle.Limit{Max: 1_000_000}, opts...)
			require.NoError(t, err)
			defer th.Close()
			p := start(t, Config{Upstream: u.URL, Limiter: th, MaxWait: time.Second, Tag: "header X-Tenant"})
			for _, tenant := range []string{"acme", "beta", "acme", "beta"} {
				res, body := send(t, http.MethodPost, p.url, "x", "X-Tenant", tenant)
				if tenant == "beta" {
					require.Equal(t, 200, res.StatusCode, body)
				} else {
					require.Equal(t, 429, res.StatusCode)
				}
			}
			require.Len(t, u.Requests(), 3, "the second one of acme was not sent")
			_, held := th.Throttled()
			require.False(t, held)
		})
	}
}

// Half of the places are enough for requests that wait for one tenant: what comes above that is refused at once, and others have theirs.
func TestATenantThatWaitsLeavesPlacesForOthers(t *testing.T) {
	u := serve(t, hello)
	th, err := throttle.New(throttle.Limit{Max: 1_000_000}, throttle.WithQuotas(throttle.Quotas{
		Tags: map[string]throttle.Quota{"acme": {Total: 1, Per: 10 * time.Second}}, // the first one comes after 10 s, the third after 30
	}))
	require.NoError(t, err)
	defer th.Close()
	p := start(t, Config{Upstream: u.URL, Limiter: th, MaxWait: time.Minute, MaxRequests: 4, Tag: "header X-Tenant"})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	for range 2 {
		go func() {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, http.NoBody)
			if err == nil {
				req.Header.Set("X-Tenant", "acme")
				var res *http.Response
				if res, err = http.DefaultClient.Do(req); err == nil {
					_ = res.Body.Close()
				}
			}
			ended <- err
		}()
	}
	require.Eventually(t, func() bool {
		tags := th.Status().Tags
		return len(tags) == 1 && tags[0].Waiting == 2
	}, 10*time.Second, time.Millisecond)
	res, body := send(t, http.MethodPost, p.url, "x", "X-Tenant", "acme")
	require.Equal(t, 429, res.StatusCode)
	require.Equal(t, "quota", reason(t, body))
	require.Contains(t, body, `"tag":"acme"`)
	require.NotEmpty(t, res.Header.Get("Retry-After"))
	res, _ = send(t, http.MethodPost, p.url, "x", "X-Tenant", "beta")
	require.Equal(t, 200, res.StatusCode)
	cancel()
	for range 2 {
		require.ErrorIs(t, <-ended, context.Canceled)
	}
}
