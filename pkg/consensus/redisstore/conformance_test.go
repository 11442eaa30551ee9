package redisstore

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/proof"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/storetest"
)

// longest keeps freezes short.
const longest = 500 * time.Millisecond

// client returns a client that is closed with the test. Its timeouts allow for a
// machine on which all tests run at once.
func client(t testing.TB, opts *redis.UniversalOptions) redis.UniversalClient {
	t.Helper()
	opts.DialTimeout, opts.ReadTimeout, opts.WriteTimeout, opts.PoolTimeout = 5*time.Second, 5*time.Second, 5*time.Second, 5*time.Second
	c := redis.NewUniversalClient(opts)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func TestConformance(t *testing.T) {
	server := testenv.Redis(t, servers.WithAppendOnly())
	h := harness(t, func() *redis.UniversalOptions { return ClientOptions(server.Addr()) })
	admin := client(t, ClientOptions(server.Addr()))
	h.Restart = func(t testing.TB) {
		t.Helper()
		restart(t, server, admin)
	}
	h.Permits = 100_000
	h.Issued = func(t testing.TB, permits, faults int) {
		t.Helper()
		proof.Record(t, "permits-redis", proof.Permits{Store: "Redis, every write on disk", Permits: permits, Faults: faults})
	}
	storetest.Run(t, h)
}

// restart starts the server again and waits until it has loaded its data.
func restart(t testing.TB, server *servers.Redis, admin redis.UniversalClient) {
	t.Helper()
	require.NoError(t, server.Restart(t.Context()))
	waitFor(t, "the server has its data", func() bool { return admin.Ping(t.Context()).Err() == nil })
}

func TestConformanceCluster(t *testing.T) {
	cluster := testenv.RedisCluster(t, servers.WithAppendOnly())
	h := harness(t, func() *redis.UniversalOptions { return ClientOptions(cluster.Addrs()...) })
	h.Restart = func(t testing.TB) {
		t.Helper()
		for _, node := range cluster.Nodes() {
			require.NoError(t, node.Restart(t.Context()))
		}
		require.NoError(t, cluster.WaitReady(t.Context()))
	}
	storetest.Run(t, h)
}

// TestConformanceSentinel restarts by a failover to a replica that is in step.
func TestConformanceSentinel(t *testing.T) {
	testkit.SkipRace(t, "once the client knows its master, all is as in TestConformance; five failovers take a minute")
	sentinels := testenv.RedisSentinel(t, 1)
	h := harness(t, func() *redis.UniversalOptions {
		opts := ClientOptions(sentinels.Addrs()...)
		opts.MasterName = sentinels.MasterName()
		return opts
	})
	newStore := h.New
	var mu sync.Mutex
	stores := map[*Store]bool{}
	h.New = func(t testing.TB) driver.Store {
		t.Helper()
		s, ok := newStore(t).(*Store)
		require.True(t, ok)
		mu.Lock()
		defer mu.Unlock()
		stores[s] = true
		t.Cleanup(func() {
			mu.Lock()
			defer mu.Unlock()
			delete(stores, s)
		})
		return s
	}
	h.Restart = func(t testing.TB) {
		t.Helper()
		failOver(t, sentinels)
		// Clients hear of it from the sentinel.
		mu.Lock()
		defer mu.Unlock()
		for s := range stores {
			waitFor(t, "the client knows the new master", func() bool {
				return s.client.Set(t.Context(), "probe", "x", 0).Err() == nil
			})
		}
	}
	storetest.Run(t, h)
}

// failOver promotes the replica once it has everything.
func failOver(t testing.TB, s *servers.RedisSentinel) {
	t.Helper()
	old, err := s.Master(t.Context())
	require.NoError(t, err)
	master := client(t, ClientOptions(old.Addr()))
	// WAIT counts what its own connection has written.
	conn := redis.NewClient(&redis.Options{Addr: old.Addr(), PoolSize: 1})
	defer conn.Close()
	require.NoError(t, conn.Set(t.Context(), "probe", "x", 0).Err())
	waitFor(t, "the replica is in step", func() bool { return conn.Wait(t.Context(), 1, time.Second).Val() == 1 })
	sentinel := redis.NewSentinelClient(&redis.Options{Addr: s.Addrs()[0]})
	defer sentinel.Close()
	waitFor(t, "the sentinel fails over", func() bool {
		return sentinel.Failover(t.Context(), s.MasterName()).Err() == nil
	})
	waitFor(t, "the master is a replica", func() bool {
		now, err := s.Master(t.Context())
		return err == nil && now.Addr() != old.Addr() && role(master) == "slave"
	})
}

func role(c redis.UniversalClient) string {
	reply, err := c.Do(context.Background(), "ROLE").Slice()
	if err != nil || len(reply) == 0 {
		return ""
	}
	word, _ := reply[0].(string)
	return word
}

// harness is what the three kinds of client have in common.
func harness(t *testing.T, options func() *redis.UniversalOptions) storetest.Harness {
	t.Helper()
	admin := client(t, options())
	return storetest.Harness{
		Longest:  longest,
		KnowsNew: true,
		New: func(t testing.TB) driver.Store {
			t.Helper()
			return New(client(t, options()), WithLongestLease(longest))
		},
		Wipe: func(t testing.TB) {
			t.Helper()
			flush(t, admin)
		},
		Snapshot: func(t testing.TB, pool string) func() {
			t.Helper()
			key, _ := New(admin).keys(pool)
			dump, err := admin.Dump(t.Context(), key).Result()
			require.NoError(t, err)
			others := []string{tagBucketsKey(key), namesKey(key), sketchKey(key)}
			dumps := map[string]string{}
			for _, other := range others {
				if dumps[other], err = admin.Dump(t.Context(), other).Result(); !errors.Is(err, redis.Nil) {
					require.NoError(t, err)
				}
			}
			return func() {
				require.NoError(t, admin.RestoreReplace(t.Context(), key, time.Hour, dump).Err())
				for _, other := range others {
					require.NoError(t, admin.Del(t.Context(), other).Err())
					if dumps[other] != "" {
						require.NoError(t, admin.RestoreReplace(t.Context(), other, time.Hour, dumps[other]).Err())
					}
				}
			}
		},
	}
}

func flush(t testing.TB, admin redis.UniversalClient) {
	t.Helper()
	if cluster, ok := admin.(*redis.ClusterClient); ok {
		require.NoError(t, cluster.ForEachMaster(t.Context(), func(ctx context.Context, c *redis.Client) error {
			return c.FlushAll(ctx).Err()
		}))
		return
	}
	require.NoError(t, admin.FlushAll(t.Context()).Err())
}
