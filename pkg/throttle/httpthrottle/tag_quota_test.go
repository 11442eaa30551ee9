package httpthrottle_test

import (
	"context"
	"errors"
	"net/http"
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

// Whatever a request makes of its tag, it draws for one: the quota of tags that have none of their own. Neither an error nor a pause
// remembers a long name. A function that panics draws nothing.
func TestHostileTagsOfCalls(t *testing.T) {
	for name, tag := range quotatest.Hostile() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th := quotatest.New(t)
				time.Sleep(time.Second)
				calls := 0
				base := baseFunc(func(req *http.Request) (*http.Response, error) {
					if calls++; calls == 1 {
						return fine(req)
					}
					res, err := fine(req)
					res.StatusCode, res.Header = http.StatusTooManyRequests, http.Header{"Retry-After": {"30"}}
					return res, err
				})
				client := &http.Client{Transport: httpthrottle.NewTransport(base, th, byTenant, httpthrottle.WithMaxAttempts(1)), Timeout: 10 * time.Second}
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
	transport := httpthrottle.NewTransport(fine, th, httpthrottle.WithTag(func(*http.Request) string { panic("mine") }))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://example.invalid", http.NoBody)
	require.NoError(t, err)
	require.PanicsWithValue(t, "mine", func() { _, _ = transport.RoundTrip(req) })
	require.Empty(t, quotatest.Used(th))
}
