package proxy_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/internal/proxy"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// The limits on requests and on calls in flight have the quotas that name them.
func TestQuotasOfRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := proxy.LimitConfig{RequestsPerMinute: 600, QuotasOf: opening.QuotasOf{Limits: map[string]throttle.Quotas{
			"requestsPerMinute": {Tags: map[string]throttle.Quota{"acme": {Blocked: true}}},
			"inFlight":          {Tags: map[string]throttle.Quota{"big": {Blocked: true}}},
		}}}
		c.InFlight = 8
		c.Pool.Store, c.Pool.Pool, c.Pool.ID = "memory://quotas-of-requests", "p", "a"
		l, err := proxy.OpenLimits(t.Context(), &c, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		defer func() { require.NoError(t, l.Close()) }()
		time.Sleep(20 * time.Second)
		for tag, granted := range map[string]bool{"acme": false, "big": false, "other": true} {
			_, ok := throttle.ForTags(l.Limiter, tag).TryAcquire(1)
			require.Equal(t, granted, ok, tag)
		}
	})
}

func TestQuotasOfLimitsThatAreNotSet(t *testing.T) {
	c := proxy.LimitConfig{InFlight: 2, QuotasOf: opening.QuotasOf{Limits: map[string]throttle.Quotas{
		"requestsPerMinute": {Other: throttle.Quota{Total: 1}}, "inFlight": {Other: throttle.Quota{Reserved: 3, Per: time.Minute}},
	}}}
	faults := c.CheckQuotas()
	require.Len(t, faults, 2)
	require.EqualError(t, faults[0], "numathrottle: quotas name requestsPerMinute, but there is no such limit, allowed: with requestsPerMinute")
	require.ErrorContains(t, faults[1], "quotas of inFlight cannot be kept: quotas.other.per is 1m0s, allowed: none on a limit on calls in flight")
	c.QuotasOf.Limits = map[string]throttle.Quotas{"inFlight": {Other: throttle.Quota{Reserved: 3}}}
	require.ErrorContains(t, c.CheckQuotas()[0], "quotas reserve 3 calls in flight together, allowed: at most the limit, which is 2")
}
