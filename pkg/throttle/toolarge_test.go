package throttle

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A draw that is larger than any can be is refused, and is no demand: an idle processor stays idle, whatever a wrong
// cost asks for.
func TestADrawThatCanNeverBeGrantedIsNoDemand(t *testing.T) {
	one := func(n int) func(*testing.T, Limiter) { return func(_ *testing.T, l Limiter) { _, _ = l.TryAcquire(n) } }
	never := map[string]func(*testing.T, Limiter){
		"one more than the largest": one(11),
		"any number":                one(math.MaxInt),
		"waiting":                   func(t *testing.T, l Limiter) { _, _ = l.Acquire(timeout(t, time.Second), 11) },
		"less than nothing":         one(math.MinInt),
		"up to less than nothing":   func(t *testing.T, l Limiter) { _, _ = l.AcquireUpTo(t.Context(), -5) },
	}
	limits := map[string]Limit{
		"max": {Max: 10, Burst: 3}, "burst": {Max: 3, Burst: 10}, "hard": {Max: 100, Burst: 10, Hard: true},
		"per hour": {Max: 10, Per: time.Hour},
	}
	for name, draw := range never {
		t.Run(name, func(t *testing.T) {
			for kind, limit := range limits {
				synctest.Test(t, func(t *testing.T) {
					th, s := scripted(t, limit, 1)
					requireIdle(t, kind, th, s, th, draw)
					requireIdle(t, kind+" in All", th, s, All(th, whole(t, Limit{Max: 1e6, Burst: 1e6})), draw)
					requireIdle(t, kind+" behind another", th, s, All(whole(t, Limit{Max: 1e6, Burst: 1e6}), th), draw)
					if name == "waiting" {
						return // it may well be had of another limit
					}
					// Another one that can never grant it, while this one lacks tokens too.
					small := All(th, Weigh(whole(t, Limit{Max: 1}), func(int) int { return 2 }))
					drain(th)
					_, _ = small.TryAcquire(5)
					require.EqualValues(t, 1, th.Status().Refused, "%s: that of drain alone", kind)
				})
			}
			synctest.Test(t, func(t *testing.T) {
				th, c := issued(t, Limit{Max: 10, Per: time.Minute, Strict: true})
				requireIdle(t, "issued", th, c.script, th, draw)
				require.Zero(t, c.mint.asked(), "no slot is asked for")
			})
			synctest.Test(t, func(t *testing.T) {
				s := &script{first: limit.Lease{Share: wholeShare}}
				f := flight(t, 10, WithSharer(s))
				for kind, l := range map[string]Limiter{"in flight": f, "in flight in All": All(f, full(t, 1e6))} {
					_ = slotHolder{f}.Report(time.Second)
					draw(t, l)
					require.Zero(t, slotHolder{f}.Report(time.Second).Demand, kind)
					require.Zero(t, f.Status().Refused, kind)
					require.Zero(t, s.pokes.Load(), kind)
				}
			})
		})
	}
}

// requireIdle checks that a draw which can never be granted leaves a Throttle as idle as it was.
func requireIdle(t *testing.T, name string, th *Throttle, s *script, l Limiter, draw func(*testing.T, Limiter)) {
	t.Helper()
	time.Sleep(10 * time.Second)
	_ = rateHolder{th}.Report(2 * time.Second)
	for range 5 {
		time.Sleep(time.Second)
		draw(t, l)
		require.Zero(t, rateHolder{th}.Report(2*time.Second).Demand, name)
	}
	require.Zero(t, s.pokes.Load(), name)
	require.Zero(t, th.Status().Refused, name)
	require.Zero(t, rateHolder{th}.Report(0).Usage.Refused, name)
}
