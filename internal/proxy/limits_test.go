package proxy_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/proxy"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A draw takes its cost of one limit, and one of each of the others.
func TestLimits(t *testing.T) {
	l, err := proxy.OpenLimits(t.Context(), &proxy.LimitConfig{
		Pool:              numathrottle.Config{Limit: throttle.Limit{Max: 100_000, Burst: 100_000}, Store: "memory://" + rand.Text(), Pool: "p", ID: "i"},
		RequestsPerMinute: 60_000, InFlight: 2,
	}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	first, err := l.Limiter.Acquire(ctx, 500)
	require.NoError(t, err)
	_, err = l.Limiter.Acquire(ctx, 500)
	require.NoError(t, err)
	require.EqualValues(t, 1000, l.Main.Status().Granted)
	_, ok := l.Limiter.TryAcquire(1)
	require.False(t, ok, "two calls are in flight")
	first.Settle(500)
	require.Eventually(t, func() bool { _, ok := l.Limiter.TryAcquire(1); return ok }, 10*time.Second, time.Millisecond)
	require.NoError(t, l.Close())
}

func TestNoLimit(t *testing.T) {
	l, err := proxy.OpenLimits(t.Context(), &proxy.LimitConfig{}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.True(t, throttle.Unlimited(l.Limiter))
	require.NoError(t, l.Close())
}

// Nobody is warned of a missing limit where there is another one.
func TestALimitOnRequestsAloneIsALimit(t *testing.T) {
	var logs bytes.Buffer
	c := proxy.LimitConfig{Pool: numathrottle.Config{Store: "memory://alone", Pool: "p", ID: "i"}, RequestsPerMinute: 60}
	l, err := proxy.OpenLimits(t.Context(), &c, slog.New(slog.NewTextHandler(&logs, nil)))
	require.NoError(t, err)
	require.False(t, throttle.Unlimited(l.Limiter))
	require.NoError(t, l.Close())
	require.NotContains(t, logs.String(), "there is no limit")

	c.Pool.Limit.Per = time.Hour // of a limit that was forgotten
	l, err = proxy.OpenLimits(t.Context(), &c, slog.New(slog.NewTextHandler(&logs, nil)))
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.Contains(t, logs.String(), "there is no limit")
}

func TestAFaultOfALaterLimitClosesTheEarlier(t *testing.T) {
	_, err := proxy.OpenLimits(t.Context(), &proxy.LimitConfig{
		Pool:              numathrottle.Config{Limit: throttle.Limit{Max: 1}, Store: "memory://fault", Pool: "p", ID: "i"},
		RequestsPerMinute: 2_000_000_000,
	}, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "2000000000")
}
