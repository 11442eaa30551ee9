package opening

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// shortLease keeps the freeze of a new pool to 4.5 s.
const shortLease = driver.MinLease

// short is a configuration with the shortest lease there is.
func short(store, id string) Config {
	return Config{
		Limit: throttle.Limit{Max: 1000}, Store: store, Pool: "ns/pipe/map", ID: id, Policy: PolicyEven,
		Lease: shortLease, FailFast: true, Logger: quiet(),
	}
}

// TestRealStores has processors in pools on each kind of server.
func TestRealStores(t *testing.T) {
	t.Parallel()
	// Each returns the store's URL, and what looks for a pool in the place that the URL's parameters name.
	for name, start := range map[string]func(*testing.T) (string, func(*testing.T)){
		"redis": func(t *testing.T) (string, func(*testing.T)) {
			addr := testenv.Redis(t).Addr()
			return "redis://" + addr + "/3?prefix=tokens", func(t *testing.T) {
				client := redis.NewClient(&redis.Options{Addr: addr, DB: 3})
				defer client.Close()
				keys, err := client.Keys(t.Context(), "{tokens:*}:pool:share").Result()
				require.NoError(t, err)
				require.Len(t, keys, 1)
			}
		},
		"nats": func(t *testing.T) (string, func(*testing.T)) {
			url := testenv.NATS(t).URL()
			return url + "?bucket=tokens&replicas=1", func(t *testing.T) {
				nc, err := nats.Connect(url)
				require.NoError(t, err)
				defer nc.Close()
				js, err := jetstream.New(nc)
				require.NoError(t, err)
				kv, err := js.KeyValue(t.Context(), "tokens")
				require.NoError(t, err)
				_, err = kv.Get(t.Context(), "share")
				require.NoError(t, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, requireRecord := start(t)
			for pool, test := range map[string]func(t *testing.T, with func(id string) Config){
				"share": func(t *testing.T, with func(id string) Config) {
					testShare(t, with)
					requireRecord(t)
				},
				"p": testOperators, "ramp": testRamp, "adaptive": testAdaptive, "strict": testStrict, "strict ahead": testStrict,
				"budgets": testBudgets,
			} {
				t.Run(pool, func(t *testing.T) {
					t.Parallel()
					test(t, func(id string) Config {
						c := short(store, id)
						c.Pool = pool
						return c
					})
				})
			}
		})
	}
}

// testShare has two processors share the limit. An operator looks at the pool without being a processor of it.
func testShare(t *testing.T, with func(id string) Config) {
	store, err := Store(t.Context(), with("cli"))
	require.NoError(t, err)
	_, err = protocol.LoadOverview(t.Context(), store, "share")
	require.ErrorIs(t, err, driver.ErrNoPool)
	a, b := mustOpen(t, with("a")), mustOpen(t, with("b"))
	require.Equal(t, throttle.ReasonFrozen, reason(a), "the pool is new to the store")

	for _, th := range []*throttle.Throttle{a, b} {
		eventually(t, func() bool { return th.Status().Lease.Share == limit.WholeShare/2 }, "half of the limit")
		eventually(t, grants(th), "a token")
	}
	o, err := protocol.LoadOverview(t.Context(), store, "share")
	require.NoError(t, err)
	require.Len(t, o.Processors, 2, "the processors, and nobody else")
	require.Equal(t, 1000, o.Max)
	require.NoError(t, a.Close())
	eventually(t, func() bool { return b.Status().Lease.Share == limit.WholeShare }, "all of the limit")
	require.NoError(t, b.Close())
	require.NoError(t, store.Close())
	_, err = protocol.LoadOverview(t.Context(), store, "share")
	require.Error(t, err, "it is closed")
}

func testOperators(t *testing.T, with func(id string) Config) {
	a, b := mustOpen(t, with("a")), mustOpen(t, with("b"))
	eventually(t, func() bool { return b.Status().Lease.Share == limit.WholeShare/2 }, "half of the limit")
	slots := with("a")
	slots.Limit, slots.Pool = throttle.Limit{}, "slots"
	f := mustOpenInFlight(t, 10, slots)
	operate(t, with("cli"), a, b)
	eventually(t, func() bool { return f.Status().Slots == 10 }, "all slots")
	_, err := f.Pause(t.Context(), time.Now().Add(time.Hour), "")
	require.NoError(t, err)
	_, ok := f.TryAcquire(1)
	require.False(t, ok)
	require.NoError(t, f.Resume(t.Context()))
	eventually(t, func() bool { _, ok := f.TryAcquire(1); return ok }, "a slot")
}

// testRamp has a ramp and an override: a new processor begins where the others are, and the override outlives all of them.
func testRamp(t *testing.T, of func(id string) Config) {
	with := func(id string) Config {
		c := of(id)
		c.Limit = throttle.Limit{Max: 200, Min: 100, RampUpDuration: 10 * time.Second, Mode: throttle.RampScheduled{}, ResumedRampUp: true}
		return c
	}
	store, err := Store(t.Context(), with("cli"))
	require.NoError(t, err)
	defer store.Close()
	a, b := mustOpen(t, with("a")), mustOpen(t, with("b"))
	for _, th := range []*throttle.Throttle{a, b} {
		eventually(t, func() bool { return ceiling(th) > 120 }, "the ramp rises")
	}
	c := mustOpen(t, with("c"))
	eventually(t, func() bool { return ceiling(c) > 120 }, "the new one is where they are")

	require.NoError(t, protocol.SaveOverride(t.Context(), store, "ramp", protocol.Override{Max: 50}))
	for _, th := range []*throttle.Throttle{a, b, c} {
		eventually(t, func() bool { return ceiling(th) == 50 }, "the override")
		require.NoError(t, th.Close())
	}
	d := mustOpen(t, with("d"))
	eventually(t, func() bool { return ceiling(d) == 50 && d.Status().Lease.Share > 0 }, "the override is still there")
	require.NoError(t, protocol.ClearOverride(t.Context(), store, "ramp"))
	eventually(t, func() bool { return ceiling(d) > 60 }, "the ramp goes on")
}

// testAdaptive has what two of three processors are refused lower the ceiling of all.
func testAdaptive(t *testing.T, with func(id string) Config) {
	var pool []*throttle.Throttle
	for _, id := range []string{"a", "b", "c"} {
		c := with(id)
		c.Limit = throttle.Limit{Max: 200, Adaptive: true}
		pool = append(pool, mustOpen(t, c))
	}
	for _, th := range pool {
		eventually(t, func() bool { return th.Status().Lease.Share > 0 }, "a share")
	}
	eventually(t, func() bool {
		for _, th := range pool[:2] {
			if p, ok := th.TryAcquire(1); ok {
				p.Report(throttle.OutcomeRefused)
			}
		}
		return pool[2].Status().Lease.Adapted && ceiling(pool[2]) < 150
	}, "the ceiling of the third falls")
}

// testStrict has three processors in one strict pool: every one of them calls, and all together no more often than the slots come.
func testStrict(t *testing.T, with func(id string) Config) {
	const spacing = 50 * time.Millisecond
	var mu sync.Mutex
	var at []time.Time
	calls := map[string]int{}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for _, id := range []string{"a", "b", "c"} {
		c := with(id)
		c.Limit = throttle.Limit{Max: 1, Per: spacing, Strict: true, MaxReserved: len(c.Pool) - len("strict")}
		call := throttle.Func(mustOpen(t, c), func(context.Context, struct{}) (struct{}, error) {
			mu.Lock()
			defer mu.Unlock()
			at = append(at, time.Now())
			calls[id]++
			return struct{}{}, nil
		})
		for range 2 {
			all.Go(func() {
				for err := error(nil); err == nil; _, err = call(ctx, struct{}{}) { //nolint:revive // the call is all there is to do
				}
			})
		}
	}
	eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(at) >= 60 && min(calls["a"], calls["b"], calls["c"]) >= 8
	}, "sixty calls, some of each")
	stop()
	all.Wait()
	// A call may be late by a validity, and by what the machine is busy.
	const late = 250*time.Millisecond + 250*time.Millisecond
	slices.SortFunc(at, time.Time.Compare)
	for i := range at {
		for j := i + 1; j < len(at); j++ {
			require.GreaterOrEqual(t, at[j].Sub(at[i])+late, time.Duration(j-i)*spacing, "calls %d to %d", i, j)
		}
	}
}

// TestEveryFormOfRedisAnswers has the first sync answered behind Sentinel and in a
// Cluster: FailFast fails otherwise.
func TestEveryFormOfRedisAnswers(t *testing.T) {
	t.Parallel()
	t.Run("sentinel", func(t *testing.T) {
		s := testenv.RedisSentinel(t, 1)
		hosts := strings.Join(s.Addrs(), ",")
		for _, url := range []string{
			"redis+sentinel://" + hosts + "/" + s.MasterName(),
			"redis+sentinel://" + hosts + "?db=2&master=" + s.MasterName(),
		} {
			require.NoError(t, mustOpen(t, short(url, "a")).Close())
		}
		_, err := Open(t.Context(), short("redis+sentinel://"+hosts+"/another", "a"))
		require.Error(t, err)
	})
	t.Run("cluster", func(t *testing.T) {
		c := testenv.RedisCluster(t)
		require.NoError(t, mustOpen(t, short("redis+cluster://"+strings.Join(c.Addrs(), ","), "a")).Close())
		require.NoError(t, mustOpen(t, short("redis+cluster://"+c.Addrs()[2], "a")).Close(), "one node tells the others")
	})
}

// testBudgets has one processor after the other leave. What they drew and did not use is not spent.
func testBudgets(t *testing.T, with func(id string) Config) {
	month := throttle.Budget{Amount: 100_000, Per: "month"}
	q := throttle.Quotas{
		Tags:  map[string]throttle.Quota{"acme": {Budgets: []throttle.Budget{month}}},
		Match: []throttle.QuotaPattern{{Tag: "free/*", Quota: throttle.Quota{Total: 400, Budgets: []throttle.Budget{month}}}},
	}
	store, err := Store(t.Context(), with("cli"))
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	used := int64(0)
	for _, id := range []string{"a", "b"} {
		c := with(id)
		c.Policy, c.Quotas = "", q
		th := mustOpen(t, c)
		for k := range 20 {
			for _, tag := range []string{"acme", "free/x"} {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				permit, err := th.ForTag(tag).Acquire(ctx, 40)
				cancel()
				require.NoError(t, err)
				permit.Settle(25 + 10*(k%3))
			}
			used += 25 + 10*(int64(k)%3)
		}
		require.NoError(t, th.Close())
		all, err := protocol.LoadSpent(t.Context(), store, c.Pool, []string{"acme", "free/x"})
		require.NoError(t, err)
		require.Len(t, all, 2)
		for _, of := range all {
			require.Len(t, of.Windows, 1)
			require.Equal(t, used, of.Windows[0].Tokens, of.Tag)
		}
	}
}
