package consensus_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// ceiling is what the whole pool may use, as this processor has it.
func (n *node) ceiling() float64 {
	st := n.th.Status()
	if st.Lease.Ceiling == 0 {
		return float64(st.Limit.Max)
	}
	return st.Lease.Ceiling
}

// watch samples the ceiling every 100 ms for d.
func watch(d time.Duration, n *node) (out []float64) {
	for range d / (100 * time.Millisecond) {
		time.Sleep(100 * time.Millisecond)
		out = append(out, n.ceiling())
	}
	return out
}

// requireNoDip fails where a ceiling falls.
func requireNoDip(t *testing.T, ceilings []float64) {
	t.Helper()
	for i := 1; i < len(ceilings); i++ {
		require.GreaterOrEqual(t, ceilings[i], ceilings[i-1]-1e-9, "after %d00 ms", i+1)
	}
}

var tenToTwenty = throttle.Limit{Max: 20, Min: 10, RampUpDuration: time.Minute, Mode: throttle.RampScheduled{}}

const deferredTime = "time of the last write"

// eachServer tells a story on a memory store's kind of server, and, without the race detector, on one that learns its time late.
func eachServer(t *testing.T, story func(t *testing.T, s *server)) {
	t.Helper()
	for _, name := range testkit.Some([]string{"own time", deferredTime}) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				s.deferred = name == deferredTime
				story(t, s)
			})
		})
	}
}

// From 10 to 20 in a minute is one more every six seconds, smoothly.
func TestRampRisesByItsSlope(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		n := limited(t, s, "a", tenToTwenty, 1)
		time.Sleep(3 * time.Second)
		require.Greater(t, n.share(), 0.0)
		before := n.ceiling()
		require.InDelta(t, 10.3, before, 0.25, "the ramp begins with the pool")
		for range 9 {
			seconds := watch(6*time.Second, n)
			requireNoDip(t, seconds)
			require.InDelta(t, before+1, n.ceiling(), 0.05, "one more every six seconds")
			before = n.ceiling()
			for i := 10; i < len(seconds); i++ {
				require.InDelta(t, 1./6, seconds[i]-seconds[i-10], 0.04, "smooth within the second")
			}
		}
		time.Sleep(6 * time.Second)
		require.InDelta(t, 20, n.ceiling(), 0, "and stays at the top")
		time.Sleep(10 * time.Minute)
		require.InDelta(t, 20, n.ceiling(), 0)
	})
}

// Several processors have one ceiling, whoever of them moves it.
func TestRampIsThePools(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		var nodes []*node
		for i := range 4 {
			nodes = append(nodes, limited(t, s, fmt.Sprint("p", i), tenToTwenty, 1))
		}
		time.Sleep(5 * time.Second)
		for range 50 {
			time.Sleep(time.Second)
			least, most := nodes[0].ceiling(), nodes[0].ceiling()
			for _, n := range nodes {
				least, most = min(least, n.ceiling()), max(most, n.ceiling())
			}
			require.LessOrEqual(t, most-least, 0.25, "at most a sync interval apart")
		}
	})
}

func TestRollingRestartDoesNotDip(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		nodes := []*node{limited(t, s, "a", tenToTwenty, 2), limited(t, s, "b", tenToTwenty, 2), limited(t, s, "c", tenToTwenty, 2)}
		time.Sleep(30 * time.Second)
		before := nodes[0].ceiling()
		require.InDelta(t, 15, before, 0.3)
		for i, n := range nodes {
			n.stop()
			require.NoError(t, n.th.Close())
			time.Sleep(2 * time.Second)
			nodes[i] = limited(t, s, fmt.Sprint("new", i), tenToTwenty, 2)
			within(t, 2*time.Second, "a share", func() bool { return nodes[i].share() > 0 })
			require.GreaterOrEqual(t, nodes[i].ceiling(), before, "the new one begins where the others are")
			requireNoDip(t, watch(2*time.Second, nodes[i]))
			before = nodes[i].ceiling()
		}
		require.InDelta(t, 17, before, 0.4, "no second of the ramp is lost")
	})
}

func TestRedeploy(t *testing.T) {
	for _, c := range []struct {
		name   string
		resume bool
		ttl    time.Duration
		gone   time.Duration
		want   float64
	}{
		{"within TTL with resumedRampUp", true, 0, 2 * time.Minute, 15},
		{"after TTL with resumedRampUp", true, time.Minute, 2 * time.Minute, 10},
		{"without resumedRampUp", false, 0, 10 * time.Second, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachServer(t, func(t *testing.T, s *server) {
				l := tenToTwenty
				l.ResumedRampUp, l.TTL = c.resume, c.ttl
				n := limited(t, s, "a", l, 1)
				time.Sleep(30 * time.Second)
				require.InDelta(t, 15, n.ceiling(), 0.4)
				n.stop()
				require.NoError(t, n.th.Close())
				time.Sleep(c.gone)
				n = limited(t, s, "b", l, 1)
				top := 0.0
				for _, x := range watch(3*time.Second, n)[2:] {
					top = max(top, x)
				}
				require.InDelta(t, c.want+0.3, n.ceiling(), 0.3)
				require.LessOrEqual(t, top, c.want+0.6, "and never higher")
			})
		})
	}
}

// With relaxed, the default, the ceiling rises in seconds with traffic and stands still
// without.
func TestRelaxedRampNeedsTraffic(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		l := tenToTwenty
		l.Mode = nil
		a, b := limited(t, s, "a", l, 0), limited(t, s, "b", l, 0)
		time.Sleep(20 * time.Second)
		require.InDelta(t, 10, a.ceiling(), 0, "nobody calls")
		b.work(t, 1)
		time.Sleep(30 * time.Second)
		require.InDelta(t, 14.8, a.ceiling(), 0.4, "that b is used counts for a")
		b.stop()
		time.Sleep(6 * time.Second)
		at := a.ceiling()
		time.Sleep(time.Minute)
		require.InDelta(t, at, a.ceiling(), 0)
	})
}

// Nothing rises in a pause, however many callers are refused: in every mode the ramp goes on where it was.
func TestRampStandsStillInAPause(t *testing.T) {
	for name, mode := range map[string]throttle.Mode{
		"scheduled": throttle.RampScheduled{}, "relaxed": nil, "onlyIfUsed": throttle.RampOnlyIfUsed{ThresholdPercentage: 50},
		"goBackN": throttle.RampGoBackN{CoolDownPeriod: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := limited(t, newServer(), "a", throttle.Limit{Max: 50, Min: 10, RampUpDuration: time.Minute, Mode: mode}, 1)
				time.Sleep(3 * time.Second)
				_, err := a.th.Pause(t.Context(), time.Now().Add(40*time.Second), "test")
				require.NoError(t, err)
				time.Sleep(2 * time.Second)
				before := a.ceiling()
				for range 300 {
					a.th.TryAcquire(1)
					time.Sleep(100 * time.Millisecond)
				}
				require.InDelta(t, before, a.ceiling(), 1, "up to a second is shown in advance")
			})
		})
	}
}

// Nor does it rise while the pool is frozen, or has no shares: the first second after it begins as low as any first second.
func TestRampStandsStillInAFreeze(t *testing.T) {
	for name, mode := range map[string]throttle.Mode{"scheduled": throttle.RampScheduled{}, "relaxed": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				l := throttle.Limit{Max: 50, Min: 10, RampUpDuration: 15 * time.Second, Mode: mode}
				old := limited(t, s, "old", l, 0)
				time.Sleep(3 * time.Second)
				require.NoError(t, old.th.Close())
				s.wipe()
				a := limited(t, s, "a", l, 3)
				waited := 0
				for ; a.share() == 0 && waited < 300; waited++ {
					time.Sleep(100 * time.Millisecond)
				}
				t.Logf("frozen for %d00 ms, ceiling %.1f", waited, a.ceiling())
				require.Greater(t, waited, 50, "it was frozen")
				require.InDelta(t, 10, a.ceiling(), 3)
				granted := a.th.Status().Granted
				time.Sleep(time.Second)
				require.LessOrEqual(t, a.th.Status().Granted-granted, int64(18))
			})
		})
	}
}

// doubt is how many seconds are judged one by one whose use is not known: a processor reports what it used since its
// sync before, which was at most a second earlier, and where that time touches two seconds each gets a part.
const doubt = 2

func TestOnlyIfUsedNeedsEnoughTraffic(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		l := throttle.Limit{Max: 200, Min: 100, RampUpDuration: time.Minute, Mode: throttle.RampOnlyIfUsed{ThresholdPercentage: 60}}
		a, b := limited(t, s, "a", l, 0), limited(t, s, "b", l, 0)
		draw := func(seconds, perSecond int) {
			for range seconds * perSecond {
				time.Sleep(time.Second / time.Duration(perSecond))
				a.th.TryAcquire(1)
			}
		}
		draw(5, 40) // a bucket starts empty: who is refused by it lacks tokens, and uses all there is
		low := b.ceiling()
		require.InDelta(t, 100, low, doubt*100./60+1e-6)
		draw(20, 40)
		require.InDelta(t, low, b.ceiling(), 0, "40 of 100 is below the threshold")
		draw(30, 90)
		require.InDelta(t, 147, b.ceiling(), 5)
		at := b.ceiling()
		draw(20, 40)
		require.InDelta(t, at, b.ceiling(), 4, "stands still")
	})
}

func TestGoBackNFalls(t *testing.T) {
	testkit.SkipRace(t, "it measures; TestRampRisesByItsSlope runs with it")
	eachServer(t, func(t *testing.T, s *server) {
		l := throttle.Limit{Max: 200, Min: 100, RampUpDuration: time.Minute, Mode: throttle.RampGoBackN{CoolDownPeriod: 10 * time.Second}}
		a := limited(t, s, "a", l, 4)
		time.Sleep(90 * time.Second)
		require.InDelta(t, 200, a.ceiling(), 0)
		a.stop()
		time.Sleep(8 * time.Second)
		require.InDelta(t, 200, a.ceiling(), doubt*100./60+1e-6, "the cool-down is not over; the last seconds may have been below the threshold")
		time.Sleep(22 * time.Second)
		require.InDelta(t, 200-27*100/60./2, a.ceiling(), 4, "half the slope for each second")
		time.Sleep(10 * time.Minute)
		require.InDelta(t, 100, a.ceiling(), 0, "never below min")
	})
}

// A store that was emptied, or that falls back to an older copy, gets the ramp back, and it
// goes on where it was.
func TestRampOutlivesTheStore(t *testing.T) {
	for _, loss := range []string{"wiped", "older copy", "clock set back"} {
		t.Run(loss, func(t *testing.T) {
			eachServer(t, func(t *testing.T, s *server) {
				a := limited(t, s, "a", tenToTwenty, 2)
				b := limited(t, s, "b", tenToTwenty, 2)
				time.Sleep(10 * time.Second)
				failOver := s.snapshot()
				time.Sleep(20 * time.Second)
				at := a.ceiling()
				switch loss {
				case "wiped":
					s.wipe()
				case "older copy":
					failOver()
				case "clock set back":
					s.wipe()
					s.skew = -time.Hour
				}
				c := limited(t, s, "c", tenToTwenty, 2) // knows nothing
				time.Sleep(3 * time.Second)
				for _, n := range []*node{a, b, c} {
					require.InDelta(t, at+0.3, n.ceiling(), 0.5, n.m.View().ID)
				}
				time.Sleep(30 * time.Second)
				require.InDelta(t, 20, a.ceiling(), 0.8, "and goes on")
				require.InDelta(t, a.ceiling(), c.ceiling(), 0.3)
			})
		})
	}
}

// A limit too low to be divided ramps up as every other: by what is used of what may be.
func TestRampOfAnIssuedLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		l := throttle.Limit{Max: 6, Min: 1, RampUpDuration: 50 * time.Second, Mode: throttle.RampOnlyIfUsed{ThresholdPercentage: 80}}
		var nodes []*node
		for i := range 10 {
			nodes = append(nodes, limited(t, s, fmt.Sprint("p", i), l, 2))
		}
		time.Sleep(5 * time.Second)
		require.True(t, nodes[0].th.Status().Lease.Issuing)
		low := used(nodes, 5*time.Second)
		require.LessOrEqual(t, low, int64(11), "less than half way up")
		time.Sleep(50 * time.Second)
		high := used(nodes, 60*time.Second)
		require.LessOrEqual(t, high, int64(361))
		require.GreaterOrEqual(t, high, int64(324))
	})
}

// Of a hard limit a low ceiling is worth less than a token for each of several processors: the ramp begins where
// each has one, and rises from there in every mode.
func TestRampOfAHardLimitBeginsWithATokenEach(t *testing.T) {
	testkit.SkipRace(t, "it measures; TestRampRisesByItsSlope runs with it")
	testkit.SkipShort(t, "TestRampRisesByItsSlope runs")
	for _, mode := range []throttle.Mode{throttle.RampGoBackN{}, throttle.RampScheduled{}, throttle.RampRelaxed{}, throttle.RampOnlyIfUsed{}} {
		t.Run(fmt.Sprintf("%T", mode), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				limit := throttle.Limit{Max: 1000, Burst: 100, Hard: true, Min: 10, RampUpDuration: 2 * time.Minute, Mode: mode}
				nodes := busy(t, s, 4, limit)
				time.Sleep(3 * time.Second)
				for _, n := range nodes {
					require.GreaterOrEqual(t, n.ceiling(), 40.0)
					require.Less(t, n.ceiling(), 200.0)
				}
				require.NotZero(t, nodes[0].used.Load()+nodes[1].used.Load())
				time.Sleep(2*time.Minute + 20*time.Second)
				requireCeiling(t, 1000, nodes...)
			})
		})
	}
}
