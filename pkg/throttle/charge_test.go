package throttle

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// What is around a limiter and shows it does not keep it from being charged: with quotas, a limit on requests and slots together.
func TestChargesReachWhatALimiterIsAround(t *testing.T) {
	for name, around := range map[string]func(t *testing.T, l Limiter) Limiter{
		"as it is":   func(_ *testing.T, l Limiter) Limiter { return l },
		"wrapped":    func(_ *testing.T, l Limiter) Limiter { return shown{shown{l}} },
		"within":     func(t *testing.T, l Limiter) Limiter { return All(shown{l}, full(t, 1_000_000)) },
		"weighed":    func(_ *testing.T, l Limiter) Limiter { return Weigh(shown{l}, func(n int) int { return n }) },
		"seen twice": func(_ *testing.T, l Limiter) Limiter { return All(shown{l}, l) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th := whole(t, Limit{Max: 100}, WithQuotas(Quotas{Tags: map[string]Quota{"acme": {Total: 50}}}))
				requests, slots := full(t, 1000), flight(t, 2)
				l := around(t, ForTags(All(th, PerCall(requests), PerCall(slots)), "acme"))
				time.Sleep(time.Second)
				begun := requests.Status().Tokens
				require.NoError(t, probe(l))
				for range 10 {
					require.NotErrorIs(t, Charge(l, 1000), ErrNotCharged)
				}
				require.Equal(t, 2, freeSlots(slots), "nobody has a slot")
				if name == "seen twice" {
					return // it costs twice, as a draw does
				}
				require.InDelta(t, begun-10, requests.Status().Tokens, 1)
				e := &Error{}
				require.ErrorAs(t, probe(l), &e)
				require.Equal(t, "acme", e.Tag)
				require.Greater(t, e.RetryAfter, 90*time.Second)
				time.Sleep(150 * time.Second)
				require.ErrorAs(t, probe(l), &e, "the limit has paid, and the tag has not")
				require.Equal(t, ReasonQuota, e.Reason)
				require.NoError(t, probe(shown{slots}))
				repay(l, 10_000)
				time.Sleep(2 * time.Second)
				require.NoError(t, probe(l))
			})
		})
	}
}

func freeSlots(f *InFlight) int {
	st := f.Status()
	return st.Slots - st.InUse
}

// A limiter that shows nothing is drawn from, and holds nothing afterwards.
func TestAChargeOfAnotherLimiterHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, n := range []int{1, 5, 1000} { // what it has, and more
			th, slots := full(t, 10), flight(t, 1)
			require.NoError(t, Charge(hidden{All(th, PerCall(slots))}, n))
			require.Equal(t, 1, freeSlots(slots))
			require.InDelta(t, 10-n, th.Status().Tokens, 0.1)
		}
	})
}

// One that shows itself ends nothing, and what embeds a limiter is as it.
func TestChargesOfOddLimiters(t *testing.T) {
	th := whole(t, Limit{Max: 1, Per: time.Hour})
	require.ErrorIs(t, Charge(endless{hidden{th}}, 1), ErrNotCharged, "it has no token")
	require.NotErrorIs(t, Charge(embedded{th}, 2), ErrNotCharged)
	require.InDelta(t, -2, th.Status().Tokens, 0.1)
	other := hidden{whole(t, Limit{Max: 1, Per: time.Hour})}
	both := Charge(All(th, other), 1)
	require.ErrorIs(t, both, ErrNotCharged, "the other one has no token")
	e := &Error{}
	require.ErrorAs(t, both, &e, "and this one had none before")
	require.Equal(t, ReasonLimit, e.Reason)
	require.InDelta(t, -3, th.Status().Tokens, 0.1)
	require.Error(t, Charge(other, 0), "it is a probe, also of other limiters")
	repay(embedded{th}, 4)
	require.InDelta(t, 1, th.Status().Tokens, 0.1)
	require.NoError(t, probe(embedded{th}))
}
