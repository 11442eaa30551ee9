package throttle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
)

// A cost below zero is a mistake for every limiter and every way to draw; one of zero is granted.
func TestNegativeCosts(t *testing.T) {
	plain := whole(t, Limit{Max: 10, Burst: 10})
	quotas := quotaed(t, Limit{Max: 10}, Quotas{Tags: map[string]Quota{"a": {Total: 5}}})
	slots := flight(t, 3)
	free := whole(t, Limit{})
	for name, l := range map[string]Limiter{
		"a limit": plain, "no limit": free, "slots": slots, "quotas": quotas, "a tag": quotas.ForTag("a"), "another tag": quotas.ForTag("b"),
		"tags": quotas.ForTags("a", "b"), "all": All(plain, slots), "all with a tag": All(quotas.ForTag("a"), slots), "per call": PerCall(plain),
		"weighed": Weigh(plain, func(n int) int { return 2 * n }), "all of nothing": All(), "a rate": FromRate(rate.NewLimiter(1, 9)),
		"all with a rate": All(plain, FromRate(rate.NewLimiter(1, 9))), "no rate": FromRate(nil),
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{-1, -1 << 63} {
				_, err := l.Acquire(t.Context(), n)
				require.ErrorIs(t, err, ErrNegative)
				require.NotErrorIs(t, err, ErrThrottled)
				_, err = l.AcquireUpTo(t.Context(), n)
				require.ErrorIs(t, err, ErrNegative)
				deny(t, l, n)
			}
			p := acquire(t, l, 0)
			require.Zero(t, p.N())
			p.Cancel()
			p, err := l.AcquireUpTo(t.Context(), 0)
			require.NoError(t, err)
			p.Cancel()
			take(t, l, 0).Cancel()
		})
	}
	_, err := plain.Acquire(t.Context(), -1)
	require.EqualError(t, err, "numathrottle: n is -1, allowed: 0 or more: the cost is below zero")
}

func TestLimitString(t *testing.T) {
	for want, l := range map[string]Limit{
		"no limit": {}, "10 per 1s": {Max: 10}, "600 per 1m, burst 10, hard": {Max: 600, Per: time.Minute, Burst: 10, Hard: true},
		"5 per 1h30m, strict, 3 reserved ahead": {Max: 5, Per: 90 * time.Minute, Strict: true, MaxReserved: 3},
		"7 per 1h, from 2, ramp of 1m1s, relaxed, adaptive": {
			Max: 7, Per: time.Hour, Min: 2, RampUpDuration: 61 * time.Second, Mode: RampRelaxed{}, Adaptive: true,
		},
		"8 per 100ms": {Max: 8, Per: 100 * time.Millisecond},
	} {
		require.Equal(t, want, l.String())
	}
}
