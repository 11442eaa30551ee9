package open

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// shortLease keeps the freeze of a new pool to 4.5 s.
const shortLease = consensus.MinLease

// short is a configuration with the shortest lease there is.
func short(store, id string) Config {
	return Config{
		Limit: throttle.Limit{Max: 1000}, Store: store, Pool: "ns/pipe/map", ID: id, Policy: PolicyEven,
		Lease: shortLease, longestLease: shortLease, FailFast: true, Logger: quiet(),
	}
}

// TestStoresShareTheLimit has two processors in one pool on each store.
func TestStoresShareTheLimit(t *testing.T) {
	t.Parallel()
	for _, server := range []struct {
		name string
		// start returns the store's URL, and what looks for the pool in the place
		// that the URL's parameters name.
		start func(*testing.T) (string, func(*testing.T))
	}{
		{"redis", func(t *testing.T) (string, func(*testing.T)) {
			addr := testenv.Redis(t).Addr()
			return "redis://" + addr + "/3?prefix=tokens", func(t *testing.T) {
				client := redis.NewClient(&redis.Options{Addr: addr, DB: 3})
				defer client.Close()
				keys, err := client.Keys(t.Context(), "{tokens:*}:pool:ns/pipe/map").Result()
				require.NoError(t, err)
				require.Len(t, keys, 1)
			}
		}},
		{"nats", func(t *testing.T) (string, func(*testing.T)) {
			url := testenv.NATS(t).URL()
			return url + "?bucket=tokens&replicas=1", func(t *testing.T) {
				nc, err := nats.Connect(url)
				require.NoError(t, err)
				defer nc.Close()
				js, err := jetstream.New(nc)
				require.NoError(t, err)
				kv, err := js.KeyValue(t.Context(), "tokens")
				require.NoError(t, err)
				_, err = kv.Get(t.Context(), "ns/pipe/map")
				require.NoError(t, err)
			}
		}},
	} {
		t.Run(server.name, func(t *testing.T) {
			t.Parallel()
			store, requireRecord := server.start(t)
			a, b := mustOpen(t, short(store, "a")), mustOpen(t, short(store, "b"))
			require.Equal(t, throttle.ReasonFrozen, reason(a), "the pool is new to the store")

			began := time.Now()
			for _, th := range []*throttle.Throttle{a, b} {
				eventually(t, func() bool { return th.Status().Lease.Share == throttle.WholeShare/2 }, "half of the limit")
				eventually(t, grants(th), "a token")
			}
			require.Less(t, time.Since(began), 2*consensus.Removal(shortLease))

			require.NoError(t, a.Close())
			eventually(t, func() bool { return b.Status().Lease.Share == throttle.WholeShare }, "all of the limit")
			require.NoError(t, b.Close())
			requireRecord(t)
		})
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
