// Package testenv gives a test real Redis, NATS and nginx servers, which end with the test.
//
// A server that is not installed skips the test, with one line that says what to install. With the environment
// variable NUMATHROTTLE_REQUIRE_STORES set to 1, as `make test` sets it, it fails the test instead, so that nothing
// goes untested without notice. With -short every test that asks for a server is skipped.
//
// The servers themselves, their options and their methods are those of package servers; programs that are not tests
// use that package directly.
package testenv

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/testenv/proxy"
	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
)

// RequireStores is the environment variable that makes a missing server a failure when it is set to 1.
const RequireStores = "NUMATHROTTLE_REQUIRE_STORES"

// startTimeout bounds the start of a server or cluster, with the race detector on a busy machine.
const startTimeout = 60 * time.Second

// Redis starts a redis-server.
func Redis(tb testing.TB, opts ...servers.RedisOption) *servers.Redis {
	tb.Helper()
	server := start(tb, func(ctx context.Context, dir string) (*servers.Redis, error) {
		return servers.StartRedis(ctx, dir, opts...)
	})
	logOnFailure(tb, server)
	return server
}

// RedisCluster starts a Redis Cluster of three masters.
func RedisCluster(tb testing.TB, opts ...servers.RedisOption) *servers.RedisCluster {
	tb.Helper()
	return start(tb, func(ctx context.Context, dir string) (*servers.RedisCluster, error) {
		return servers.StartRedisCluster(ctx, dir, opts...)
	})
}

// RedisSentinel starts a Redis master and a replica, watched by an odd number of sentinels.
func RedisSentinel(tb testing.TB, sentinels int, opts ...servers.RedisOption) *servers.RedisSentinel {
	tb.Helper()
	return start(tb, func(ctx context.Context, dir string) (*servers.RedisSentinel, error) {
		return servers.StartRedisSentinel(ctx, dir, sentinels, opts...)
	})
}

// NATS starts an embedded NATS server of the version in go.mod, with JetStream.
func NATS(tb testing.TB, opts ...servers.NATSOption) *servers.NATS {
	tb.Helper()
	server := start(tb, func(ctx context.Context, dir string) (*servers.NATS, error) {
		return servers.StartNATS(ctx, dir, opts...)
	})
	logOnFailure(tb, server)
	return server
}

// NATSBinary starts the nats-server installed on this machine as a process, with JetStream. The configuration lines
// are added to its file.
func NATSBinary(tb testing.TB, configLines ...string) *servers.NATSProcess {
	tb.Helper()
	server := start(tb, func(ctx context.Context, dir string) (*servers.NATSProcess, error) {
		return servers.StartNATSProcess(ctx, dir, configLines...)
	})
	logOnFailure(tb, server)
	return server
}

// NATSProcessCluster starts NATS servers of the version in go.mod as one cluster of processes, behind proxies. The
// size is an odd number, at least 3. The test binary must call servers.BeNATSNode in TestMain.
func NATSProcessCluster(tb testing.TB, size int) *servers.NATSProcessCluster {
	tb.Helper()
	cluster := start(tb, func(ctx context.Context, dir string) (*servers.NATSProcessCluster, error) {
		return servers.StartNATSProcessCluster(ctx, dir, size)
	})
	logOnFailure(tb, cluster)
	return cluster
}

// Proxy starts a proxy to target, a host and port, that can delay, swallow and cut connections.
func Proxy(tb testing.TB, target string) *proxy.Proxy {
	tb.Helper()
	return start(tb, func(ctx context.Context, _ string) (*proxy.Proxy, error) {
		return proxy.Start(ctx, target)
	})
}

// Nginx starts an nginx. The lines stand in the http block of its configuration and in that of its only server.
func Nginx(tb testing.TB, httpLines, serverLines []string) *servers.Nginx {
	tb.Helper()
	server := start(tb, func(ctx context.Context, dir string) (*servers.Nginx, error) {
		return servers.StartNginx(ctx, dir, httpLines, serverLines)
	})
	logOnFailure(tb, server)
	return server
}

// start runs a server in the test's directory and closes it when the test ends.
func start[S interface{ Close() error }](tb testing.TB, run func(ctx context.Context, dir string) (S, error)) S {
	tb.Helper()
	if testing.Short() {
		tb.Skip("-short: no server is started")
	}
	// The directory comes first: it is removed after the server has ended.
	dir := tb.TempDir()
	ctx, cancel := context.WithTimeout(tb.Context(), startTimeout)
	defer cancel()
	server, err := run(ctx, dir)
	if err != nil {
		giveUp(tb, err)
	}
	tb.Cleanup(func() {
		if err := server.Close(); err != nil {
			tb.Errorf("closing the server: %v", err)
		}
	})
	return server
}

// giveUp ends a test that has no server.
func giveUp(tb testing.TB, err error) {
	tb.Helper()
	if errors.Is(err, servers.ErrNotInstalled) && os.Getenv(RequireStores) != "1" {
		tb.Skipf("%v (or run `make test` as root, which installs it)", err)
	}
	tb.Fatalf("no server for this test: %v", err)
}

// logOnFailure shows the end of a server's log when the test has failed.
func logOnFailure(tb testing.TB, server interface{ LogTail() string }) {
	tb.Helper()
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("last lines of the server's log:\n%s", server.LogTail())
		}
	})
}
