package redisstore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// TestNewPools asks what the first sync of a new pool is told after something
// happened to a server that knew new pools as such.
func TestNewPools(t *testing.T) {
	server := testenv.Redis(t, servers.WithAppendOnly())
	c := client(t, ClientOptions(server.Addr()))
	s := New(c, WithLongestLease(longest))
	next := mates(s)
	_, marker := s.keys(next())

	began := time.Now()
	require.Equal(t, driver.FreezeNewRecord, fresh(t, s, next()), "a server of which nothing is known")
	waitTrusted(t, s, next)
	require.GreaterOrEqual(t, time.Since(began), wire.Removal(longest))

	set := func(t *testing.T, name, value string) {
		require.NoError(t, c.ConfigSet(t.Context(), name, value).Err())
	}
	write := func(t *testing.T, part int, value string) {
		parts := strings.Split(c.Get(t.Context(), marker).Val(), " ")
		parts[part] = value
		require.NoError(t, c.Set(t.Context(), marker, strings.Join(parts, " "), 0).Err())
	}
	for _, test := range []struct {
		name   string
		happen func(t *testing.T)
		want   driver.FreezeCause
	}{
		{"nothing", func(*testing.T) {}, driver.FreezeNone},
		{"FLUSHALL", func(t *testing.T) { require.NoError(t, c.FlushAll(t.Context()).Err()) }, driver.FreezeNewRecord},
		{"FLUSHDB", func(t *testing.T) { require.NoError(t, c.FlushDB(t.Context()).Err()) }, driver.FreezeNewRecord},
		{"restart with all data", func(t *testing.T) { restart(t, server, c) }, driver.FreezeNewRecord},
		{"marker lost", func(t *testing.T) { require.NoError(t, c.Del(t.Context(), marker).Err()) }, driver.FreezeNewRecord},
		{"marker of another life", func(t *testing.T) { write(t, 1, "1234567890abcdef") }, driver.FreezeNewRecord},
		{"clock set back", func(t *testing.T) { write(t, 3, "9000000000000000") }, driver.FreezeNewRecord},
		{"server that could evict", func(t *testing.T) {
			set(t, "maxmemory", "1gb")
			set(t, "maxmemory-policy", "volatile-lru")
		}, driver.FreezeNewRecord},
		{"full server would refuse", func(t *testing.T) { set(t, "maxmemory", "1gb") }, driver.FreezeNone},
		{"eviction without a limit", func(t *testing.T) { set(t, "maxmemory-policy", "allkeys-lru") }, driver.FreezeNone},
		{"keys evicted in between", func(t *testing.T) {
			kept := c.Get(t.Context(), marker).Val()
			set(t, "maxmemory-policy", "allkeys-random")
			evict(t, c)
			set(t, "maxmemory", "0")
			set(t, "maxmemory-policy", "noeviction")
			require.NoError(t, c.Set(t.Context(), marker, kept, 0).Err())
		}, driver.FreezeNewRecord},
	} {
		t.Run(test.name, func(t *testing.T) {
			set(t, "maxmemory", "0")
			set(t, "maxmemory-policy", "noeviction")
			waitTrusted(t, s, next)
			test.happen(t)
			require.Equal(t, test.want, fresh(t, s, next()))
		})
	}
	waitTrusted(t, s, next)

	lasting := func() driver.FreezeCause {
		req := request(next(), "a", 1, 1)
		req.Outlasts = wire.MaxOutlasts
		return granted(t, s, req).FrozenBy
	}
	require.Equal(t, driver.FreezeNewRecord, lasting(), "somebody may go on without the store")
	now := time.Now().Add(time.Minute) // the server's clock is this one's
	write(t, 3, fmt.Sprint(now.Add(-wire.MaxOutlasts).UnixMicro()))
	require.Equal(t, driver.FreezeNewRecord, lasting(), "almost long enough")
	write(t, 3, fmt.Sprint(now.Add(-wire.MaxOutlasts-2*time.Minute).UnixMicro()))
	require.Equal(t, driver.FreezeNone, lasting())
}

// evict makes the server evict some of its keys.
func evict(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", "3mb").Err())
	value := strings.Repeat("x", 10_000)
	for i := range 1000 {
		require.NoError(t, c.Set(t.Context(), "filler"+string(rune('a'+i)), value, 0).Err())
	}
	require.NotContains(t, c.Info(t.Context(), "stats").Val(), "evicted_keys:0\r\n")
}

// TestNewPoolAfterFailover: a promoted replica has the marker, but not the life
// that wrote it.
func TestNewPoolAfterFailover(t *testing.T) {
	old, replica := testenv.Redis(t), testenv.Redis(t)
	before := New(client(t, ClientOptions(old.Addr())), WithLongestLease(longest))
	c := client(t, ClientOptions(replica.Addr()))
	after := New(c, WithLongestLease(longest))
	next := mates(before)
	pool := next()
	granted(t, before, request(pool, "a", 1, 1))
	waitTrusted(t, before, next)

	host, port, _ := strings.Cut(old.Addr(), ":")
	require.NoError(t, c.Do(t.Context(), "REPLICAOF", host, port).Err())
	key, _ := before.keys(pool)
	waitFor(t, "the replica has the pool", func() bool { return c.Exists(t.Context(), key).Val() == 1 })
	_, err := after.Sync(t.Context(), request(pool, "a", 2, 1))
	require.ErrorContains(t, err, "READONLY")
	require.NoError(t, c.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())

	require.Equal(t, driver.FreezeNewRecord, fresh(t, after, next()))
	require.Equal(t, driver.FreezeIdentity, granted(t, after, request(pool, "a", 2, 1)).FrozenBy)
	waitTrusted(t, after, next)
}

// TestExpiry: a pool outlives its last step by a day, and its group's marker. With documents it does by a week, so that an override is
// there after a weekend. Its tag buckets expire with it, also when nothing is drawn.
func TestExpiry(t *testing.T) {
	const day = 24 * time.Hour
	c := client(t, ClientOptions(testenv.Redis(t).Addr()))
	s := New(c, WithLongestLease(longest))
	for name, test := range map[string]struct {
		draws []driver.Draw
		saves bool
		want  time.Duration
	}{"alone": {want: day}, "tills": {draws: []driver.Draw{{Key: 1, Ask: 1}}, want: day}, "documents": {saves: true, want: 7 * day}} {
		t.Run(name, func(t *testing.T) {
			pool, marker := s.keys(name)
			n := uint64(0)
			sync := func() {
				n++
				req := request(name, "a", n, 1)
				if n == 1 {
					req.Draws = test.draws
				}
				granted(t, s, req)
			}
			// lasts requires that the keys outlive a step.
			lasts := func(step func(), keys ...string) {
				t.Helper()
				step()
				for _, key := range keys {
					want := test.want
					if key == marker {
						want = day / 2
					}
					require.InDelta(t, want, c.PTTL(t.Context(), key).Val(), float64(time.Minute), key)
					require.NoError(t, c.PExpire(t.Context(), key, time.Hour).Err())
				}
			}
			keys := []string{pool, marker}
			if test.draws != nil {
				keys = append(keys, tagBucketsKey(pool))
			}
			sync()
			if test.saves {
				lasts(func() {
					_, err := s.Save(t.Context(), name, driver.DocumentReport{Name: "limit", Version: 1, Body: []byte("x")})
					require.NoError(t, err)
				}, pool)
			}
			lasts(sync, keys...)
			lasts(sync, keys...)
			lasts(func() { require.NoError(t, s.Leave(t.Context(), leaving(name, "a", n+1))) }, pool)
		})
	}
}

// A server that is said to forget nothing freezes nobody when it was killed and
// comes back with all its data, and does when it comes back without.
func TestDurable(t *testing.T) {
	for _, c := range []struct {
		name   string
		opts   []Option
		happen func(t testing.TB, server *servers.Redis, admin redis.UniversalClient)
		want   driver.FreezeCause
	}{
		{"restart", []Option{WithDurable()}, restart, driver.FreezeNone},
		{"restart of a server that is not said to be durable", nil, restart, driver.FreezeIdentity},
		{"FLUSHALL", []Option{WithDurable()}, func(t testing.TB, _ *servers.Redis, admin redis.UniversalClient) {
			t.Helper()
			require.NoError(t, admin.FlushAll(t.Context()).Err())
		}, driver.FreezeNewRecord},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := testenv.Redis(t, servers.WithAppendOnly())
			client := client(t, ClientOptions(server.Addr()))
			s := New(client, append(c.opts, WithLongestLease(longest))...)
			another := New(client, append(c.opts, WithLongestLease(longest))...)
			next := mates(s)
			waitTrusted(t, s, next)
			pool := next()
			granted(t, s, request(pool, "a", 1, driver.Whole))
			c.happen(t, server, client)
			ans := granted(t, another, request(pool, "b", 1, driver.Whole))
			require.Equal(t, c.want, ans.FrozenBy)
		})
	}
}
