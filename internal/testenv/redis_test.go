package testenv_test

import (
	"context"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
)

const (
	// waitFor bounds what takes well under a second on a quiet machine.
	waitFor = 30 * time.Second
	every   = 20 * time.Millisecond
)

func redisClient(tb testing.TB, addr, password string) *redis.Client {
	tb.Helper()
	client := redis.NewClient(&redis.Options{
		Addr: addr, Password: password, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true,
	})
	tb.Cleanup(func() { client.Close() })
	return client
}

// requireRefused asserts that nothing listens on the address.
func requireRefused(tb testing.TB, addr string) {
	tb.Helper()
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err == nil {
		conn.Close()
	}
	require.Error(tb, err, "something still listens on %s", addr)
}

func runID(tb testing.TB, client *redis.Client) string {
	tb.Helper()
	info := client.InfoMap(tb.Context(), "server")
	require.NoError(tb, info.Err())
	return info.Item("Server", "run_id")
}

func TestRedisAnswersAndIsGoneAfterwards(t *testing.T) {
	var addr string
	t.Run("running", func(t *testing.T) {
		server := testenv.Redis(t)
		addr = server.Addr()
		require.NotZero(t, server.Pid())
		client := redisClient(t, addr, "")
		require.NoError(t, client.Set(t.Context(), "key", "value", 0).Err())
		require.Equal(t, "value", client.Get(t.Context(), "key").Val())
		require.Equal(t, "noeviction", client.ConfigGet(t.Context(), "maxmemory-policy").Val()["maxmemory-policy"])
	})
	requireRefused(t, addr)
}

func TestRedisKilledAndRestartedIsEmptyUnderTheSameAddress(t *testing.T) {
	server := testenv.Redis(t)
	client := redisClient(t, server.Addr(), "")
	require.NoError(t, client.Set(t.Context(), "key", "value", 0).Err())
	addr, pid, id := server.Addr(), server.Pid(), runID(t, client)

	require.NoError(t, server.Kill())
	require.Zero(t, server.Pid())
	requireRefused(t, addr)
	require.NoError(t, server.Kill(), "killing it once more does nothing")
	require.Error(t, server.Stop(t.Context()))
	require.Error(t, server.Continue())

	require.NoError(t, server.Restart(t.Context()))
	require.Equal(t, addr, server.Addr())
	require.NotEqual(t, pid, server.Pid())
	require.ErrorIs(t, client.Get(t.Context(), "key").Err(), redis.Nil)
	require.NotEqual(t, id, runID(t, client))
}

func TestRedisRestartReplacesARunningServer(t *testing.T) {
	server := testenv.Redis(t)
	pid := server.Pid()
	require.NoError(t, server.Restart(t.Context()))
	require.NotEqual(t, pid, server.Pid())
	require.NoError(t, redisClient(t, server.Addr(), "").Ping(t.Context()).Err())
}

func TestRedisAppendOnlyKeepsWhatItAcknowledged(t *testing.T) {
	server := testenv.Redis(t, servers.WithAppendOnly())
	client := redisClient(t, server.Addr(), "")
	require.NoError(t, client.Set(t.Context(), "key", "value", 0).Err())
	require.NoError(t, server.Kill())
	require.NoError(t, server.Restart(t.Context()))
	got, err := client.Get(t.Context(), "key").Result()
	require.NoError(t, err)
	require.Equal(t, "value", got)
}

func TestRedisStoppedDoesNotAnswerUntilContinued(t *testing.T) {
	server := testenv.Redis(t)
	client := redisClient(t, server.Addr(), "")
	require.NoError(t, client.Ping(t.Context()).Err())

	require.NoError(t, server.Stop(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, client.Ping(ctx).Err(), os.ErrDeadlineExceeded)
	require.NotZero(t, server.Pid(), "a stopped server is still there")

	require.NoError(t, server.Continue())
	require.NoError(t, client.Ping(t.Context()).Err())
}

func TestRedisStoppedCanBeKilled(t *testing.T) {
	server := testenv.Redis(t)
	require.NoError(t, server.Stop(t.Context()))
	require.NoError(t, server.Kill())
	requireRefused(t, server.Addr())
}

func TestRedisOptions(t *testing.T) {
	const password = `a "quoted" password`
	server := testenv.Redis(t, servers.WithPassword(password), servers.WithRedisConfig("maxmemory 10mb"))

	require.ErrorContains(t, redisClient(t, server.Addr(), "").Ping(t.Context()).Err(), "NOAUTH")
	client := redisClient(t, server.Addr(), password)
	require.Equal(t, "10485760", client.ConfigGet(t.Context(), "maxmemory").Val()["maxmemory"])
}

func TestRedisConfigThatTheServerRefusesIsAnError(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), waitFor)
	defer cancel()
	_, err := servers.StartRedis(ctx, t.TempDir(), servers.WithRedisConfig("no-such-setting 1"))
	if err != nil {
		skipIfMissing(t, err)
	}
	require.ErrorContains(t, err, "no-such-setting", "the server's own words are in the error")
}

func TestRedisCounts(t *testing.T) {
	server := testenv.Redis(t)
	client := redisClient(t, server.Addr(), "")
	before, err := server.Commands(t.Context())
	require.NoError(t, err)
	for range 7 {
		require.NoError(t, client.Incr(t.Context(), "key").Err())
	}
	after, err := server.Commands(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(7), after["incr"]-before["incr"])

	used, err := server.CPUTime(t.Context())
	require.NoError(t, err)
	require.Positive(t, used)
	require.Less(t, used, waitFor)
}

func TestRedisCluster(t *testing.T) {
	t.Parallel() // most of it is waiting for the nodes
	var addrs []string
	t.Run("running", func(t *testing.T) {
		cluster := testenv.RedisCluster(t)
		addrs = cluster.Addrs()
		require.Len(t, addrs, 3)
		client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs[:1], ContextTimeoutEnabled: true})
		t.Cleanup(func() { client.Close() })

		owners := map[string]bool{}
		for _, key := range []string{"{a}", "{b}", "{c}", "{d}", "{e}", "{f}"} {
			require.NoError(t, client.Set(t.Context(), key, key, 0).Err())
			owner, err := cluster.Owner(t.Context(), key)
			require.NoError(t, err)
			require.Equal(t, key, redisClient(t, owner.Addr(), "").Get(t.Context(), key).Val(), "the owner holds the key itself")
			owners[owner.Addr()] = true
		}
		require.Len(t, owners, 3, "keys are spread over all masters")

		lost, err := cluster.Owner(t.Context(), "{a}")
		require.NoError(t, err)
		require.NoError(t, lost.Kill())
		again, err := cluster.Owner(t.Context(), "{a}")
		require.NoError(t, err, "the others know whose key it is")
		require.Same(t, lost, again)
		require.NoError(t, lost.Restart(t.Context()))
		ctx, cancel := context.WithTimeout(t.Context(), waitFor)
		defer cancel()
		require.NoError(t, cluster.WaitReady(ctx))
		require.NoError(t, client.Set(t.Context(), "{a}", "again", 0).Err())
	})
	for _, addr := range addrs {
		requireRefused(t, addr)
	}
}

func TestRedisSentinel(t *testing.T) {
	t.Parallel() // most of it is waiting for the sentinels
	for _, test := range []struct {
		name      string
		sentinels int
	}{
		{name: "one sentinel", sentinels: 1},
		{name: "three sentinels", sentinels: 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := testenv.RedisSentinel(t, test.sentinels)
			require.Len(t, s.Addrs(), test.sentinels)
			client := redis.NewFailoverClient(&redis.FailoverOptions{
				MasterName: s.MasterName(), SentinelAddrs: s.Addrs(), ContextTimeoutEnabled: true,
			})
			t.Cleanup(func() { client.Close() })
			require.NoError(t, client.Set(t.Context(), "key", "value", 0).Err())

			first, second := s.Data()[0], s.Data()[1]
			master, err := s.Master(t.Context())
			require.NoError(t, err)
			require.Same(t, first, master)
			require.NoError(t, first.Kill())
			require.Eventually(t, func() bool {
				promoted, err := s.Master(t.Context())
				return err == nil && promoted == second && client.Set(t.Context(), "key", "newer", 0).Err() == nil
			}, waitFor, every, "the replica becomes master and takes writes")

			require.NoError(t, first.Restart(t.Context()))
			old := redisClient(t, first.Addr(), "")
			require.Eventually(t, func() bool { return old.Get(t.Context(), "key").Val() == "newer" },
				waitFor, every, "the old master comes back as a replica")
			require.NoError(t, first.Restart(t.Context()))
			require.Contains(t, old.Info(t.Context(), "replication").Val(), "role:slave", "and stays one over a restart")
		})
	}
}

func TestRedisSentinelIsGoneAfterwards(t *testing.T) {
	t.Parallel()
	var addrs []string
	t.Run("running", func(t *testing.T) {
		s := testenv.RedisSentinel(t, 1)
		for _, server := range append(s.Sentinels(), s.Data()...) {
			addrs = append(addrs, server.Addr())
		}
	})
	require.Len(t, addrs, 3)
	for _, addr := range addrs {
		requireRefused(t, addr)
	}
}

func TestSizesThatCannotDecideAreErrors(t *testing.T) {
	for _, size := range []int{-1, 0, 2} {
		_, err := servers.StartRedisSentinel(t.Context(), t.TempDir(), size)
		require.ErrorContains(t, err, "sentinels is "+strconv.Itoa(size)+", must be an odd number, at least 1")
		_, err = servers.StartNATSCluster(t.Context(), t.TempDir(), size)
		require.ErrorContains(t, err, "is "+strconv.Itoa(size)+", must be an odd number, at least 3")
	}
}
