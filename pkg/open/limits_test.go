package open

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/natsstore"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/redisstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// ceiling is what the whole pool may use, as th has it.
func ceiling(th *throttle.Throttle) float64 {
	st := th.Status()
	if st.Lease.Ceiling == 0 {
		return float64(st.Limit.Max)
	}
	return st.Lease.Ceiling
}

// A limit ramps up on every kind of store that needs no server, by its settings alone.
func TestRampWithoutAServer(t *testing.T) {
	for _, store := range []string{"memory://TestRampWithoutAServer", "static://?replicas=2"} {
		t.Run(store, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th := mustOpen(t, Config{Limit: throttle.Limit{Max: 20, Min: 10, RampUpDuration: time.Minute}, Store: store, Logger: quiet()})
				time.Sleep(10 * time.Second)
				require.InDelta(t, 10, ceiling(th), 0, "nobody calls")
				draw(th)
				time.Sleep(30 * time.Second)
				require.InDelta(t, 14.8, ceiling(th), 0.5, "29 or 30 steps, and a part of one")
				require.NoError(t, th.Close())
			})
		})
	}
}

// An override and a ramp on real servers: both processors follow, a new one begins where
// they are, and the override outlives all of them.
func TestLimitsOnRealStores(t *testing.T) {
	t.Parallel()
	for _, server := range []struct {
		name string
		// start returns the store's URL, and the store as an operator reaches it.
		start func(*testing.T) (string, consensus.Store)
	}{
		{"redis", func(t *testing.T) (string, consensus.Store) {
			addr := testenv.Redis(t).Addr()
			client := redis.NewClient(&redis.Options{Addr: addr})
			t.Cleanup(func() { client.Close() })
			return "redis://" + addr, redisstore.New(client)
		}},
		{"nats", func(t *testing.T) (string, consensus.Store) {
			url := testenv.NATS(t).URL()
			nc, err := nats.Connect(url)
			require.NoError(t, err)
			t.Cleanup(nc.Close)
			store, err := natsstore.New(nc)
			require.NoError(t, err)
			return url + "?replicas=1", store
		}},
	} {
		t.Run(server.name, func(t *testing.T) {
			t.Parallel()
			url, store := server.start(t)
			with := func(id string) Config {
				c := short(url, id)
				c.Limit = throttle.Limit{Max: 200, Min: 100, RampUpDuration: 10 * time.Second, Mode: throttle.Scheduled{}, ResumedRampUp: true}
				return c
			}
			a, b := mustOpen(t, with("a")), mustOpen(t, with("b"))
			for _, th := range []*throttle.Throttle{a, b} {
				eventually(t, func() bool { return ceiling(th) > 120 }, "the ramp rises")
				require.Less(t, ceiling(th), 200.0)
			}
			c := mustOpen(t, with("c"))
			eventually(t, func() bool { return ceiling(c) > 120 }, "the new one is where they are")

			require.NoError(t, consensus.SaveOverride(t.Context(), store, "ns/pipe/map", consensus.Override{Max: 50}))
			for _, th := range []*throttle.Throttle{a, b, c} {
				eventually(t, func() bool { return ceiling(th) == 50 }, "the override")
				require.NoError(t, th.Close())
			}
			d := mustOpen(t, with("d"))
			eventually(t, func() bool { return ceiling(d) == 50 && d.Status().Lease.Share > 0 }, "the override is still there")
			o, err := consensus.LoadOverride(t.Context(), store, "ns/pipe/map")
			require.NoError(t, err)
			require.Equal(t, consensus.Override{Max: 50, Per: time.Second}, o)
			require.NoError(t, consensus.ClearOverride(t.Context(), store, "ns/pipe/map"))
			eventually(t, func() bool { return ceiling(d) > 60 }, "the ramp goes on")
			requireAdapts(t, url)
		})
	}
}

// requireAdapts fails unless what two of three processors are refused lowers the ceiling of all.
func requireAdapts(t *testing.T, url string) {
	t.Helper()
	var pool []*throttle.Throttle
	for _, id := range []string{"a", "b", "c"} {
		c := short(url, id)
		c.Pool, c.Limit = "adaptive", throttle.Limit{Max: 200, Adaptive: true}
		pool = append(pool, mustOpen(t, c))
	}
	for _, th := range pool {
		eventually(t, func() bool { return th.Status().Lease.Share > 0 }, "a share")
	}
	refuse := func(th *throttle.Throttle) {
		if p, ok := th.TryAcquire(1); ok {
			p.Report(throttle.Refused)
		}
	}
	eventually(t, func() bool {
		refuse(pool[0])
		refuse(pool[1])
		return pool[2].Status().Lease.Adapted && ceiling(pool[2]) < 150
	}, "the ceiling of the third falls")
}

// A limit follows the service by its settings alone, with and without a pool.
func TestAdaptiveWithoutAServer(t *testing.T) {
	for _, store := range []string{"memory://TestAdaptiveWithoutAServer", "static://?replicas=2"} {
		t.Run(store, func(t *testing.T) {
			t.Setenv("NUMATHROTTLE_MAX", "100")
			t.Setenv("NUMATHROTTLE_ADAPTIVE", "true")
			t.Setenv("NUMATHROTTLE_ADAPTIVE_MIN", "30")
			t.Setenv("NUMATHROTTLE_STORE", store)
			synctest.Test(t, func(t *testing.T) {
				c, err := Load()
				require.NoError(t, err)
				c.Logger = quiet()
				th := mustOpen(t, c)
				time.Sleep(10 * time.Second)
				for range 20 {
					p, err := th.Acquire(t.Context(), 1)
					require.NoError(t, err)
					p.Report(throttle.Overloaded)
					time.Sleep(500 * time.Millisecond)
				}
				require.InDelta(t, 30, ceiling(th), 5)
				require.NoError(t, th.Close())
			})
		})
	}
}
