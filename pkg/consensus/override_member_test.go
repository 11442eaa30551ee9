package consensus_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

var thousand = throttle.Limit{Max: 1000}

// busy starts n processors of one limit and gives them time to agree.
func busy(t *testing.T, s driver.Store, n int, l throttle.Limit) (nodes []*node) {
	t.Helper()
	for i := range n {
		nodes = append(nodes, limited(t, s, fmt.Sprint("p", i), l, 8))
	}
	time.Sleep(5 * time.Second)
	return nodes
}

// requireCeiling fails unless every processor has the ceiling within one interval.
func requireCeiling(t *testing.T, want float64, nodes ...*node) {
	t.Helper()
	within(t, interval+interval/10, fmt.Sprint("a ceiling of ", want), func() bool {
		for _, n := range nodes {
			if n.ceiling() != want {
				return false
			}
		}
		return true
	})
}

func used(nodes []*node, d time.Duration) (total int64) {
	for _, n := range nodes {
		n.used.Store(0)
	}
	time.Sleep(d)
	for _, n := range nodes {
		total += n.used.Load()
	}
	return total
}

func TestOverrideIsInForceWithinOneSync(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		hundred := throttle.Limit{Max: 100}
		nodes := busy(t, s, 4, hundred)
		for _, c := range []struct {
			o    protocol.Override
			want float64
		}{
			{protocol.Override{Max: 10}, 10},
			{protocol.Override{Max: 1200, Per: time.Minute}, 20},
			{protocol.Override{Max: 500, Per: time.Second}, 500},
			{protocol.Override{Max: 6400}, 6400},
			{protocol.Override{}, 100},
		} {
			require.NoError(t, protocol.SaveOverride(t.Context(), s, "pool", c.o))
			requireCeiling(t, c.want, nodes...)
			got, err := protocol.LoadOverride(t.Context(), s, "pool")
			require.NoError(t, err)
			require.Equal(t, c.o.Max, got.Max)
			require.Equal(t, c.o.Max, nodes[0].m.View().Override.Max)
			seconds := 10.
			if c.want > 1000 {
				seconds = 1 // they are many
			}
			total := used(nodes, time.Duration(seconds)*time.Second)
			require.LessOrEqual(t, float64(total), c.want*(seconds+0.11)+8, "the burst follows in proportion")
			require.GreaterOrEqual(t, float64(total), c.want*seconds*0.98)
		}
		n := limited(t, s, "late", hundred, 1)
		require.NoError(t, protocol.SaveOverride(t.Context(), s, "pool", protocol.Override{Max: 2}))
		require.NoError(t, protocol.ClearOverride(t.Context(), s, "pool"))
		requireCeiling(t, 100, append(nodes, n)...)
	})
}

func TestNewProcessorKnowsTheOverrideFromItsFirstAnswer(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		busy(t, s, 2, thousand)
		require.NoError(t, protocol.SaveOverride(t.Context(), s, "pool", protocol.Override{Max: 100}))
		n := limited(t, s, "new", thousand, 1)
		within(t, interval, "a share", func() bool { return n.share() > 0 })
		require.InDelta(t, 100, n.ceiling(), 0)
	})
}

func TestInvalidOverrideIsRefusedWhenItIsSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		require.ErrorIs(t, protocol.SaveOverride(t.Context(), s, "pool", protocol.Override{Max: 1}), driver.ErrNoPool)
		nodes := busy(t, s, 1, thousand)
		limited(t, s, "lower", throttle.Limit{Max: 600, Per: time.Minute}, 0)
		time.Sleep(2 * time.Second)
		for _, c := range []struct {
			o    protocol.Override
			want []string
		}{
			{protocol.Override{Max: -1}, []string{"Max is -1", "0 (no override) to 1000000000"}},
			{protocol.Override{Max: 1_000_000_001}, []string{"Max is 1000000001"}},
			{protocol.Override{Max: 1, Per: time.Microsecond}, []string{"Per is 1µs", "1ms to 744h"}},
			{protocol.Override{Max: 1, Per: time.Second + 1}, []string{"Per is 1.000000001s", "whole microseconds"}},
			{protocol.Override{Max: 1_000_000_000, Per: time.Millisecond}, []string{"Max per 1ms is 1000000000", "1000000000 tokens per second"}},
			{protocol.Override{Max: 641, Per: time.Second}, []string{"Max per 1s is 641", "at most 64 times 600 per 1m", `pod "lower"`}},
			{protocol.Override{Max: 38_401}, []string{"Max per 1m is 38401", "at most 64 times 600"}},
		} {
			err := protocol.SaveOverride(t.Context(), s, "pool", c.o)
			var re *driver.RequestError
			require.ErrorAs(t, err, &re)
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
		}
		got, err := protocol.LoadOverride(t.Context(), s, "pool")
		require.NoError(t, err)
		require.Zero(t, got, "nothing was saved")
		require.NoError(t, protocol.SaveOverride(t.Context(), s, "pool", protocol.Override{Max: 38_400}))
		requireCeiling(t, 640, nodes...)
	})
}

func TestHardLimitIsLoweredAndNotRaised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		n := limited(t, s, "a", throttle.Limit{Max: 1000, Hard: true}, 1)
		time.Sleep(2 * time.Second)
		require.ErrorContains(t, protocol.SaveOverride(t.Context(), s, "pool", protocol.Override{Max: 1001}), "at most the hard limit 1000 per 1s")
		require.NoError(t, protocol.SaveOverride(t.Context(), s, "pool", protocol.Override{Max: 500}))
		requireCeiling(t, 500, n)
		require.NoError(t, n.th.Close())
		time.Sleep(time.Minute)

		soft := limited(t, s, "soft", thousand, 1)
		time.Sleep(2 * time.Second)
		require.NoError(t, protocol.SaveOverride(t.Context(), s, "pool", protocol.Override{Max: 2000}))
		hard := limited(t, s, "hard", throttle.Limit{Max: 1000, Hard: true}, 1)
		requireCeiling(t, 2000, soft)
		requireCeiling(t, 1000, hard)
	})
}

func TestWipedStoreGetsTheOverrideBack(t *testing.T) {
	for _, loss := range []string{"wiped", "older copy", "another pool's first"} {
		t.Run(loss, func(t *testing.T) {
			eachServer(t, func(t *testing.T, s *server) {
				nodes := busy(t, s, 2, thousand)
				require.NoError(t, protocol.SaveOverride(t.Context(), s, "pool", protocol.Override{Max: 300}))
				failOver := s.snapshot()
				time.Sleep(2 * time.Second)
				require.NoError(t, protocol.SaveOverride(t.Context(), s, "pool", protocol.Override{Max: 100}))
				time.Sleep(2 * time.Second)
				switch loss {
				case "wiped":
					s.wipe()
				case "older copy":
					failOver()
				default:
					s.wipe()
					nodes = append(nodes, limited(t, s, "c", thousand, 1)) // the first to come
				}
				within(t, 2*interval, "the override is on record", func() bool {
					o, err := protocol.LoadOverride(context.Background(), s, "pool")
					return err == nil && o.Max == 100
				})
				time.Sleep(2 * interval)
				requireCeiling(t, 100, nodes...)
			})
		})
	}
}

// Whoever sets or clears a limit where nothing is known of the last one has the last word.
func TestOverrideOfAnEmptyStoreStays(t *testing.T) {
	for name, set := range map[string]protocol.Override{"another": {Max: 500}, "none": {}} {
		want := float64(cmp.Or(set.Max, thousand.Max))
		t.Run(name, func(t *testing.T) {
			eachServer(t, func(t *testing.T, s *server) {
				nodes := busy(t, s, 2, thousand)
				for _, n := range []int{100, 200, 300} {
					require.NoError(t, protocol.SaveOverride(t.Context(), s, "pool", protocol.Override{Max: n}))
				}
				requireCeiling(t, 300, nodes...)
				for _, n := range nodes {
					n.link.Cut.Store(true)
				}
				time.Sleep(5 * time.Second) // more than the three changes
				s.wipe()
				late := limited(t, s, "late", thousand, 1)
				time.Sleep(interval)
				require.NoError(t, protocol.SaveOverride(t.Context(), s, "pool", set))
				for _, n := range nodes {
					n.link.Cut.Store(false)
				}
				within(t, 10*time.Second, "all have it", func() bool {
					return nodes[0].ceiling() == want && nodes[1].ceiling() == want && late.ceiling() == want
				})
				time.Sleep(driver.DefaultLease)
				requireCeiling(t, want, append(nodes, late)...)
				o, err := protocol.LoadOverride(t.Context(), s, "pool")
				require.NoError(t, err)
				require.Equal(t, set.Max, o.Max)
			})
		})
	}
}

// Who is told of a limit that it cannot read must not go on by the old one.
func TestUnreadableOverrideRenewsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		nodes := busy(t, s, 2, thousand)
		v, err := s.Save(t.Context(), "pool", driver.DocumentReport{
			Name: "limit", Version: driver.NextVersion(0, 7), Body: []byte(`{"max":5,"shape":"round"}`),
		})
		require.NoError(t, err)
		time.Sleep(driver.DefaultLease / 2)
		require.Greater(t, nodes[0].share(), 0.0, "the share lasts as long as its lease")
		time.Sleep(driver.DefaultLease)
		for _, n := range nodes {
			require.Zero(t, n.share())
			th, held := n.th.Throttled()
			require.True(t, held)
			require.Equal(t, throttle.ReasonUnreadable, th.Reason)
			require.Equal(t, string(protocol.StateLost), n.m.View().State, "and is not degraded")
		}
		before := nodes[0].link.Syncs.Load()
		time.Sleep(10 * interval)
		require.LessOrEqual(t, nodes[0].link.Syncs.Load()-before, int64(12), "and asks no more often than ever")
		n := limited(t, s, "new", thousand, 1)
		time.Sleep(5 * interval)
		require.Zero(t, n.share())

		_, err = s.Save(t.Context(), "pool", driver.DocumentReport{
			Name: "limit", Version: driver.NextVersion(v, 7), Base: v, Body: []byte(`{"max":5}`),
		})
		require.NoError(t, err)
		within(t, 3*interval, "shares again", func() bool { return sum(append(nodes, n)) > 0.99 })
		requireCeiling(t, 5, append(nodes, n)...)
	})
}

// During a rollout the lowest limit of all live processors is in force, both ways.
func TestLowestLimitIsInForce(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		pool := busy(t, s, 3, thousand)
		roll := func(l throttle.Limit, during, after float64) {
			for i := range pool {
				next := limited(t, s, fmt.Sprint(l.Max, "-", i), l, 8)
				time.Sleep(2 * interval)
				requireCeiling(t, during, append(pool, next)...)
				pool[i].stop()
				require.NoError(t, pool[i].th.Close())
				pool[i] = next
			}
			time.Sleep(interval / 2)
			requireCeiling(t, after, pool...)
			require.LessOrEqual(t, float64(used(pool, 10*time.Second)), after*10.1+4)
		}
		roll(throttle.Limit{Max: 400}, 400, 400)
		require.InDelta(t, 400, pool[0].ceiling(), 0)
		for _, n := range pool {
			require.Zero(t, n.th.Status().Lease.Ceiling, "the configured limit")
		}
		time.Sleep(interval)
		roll(thousand, 400, 1000)
	})
}

// A dead processor's limit counts until it is removed.
func TestLowestLimitOfADeadProcessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		a, b := limited(t, s, "a", thousand, 1), limited(t, s, "b", throttle.Limit{Max: 100}, 1)
		time.Sleep(3 * time.Second)
		requireCeiling(t, 100, a, b)
		b.link.Cut.Store(true)
		took := within(t, wire.Removal(driver.DefaultLease)+2*interval, "the own limit", func() bool { return a.ceiling() == 1000 })
		require.GreaterOrEqual(t, took, driver.DefaultLease)
	})
}

// What calls in flight use is not given to others when the share falls.
func TestSlotsInUseAreNotGivenAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		join := func(id string) (*consensus.Member, *throttle.InFlight) {
			m, err := consensus.Join(t.Context(), s, "pool", consensus.WithID(id), consensus.WithLogger(quiet), consensus.WithPolicy(consensus.Even))
			require.NoError(t, err)
			f, err := throttle.NewInFlight(10, throttle.WithSharer(m), throttle.OnClose(m.Leave))
			require.NoError(t, err)
			t.Cleanup(func() { _ = f.Close() })
			time.Sleep(2 * interval)
			return m, f
		}
		_, a := join("a")
		var held []throttle.Permit
		for {
			p, ok := a.TryAcquire(1)
			if !ok {
				break
			}
			held = append(held, p)
		}
		require.Len(t, held, 10)
		m, b := join("b")
		time.Sleep(10 * interval)
		_, ok := b.TryAcquire(1)
		require.False(t, ok, "all slots are in use")
		require.LessOrEqual(t, m.View().Share, driver.Share(1))
		require.Equal(t, 5, a.Status().Slots, "a has given up half of them")
		for i, p := range held {
			p.Cancel()
			time.Sleep(2 * interval)
			inB := 0
			for {
				p, ok := b.TryAcquire(1)
				if !ok {
					break
				}
				defer p.Cancel()
				inB++
			}
			require.LessOrEqual(t, a.Status().InUse+b.Status().InUse, 10, "after %d calls", i+1)
		}
		require.Equal(t, 5, b.Status().InUse)
	})
}

// Two operators at once: one of them wins, and neither is lost without an error.
func TestOverridesAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		busy(t, s, 1, thousand)
		done := make(chan error, 4)
		for i := range cap(done) {
			go func() { done <- protocol.SaveOverride(t.Context(), s, "pool", protocol.Override{Max: 100 + i}) }()
		}
		for range cap(done) {
			err := <-done
			var conflict *driver.ConflictError
			require.True(t, err == nil || errors.As(err, &conflict), "%v", err)
		}
	})
}

// A limit whose tokens are issued one by one is overridden as every other: a lower one and a
// higher one are in force within one sync, but for the slots that are reserved already.
func TestOverrideOfAStrictLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		nodes := busy(t, s, 4, throttle.Limit{Max: 10, Strict: true, MaxReserved: 8})
		per := func(seconds int) float64 {
			return float64(used(nodes, time.Duration(seconds)*time.Second)) / float64(seconds)
		}
		require.InDelta(t, 10, per(20), 0.1)

		require.NoError(t, protocol.SaveOverride(t.Context(), s, "pool", protocol.Override{Max: 2}))
		time.Sleep(interval + interval/10)
		require.InDelta(t, 2, per(60), 0.1)

		require.NoError(t, protocol.SaveOverride(t.Context(), s, "pool", protocol.Override{Max: 40}))
		time.Sleep(interval + interval/10)
		most := 8 * time.Second / 2 // what is reserved already, half a second apart
		require.InDelta(t, 40*(60-most.Seconds()/2), 60*per(60), 40*most.Seconds()/2+40)
		require.InDelta(t, 40, per(60), 0.4)

		require.NoError(t, protocol.ClearOverride(t.Context(), s, "pool"))
		time.Sleep(interval + interval/10)
		require.InDelta(t, 10, per(60), 0.2)
	})
}
