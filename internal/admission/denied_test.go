package admission_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

func TestRetryAfterIsNeverTooEarlyAndSpread(t *testing.T) {
	for _, c := range []struct{ told, least time.Duration }{
		{0, 100 * time.Millisecond}, // not known
		{time.Millisecond, 100 * time.Millisecond},
		{100 * time.Millisecond, 100 * time.Millisecond},
		{time.Second, time.Second},
		{31 * 24 * time.Hour, 31 * 24 * time.Hour},
	} {
		d := admission.Denied{Err: &throttle.Error{RetryAfter: c.told}}
		earliest, latest := d.RetryAfter(), d.RetryAfter()
		for range 1000 {
			after := d.RetryAfter()
			require.GreaterOrEqual(t, after, c.least)
			require.LessOrEqual(t, after, c.least+c.least/4)
			earliest, latest = min(earliest, after), max(latest, after)
		}
		require.Greater(t, latest-earliest, c.least/5, "spread over nearly a quarter of %s", c.least)
	}
}

func TestDeniedSaysWhatTheLimiterSaid(t *testing.T) {
	d := &admission.Denied{Err: &throttle.Error{Reason: throttle.ReasonNoShare, Limit: "calls", Tag: "tenant", Cost: 3}}
	require.ErrorIs(t, d, throttle.ErrThrottled)
	require.ErrorContains(t, d, `limit "calls": tag "tenant": 3 tokens cannot be had in time (no_share)`)
}
