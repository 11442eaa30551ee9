package throttle

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// Tags plan with the rate of the share in force, or without one with that of the limit.
func TestRateForThePlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 100}, 0.5)
		rate := func() float64 { return th.perSecond(th.gate.Now()) }
		require.InDelta(t, 50, rate(), 1e-6)
		s.lend(0.25, time.Second)
		require.InDelta(t, 25, rate(), 1e-6)
		time.Sleep(2 * time.Second)
		require.InDelta(t, 100, rate(), 1e-6, "the lease is over")
		slow, _ := issued(t, Limit{Max: 10, Strict: true})
		require.InDelta(t, 10, slow.perSecond(0), 1e-6, "tokens are issued")
	})
}

// An even share earns tokens in their time, rounded up as a wait is, and one nanosecond less is too short.
func TestRateEarnsWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 100, Burst: 10}, 0.5)
		for _, tc := range []struct {
			l     limit.Lease
			n     int
			takes time.Duration
		}{
			{l: limit.Lease{Share: wholeShare / 2}, n: 10, takes: 200*time.Millisecond + 1},
			{l: limit.Lease{Share: wholeShare / 10, Even: wholeShare / 4}, n: 10, takes: 400 * time.Millisecond},
			{l: limit.Lease{Share: wholeShare, Even: wholeShare / 4}, n: 10, takes: 400 * time.Millisecond},
		} {
			s.h.Lease(tc.l)
			require.True(t, th.earnsWithin(tc.n, tc.takes), "%+v", tc)
			require.False(t, th.earnsWithin(tc.n, tc.takes-1), "%+v", tc)
		}
		s.h.Lease(limit.Lease{})
		require.False(t, th.earnsWithin(1, time.Hour), "never")
	})
}

// A limiter with a clock of its own never reads the machine's.
func TestRateByAClockOfItsOwn(t *testing.T) {
	c := &manualClock{now: time.Unix(1_000_000_000, 0)} // long ago
	th := whole(t, Limit{Max: 10, Burst: 5}, withClock(c))
	deny(t, th, 1)
	c.advance(101 * time.Millisecond)
	take(t, th, 1)
	deny(t, th, 1)
}

// Without a limit a permit holds what was asked for, but no negative number.
func TestRateWithoutALimit(t *testing.T) {
	th := whole(t, Limit{})
	for n, want := range map[int]int{0: 0, 1: 1, 1 << 40: 1 << 40, -1: 0} {
		p, ok := th.TryAcquire(n)
		require.Equal(t, n >= 0, ok)
		require.Equal(t, want, p.N())
	}
}

// Callers that wait for tags of their own are not held up by the limit.
func TestLimitHoldsNobodyUpThatWaitsForATag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := quotaed(t, Limit{Max: 100}, tagsOf(map[string]Quota{"a": {Total: 1, Burst: 1}}))
		call := beginWith(th.ForTag("a").Acquire, 1, 0)
		defer call.cancel()
		time.Sleep(200 * time.Millisecond)
		require.Equal(t, 1, th.Status().Waiting)
		own, held, _ := th.holdUp()
		require.False(t, held)
		require.Zero(t, own.Waiting)
		require.Zero(t, own.Longest)
	})
}
