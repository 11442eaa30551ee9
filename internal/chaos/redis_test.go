//go:build numathrottle_faults

package chaos

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
)

// workersPerLane is the size of the pools.
const workersPerLane = 4

// TestRedisFaults breaks real Redis servers, and the network to them, under pools
// of real processes.
func TestRedisFaults(t *testing.T) {
	t.Parallel() // with the other stores: nearly all of it is waiting
	g := newLedger(t, "R7", "processes of this module on "+redisVersion(t))
	t.Run("lanes", func(t *testing.T) {
		for name, lane := range map[string]func(*testing.T, *ledger){
			"kept": keptLane, "lost": lostLane, "promoted": promotedLane,
			"network": networkLane, "one cut off": oneCutOffLane, "defaults": defaultsLane,
		} {
			t.Run(name, func(t *testing.T) {
				inTurn(t)
				lane(t, g)
			})
		}
	})
	g.record(t, "redis")
}

// keptLane has a server that writes everything to disk before it answers.
func keptLane(t *testing.T, g *ledger) {
	server := testenv.Redis(t, servers.WithAppendOnly())
	l := newLane(t, g, poolConfig{Stores: everyone("redis://" + server.Addr() + "?durable=true")})
	l.run(
		killed(server, "server killed, state kept", stateKept, 300*time.Millisecond, 2*time.Second),
		killed(server, "server killed for longer than a lease, state kept", stateKept, 4*time.Second, 6*time.Second),
		stopped(server, "server stopped", 500*time.Millisecond, 2*time.Second),
		stopped(server, "server stopped for several leases", 7*time.Second, 10*time.Second),
	)
}

// lostLane has a server that forgets everything when it ends.
func lostLane(t *testing.T, g *ledger) {
	server := testenv.Redis(t)
	l := newLane(t, g, poolConfig{Stores: everyone("redis://" + server.Addr())})
	lost := l.lost()
	l.run(
		killed(server, "server restarted empty", lost, 300*time.Millisecond, 2*time.Second),
		killed(server, "server restarted empty after more than a lease", lost, 4*time.Second, 6*time.Second),
		flushed(server, "FLUSHALL", lost),
	)
}

// defaultsLane opens the limit as programs do, with the default lease and a store
// that waits for the longest lease that there may be.
func defaultsLane(t *testing.T, g *ledger) {
	server := testenv.Redis(t, servers.WithAppendOnly())
	l := newLane(t, g, poolConfig{Stores: everyone("redis://" + server.Addr() + "?durable=true"), Defaults: true})
	l.run(
		killed(server, "server killed, state kept, default lease", stateKept, 300*time.Millisecond, 5*time.Second),
		stopped(server, "server stopped for longer than a lease, default lease", 11*time.Second, 14*time.Second),
		flushed(server, "FLUSHALL, default lease", l.lost()),
	)
}

func everyone(url string) []string { return slices.Repeat([]string{url}, workersPerLane) }

// killed is a server that is killed and started again after a while.
func killed(server *servers.Redis, name string, allowed, shortest, longest time.Duration) fault {
	return fault{name: name, allowed: allowed, lost: true, inject: func(l *lane) {
		ctx, cancel := l.bounded()
		defer cancel()
		require.NoError(l, server.Kill())
		l.gone = clock()
		l.pass(l.between(shortest, longest))
		l.back = clock()
		require.NoError(l, server.Restart(ctx))
	}}
}

// stopped is a server that stands still for a while.
func stopped(server *servers.Redis, name string, shortest, longest time.Duration) fault {
	return fault{name: name, allowed: stateKept, inject: func(l *lane) {
		ctx, cancel := l.bounded()
		defer cancel()
		require.NoError(l, server.Stop(ctx))
		l.gone = clock()
		l.pass(l.between(shortest, longest))
		l.back = clock()
		require.NoError(l, server.Continue())
	}}
}

// flushed is a server that is emptied while it runs.
func flushed(server *servers.Redis, name string, allowed time.Duration) fault {
	return fault{name: name, allowed: allowed, lost: true, inject: func(l *lane) {
		client := redisClient(l, server)
		require.NoError(l, client.FlushAll(l.Context()).Err())
		require.NoError(l, client.Close())
	}}
}

// redisClient returns a client for what a test does to a server.
func redisClient(t testing.TB, server *servers.Redis) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
	t.Cleanup(func() { client.Close() })
	return client
}

// redisVersion returns the name and version of the server that is installed.
func redisVersion(t *testing.T) string {
	info := redisClient(t, testenv.Redis(t)).InfoMap(t.Context(), "server")
	require.NoError(t, info.Err())
	return "redis-server " + info.Item("Server", "redis_version")
}
