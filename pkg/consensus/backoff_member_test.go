package consensus_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/internal/world"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A provider accepts so many calls per second, with a burst of a tenth of a second and
// at least three.
type provider struct {
	mu                sync.Mutex
	rate, level       float64
	at                time.Time
	accepted, refused int
	overloaded        bool // what it refuses, it refuses because it has too much to do
}

func (s *provider) take() throttle.Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.level = min(s.level+s.rate*now.Sub(s.at).Seconds(), max(3, s.rate/10))
	s.at = now
	if s.level < 1 {
		s.refused++
		if s.overloaded {
			return throttle.OutcomeOverloaded
		}
		return throttle.OutcomeRefused
	}
	s.level--
	s.accepted++
	return throttle.OutcomeAccepted
}

// set changes what the provider can do, and returns what was accepted and refused since the last time.
func (s *provider) set(rate float64) (accepted, refused int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	accepted, refused = s.accepted, s.refused
	s.accepted, s.refused, s.rate = 0, 0, rate
	return accepted, refused
}

// calling joins a processor whose callers call a provider; bad: it is refused everything.
func calling(t *testing.T, s driver.Store, id string, l throttle.Limit, callers int, p *provider, bad bool) *node {
	t.Helper()
	n := limited(t, s, id, l, 0)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for {
				permit, err := n.th.Acquire(ctx, 1)
				if err != nil {
					return
				}
				o := throttle.OutcomeRefused
				time.Sleep(time.Duration(20+rand.IntN(30)) * time.Millisecond)
				if !bad {
					o = p.take()
				}
				time.Sleep(20 * time.Millisecond)
				n.used.Add(int64(permit.N()))
				permit.Report(o)
			}
		})
	}
	n.stop = func() {
		cancel()
		wg.Wait()
	}
	t.Cleanup(n.stop)
	return n
}

var falling = throttle.Limit{Max: 200, Adaptive: true}

// A service that can do a quarter for a minute of four: the pool uses 0.95 of what it can do, less
// than one call in a hundred is refused, and 80 % is used again within ten seconds.
func TestPoolFollowsTheService(t *testing.T) {
	testkit.SkipRace(t, "it measures; TestPoolFollowsAnOverloadedService runs with it")
	testkit.SkipShort(t, "TestPoolFollowsAnOverloadedService runs")
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		p := &provider{rate: 200, at: time.Now()}
		var nodes []*node
		for i := range 8 {
			nodes = append(nodes, calling(t, s, fmt.Sprint("p", i), falling, 4, p, false))
		}
		time.Sleep(20 * time.Second)
		require.Zero(t, nodes[0].m.View().Cuts, "what is refused while the pool begins is little")
		p.set(200)
		var accepted, refused int
		pass := func(d time.Duration, next float64) (in int) {
			time.Sleep(d)
			in, out := p.set(next)
			accepted, refused = accepted+in, refused+out
			return in
		}
		require.InDelta(t, 200*60, pass(time.Minute, 50), 200)
		low := pass(time.Minute, 200)
		require.GreaterOrEqual(t, low, 50*60*85/100)
		requireBelow(t, 110, nodes...)
		for _, n := range nodes {
			st := n.th.Status()
			require.True(t, st.Lease.Adapted)
			require.InDelta(t, nodes[0].m.View().Cuts, st.Lease.Cuts, 1)
		}
		pass(9*time.Second, 200)
		require.GreaterOrEqual(t, pass(time.Second, 200), 160, "within ten seconds")
		pass(10*time.Second, 200)
		require.InDelta(t, 200, nodes[0].ceiling(), 0, "and then all")
		require.False(t, nodes[0].th.Status().Lease.Adapted)
		pass(100*time.Second, 200)
		t.Logf("%d of %d in the low minute; refused %d of %d", low, 50*60, refused, accepted+refused)
		require.GreaterOrEqual(t, float64(accepted), 0.95*(180*200+60*50))
		require.Less(t, float64(refused), 0.01*float64(accepted+refused))
	})
}

// A service that says that it is overloaded is followed as one that refuses what is too much.
func TestPoolFollowsAnOverloadedService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		p := &provider{rate: 200, at: time.Now(), overloaded: true}
		nodes := fleet(t, s, 4, falling, p)
		idle := limited(t, s, "idle", falling, 0)
		time.Sleep(20 * time.Second)
		require.Zero(t, idle.m.View().Cuts)
		p.set(50)
		time.Sleep(30 * time.Second)
		for _, n := range nodes {
			require.Positive(t, n.th.Status().Backoff.Overloaded)
			require.Zero(t, n.th.Status().Backoff.Refused)
		}
		requireBelow(t, 110, append(nodes, idle)...)
		for _, n := range append(nodes, idle) {
			require.Positive(t, n.m.View().Cuts)
		}
		p.set(200)
		time.Sleep(30 * time.Second)
		require.InDelta(t, 200, idle.ceiling(), 0)
	})
}

// requireBelow looks for five seconds: at a moment a ceiling may be high, for it rises until a call is refused.
func requireBelow(t *testing.T, most float64, nodes ...*node) {
	t.Helper()
	var ceilings []float64
	for range 50 {
		ceilings = nil
		for _, n := range nodes {
			ceilings = append(ceilings, n.ceiling())
		}
		if slices.Max(ceilings) < most {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	require.Less(t, slices.Max(ceilings), most, "%v", ceilings)
}

// fleet joins processors that call one provider.
func fleet(t *testing.T, s driver.Store, n int, l throttle.Limit, p *provider) (nodes []*node) {
	t.Helper()
	for i := range n {
		nodes = append(nodes, calling(t, s, fmt.Sprint("p", i), l, 4, p, false))
	}
	return nodes
}

// One processor that is refused everything for a reason of its own slows down itself, and
// nobody else, where at least two others make calls.
func TestOneBadProcessorCannotCutThePool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		p := &provider{rate: 1000, at: time.Now()}
		nodes := fleet(t, s, 2, falling, p)
		time.Sleep(time.Second) // alone in the pool, a bad one would cut it
		bad := calling(t, s, "bad", falling, 4, p, true)
		time.Sleep(30 * time.Second)
		for _, n := range nodes {
			require.Zero(t, n.m.View().Cuts)
			require.InDelta(t, 200, n.ceiling(), 0)
			require.InDelta(t, 1, n.th.Status().Backoff.Part, 0)
		}
		require.Less(t, bad.th.Status().Backoff.Part, 0.5)
		require.InDelta(t, 200, bad.ceiling(), 0)
		for _, n := range nodes {
			n.stop()
		}
		time.Sleep(30 * time.Second)
		require.Zero(t, bad.m.View().Cuts, "nor when the others make no calls")
		require.NoError(t, nodes[0].th.Close())
		time.Sleep(30 * time.Second)
		require.Positive(t, bad.m.View().Cuts, "with another one there is nothing to compare with")
		calling(t, s, "q0", falling, 4, p, false)
		calling(t, s, "q1", falling, 4, p, false)
		time.Sleep(30 * time.Second)
		require.InDelta(t, 200, bad.ceiling(), 0, "with others it rises again")
	})
}

// Who joins, or restarts, is held to the same ceiling at once; and a pool that everybody
// has left begins with the whole limit.
func TestCeilingIsThePools(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		p := &provider{rate: 20, at: time.Now()}
		nodes := fleet(t, s, 4, falling, p)
		time.Sleep(30 * time.Second)
		late := calling(t, s, "late", falling, 4, p, false)
		for range 30 {
			time.Sleep(100 * time.Millisecond)
			require.True(t, late.share() == 0 || late.ceiling() < 100, "%v", late.ceiling())
		}
		require.Positive(t, late.share())
		other := limited(t, s, "other", throttle.Limit{Max: 200}, 0)
		time.Sleep(3 * time.Second)
		require.InDelta(t, 200, other.ceiling(), 0, "a limit that is not adaptive")
		for _, n := range append(nodes, late, other) {
			n.stop()
			require.NoError(t, n.th.Close())
		}
		time.Sleep(time.Minute)
		p.set(200)
		again := calling(t, s, "again", falling, 4, p, false)
		time.Sleep(5 * time.Second)
		require.InDelta(t, 200, again.ceiling(), 0)
	})
}

// A store that was emptied, or falls back to an older copy, gets the ceiling back.
func TestCeilingOutlivesTheStore(t *testing.T) {
	for _, loss := range testkit.Some([]string{"wiped", "older copy", "clock set back"}) {
		t.Run(loss, func(t *testing.T) {
			eachServer(t, func(t *testing.T, s *server) {
				p := &provider{rate: 200, at: time.Now()}
				nodes := fleet(t, s, 4, falling, p)
				time.Sleep(10 * time.Second)
				failOver := s.snapshot()
				p.set(20)
				time.Sleep(20 * time.Second)
				cuts := nodes[0].m.View().Cuts
				switch loss {
				case "wiped":
					s.wipe()
				case "older copy":
					failOver()
				case "clock set back":
					s.wipe()
					s.skew = -time.Hour
				}
				late := calling(t, s, "late", falling, 4, p, false) // knows nothing
				time.Sleep(3 * time.Second)
				for _, n := range append(nodes, late) {
					require.Less(t, n.ceiling(), 60.0, n.m.View().ID)
					require.GreaterOrEqual(t, n.m.View().Cuts, cuts-1, "the last one may be lost that not all knew")
				}
				p.set(200)
				time.Sleep(40 * time.Second)
				require.InDelta(t, 200, late.ceiling(), 0, "and goes on")
			})
		})
	}
}

// Without the store a processor goes on with its last share, and by the same law for itself.
func TestLawHoldsWithoutTheStore(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		p := &provider{rate: 200, at: time.Now()}
		nodes := fleet(t, s, 4, falling, p)
		time.Sleep(10 * time.Second)
		cut := func(is bool) {
			for _, n := range nodes {
				n.link.Cut.Store(is)
			}
		}
		cut(true)
		time.Sleep(15 * time.Second)
		require.True(t, nodes[0].th.Status().Lease.Degraded)
		p.set(50)
		time.Sleep(30 * time.Second)
		accepted, refused := p.set(200)
		require.GreaterOrEqual(t, accepted, 30*50*80/100)
		require.Less(t, refused, accepted/8)
		// Each backs off by what it alone is refused, so that at a moment one may use more than another: together they are judged.
		var parts float64
		for _, n := range nodes {
			require.Zero(t, n.m.View().Cuts)
			part := n.th.Status().Backoff.Part
			require.Less(t, part, 1.0)
			parts += part
		}
		require.Less(t, parts/float64(len(nodes)), 0.8)
		time.Sleep(15 * time.Second)
		p.set(200)
		time.Sleep(10 * time.Second)
		accepted, _ = p.set(50)
		require.GreaterOrEqual(t, accepted, 1900)

		cut(false)
		time.Sleep(30 * time.Second)
		for range 300 { // it rises between two cuts
			if nodes[0].ceiling() < 100 {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		require.Less(t, nodes[0].ceiling(), 100.0)
		cut(true)
		p.set(200)
		time.Sleep(40 * time.Second)
		p.set(200)
		time.Sleep(10 * time.Second)
		accepted, _ = p.set(200)
		require.GreaterOrEqual(t, accepted, 1900, "it rises without the pool")
		cut(false)
		time.Sleep(30 * time.Second)
		require.InDelta(t, 200, nodes[0].ceiling(), 0)
	})
}

// What the limit is without it is never exceeded, and what is reserved is always there: with
// an override and a ramp, too.
func TestAdaptiveNeverRaises(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		l := throttle.Limit{Max: 200, Adaptive: true, AdaptiveMin: 40, Min: 100, RampUpDuration: 20 * time.Second, Mode: throttle.RampScheduled{}}
		p := &provider{rate: 1000, at: time.Now()}
		nodes := fleet(t, s, 4, l, p)
		ramp := limited(t, s, "ramp", throttle.Limit{Max: 200, Min: 100, RampUpDuration: 20 * time.Second, Mode: throttle.RampScheduled{}}, 0)
		time.Sleep(2 * time.Second)
		for i := range 60 {
			if i == 30 {
				p.set(0)
			}
			time.Sleep(500 * time.Millisecond)
			for _, n := range nodes {
				require.LessOrEqual(t, n.ceiling(), ramp.ceiling()+6, "what a second of the ramp is worth")
				require.GreaterOrEqual(t, n.ceiling(), 40-1e-6)
			}
		}
		time.Sleep(30 * time.Second)
		require.InDelta(t, 40, nodes[0].ceiling(), 5)
		require.NoError(t, protocol.SaveOverride(t.Context(), s, "pool", protocol.Override{Max: 30}))
		time.Sleep(5 * time.Second)
		require.InDelta(t, 30, nodes[0].ceiling(), 1e-6, "what is reserved is no more than is allowed")
		p.set(1000)
		require.NoError(t, protocol.SaveOverride(t.Context(), s, "pool", protocol.Override{Max: 400}))
		time.Sleep(time.Minute)
		require.InDelta(t, 400, nodes[0].ceiling(), 1e-6)
	})
}

// A limit too low to be divided, and a hard one, follow the service as well.
func TestIssuedAndHardLimitsAdapt(t *testing.T) {
	testkit.SkipRace(t, "it measures; TestPoolFollowsAnOverloadedService runs with it")
	for name, l := range map[string]throttle.Limit{
		"issued": {Max: 6, Adaptive: true}, "strict": {Max: 6, Adaptive: true, Strict: true, MaxReserved: 8},
		"hard": {Max: 100, Burst: 40, Hard: true, Adaptive: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				top := l.Rate()
				p := &provider{rate: 10 * top, at: time.Now()}
				s := memstore.New()
				var nodes []*node
				for i := range 8 {
					nodes = append(nodes, calling(t, s, fmt.Sprint("p", i), l, 2, p, false))
				}
				time.Sleep(20 * time.Second)
				require.Equal(t, name != "hard", nodes[0].th.Status().Lease.Issuing)
				p.set(top / 3)
				time.Sleep(time.Minute)
				low, refused := p.set(10 * top)
				require.GreaterOrEqual(t, float64(low), 60*top/3*0.4)
				require.Less(t, refused, low*3/4)
				require.Positive(t, nodes[0].m.View().Cuts)
				time.Sleep(30 * time.Second)
				p.set(10 * top)
				time.Sleep(time.Minute)
				high, _ := p.set(10 * top)
				require.GreaterOrEqual(t, float64(high), 60*top*0.9)
				require.InDelta(t, float64(l.Max), nodes[0].ceiling(), 1e-6)
			})
		})
	}
}

// A service that refuses for good does not cost the store more for ever.
func TestRefusalsForGoodCostTheStoreLittle(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		c := world.NewLink(s)
		p := &provider{at: time.Now()}
		var nodes []*node
		for i := range 4 {
			nodes = append(nodes, calling(t, c, fmt.Sprint("p", i), falling, 4, p, false))
		}
		time.Sleep(30 * time.Second)
		c.Syncs.Store(0)
		time.Sleep(100 * time.Second)
		require.InDelta(t, 2, nodes[0].ceiling(), 0.5, "the least")
		require.LessOrEqual(t, c.Syncs.Load(), int64(4*100*3), "syncs of four processors in 100 s")
	})
}
