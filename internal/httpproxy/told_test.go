package httpproxy

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// What a service asks for reaches the limit, through the bound on waits: so the pool may pause.
func TestARetryAfterReachesTheLimit(t *testing.T) {
	u := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
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
	require.Len(t, u.requests(), 1)
}

// What a service refuses to one tenant holds back no other, whether there are quotas or not.
func TestARetryAfterOfATenantHoldsBackNoOther(t *testing.T) {
	for name, opts := range map[string][]throttle.Option{
		"no quotas": nil,
		"quotas":    {throttle.WithQuotas(throttle.Quotas{Tags: map[string]throttle.Quota{"acme": {}}})},
	} {
		t.Run(name, func(t *testing.T) {
			u := serve(t, func(w http.ResponseWriter, r *http.Request, _ int) {
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
			require.Len(t, u.requests(), 3, "the second one of acme was not sent")
			_, held := th.Throttled()
			require.False(t, held)
		})
	}
}
