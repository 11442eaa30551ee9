package testenv_test

import (
	"context"
	"net/url"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
)

func natsConn(tb testing.TB, urls string) *nats.Conn {
	tb.Helper()
	nc, err := nats.Connect(urls, nats.MaxReconnects(-1), nats.ReconnectWait(every), nats.ReconnectBufSize(-1))
	require.NoError(tb, err)
	tb.Cleanup(nc.Close)
	return nc
}

func bucket(tb testing.TB, nc *nats.Conn, replicas int) jetstream.KeyValue {
	tb.Helper()
	js, err := jetstream.New(nc)
	require.NoError(tb, err)
	ctx, cancel := context.WithTimeout(tb.Context(), waitFor)
	defer cancel()
	kv, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "pools", Replicas: replicas})
	require.NoError(tb, err)
	return kv
}

// eventually polls a call to a server that may be on its way back.
func eventually(tb testing.TB, call func(ctx context.Context) error, message string) {
	tb.Helper()
	deadline := time.Now().Add(waitFor)
	for {
		ctx, cancel := context.WithTimeout(tb.Context(), time.Second)
		err := call(ctx)
		cancel()
		if err == nil {
			return
		}
		require.True(tb, time.Now().Before(deadline), "%s: %v", message, err)
		time.Sleep(every)
	}
}

func put(kv jetstream.KeyValue, key, value string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		_, err := kv.PutString(ctx, key, value)
		return err
	}
}

func hostOf(tb testing.TB, address string) string {
	tb.Helper()
	parsed, err := url.Parse(address)
	require.NoError(tb, err)
	return parsed.Host
}

func requireValue(tb testing.TB, kv jetstream.KeyValue, key, want string) {
	tb.Helper()
	var got string
	eventually(tb, func(ctx context.Context) error {
		entry, err := kv.Get(ctx, key)
		if err == nil {
			got = string(entry.Value())
		}
		return err
	}, "get "+key)
	require.Equal(tb, want, got)
}

func TestNATSAnswersAndIsGoneAfterwards(t *testing.T) {
	var address string
	t.Run("running", func(t *testing.T) {
		n := testenv.NATS(t)
		address = n.URL()
		require.True(t, n.Running())
		nc := natsConn(t, address)
		require.Equal(t, server.VERSION, nc.ConnectedServerVersion())
		kv := bucket(t, nc, 1)
		eventually(t, put(kv, "key", "value"), "put")
		requireValue(t, kv, "key", "value")
	})
	requireRefused(t, hostOf(t, address))
}

func TestNATSRestartKeepsTheStore(t *testing.T) {
	n := testenv.NATS(t)
	address := n.URL()
	nc := natsConn(t, address)
	kv := bucket(t, nc, 1)
	eventually(t, put(kv, "key", "value"), "put")

	n.Shutdown()
	require.False(t, n.Running())
	requireRefused(t, hostOf(t, address))
	n.Shutdown()

	require.NoError(t, n.Restart(t.Context()))
	require.Equal(t, address, n.URL())
	requireValue(t, kv, "key", "value")
}

func TestNATSRestartEmptyLosesTheStore(t *testing.T) {
	n := testenv.NATS(t)
	nc := natsConn(t, n.URL())
	kv := bucket(t, nc, 1)
	eventually(t, put(kv, "key", "value"), "put")

	require.NoError(t, n.RestartEmpty(t.Context()))
	kv = bucket(t, natsConn(t, n.URL()), 1)
	_, err := kv.Get(t.Context(), "key")
	require.ErrorIs(t, err, jetstream.ErrKeyNotFound)
}

func TestNATSOptions(t *testing.T) {
	n := testenv.NATS(t, func(o *server.Options) { o.Username, o.Password = "user", "pass" })
	_, err := nats.Connect(n.URL())
	require.ErrorIs(t, err, nats.ErrAuthorization)
	nc, err := nats.Connect(n.URL(), nats.UserInfo("user", "pass"))
	require.NoError(t, err)
	nc.Close()
}

func TestNATSBinary(t *testing.T) {
	var address string
	t.Run("running", func(t *testing.T) {
		n := testenv.NATSBinary(t, "max_payload: 2048")
		address = n.URL()
		nc := natsConn(t, address)
		require.Equal(t, int64(2048), nc.MaxPayload())
		kv := bucket(t, nc, 1)
		eventually(t, put(kv, "key", "value"), "put")
		pid := n.Pid()
		require.NotZero(t, pid)

		require.NoError(t, n.Stop(t.Context()))
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, put(kv, "key", "while stopped")(ctx), context.DeadlineExceeded)
		require.NoError(t, n.Continue())
		eventually(t, put(kv, "key", "continued"), "put after SIGCONT")

		require.NoError(t, n.Kill())
		requireRefused(t, hostOf(t, address))
		require.NoError(t, n.Restart(t.Context()))
		require.NotEqual(t, pid, n.Pid())
		require.Equal(t, address, n.URL())
		requireValue(t, kv, "key", "continued")
	})
	requireRefused(t, hostOf(t, address))
}

func TestNATSBinaryConfigThatTheServerRefusesIsAnError(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), waitFor)
	defer cancel()
	_, err := servers.StartNATSProcess(ctx, t.TempDir(), "no_such_setting: 1")
	if err != nil {
		skipIfMissing(t, err)
	}
	require.ErrorContains(t, err, "no_such_setting", "the server's own words are in the error")
}

func TestNATSClusterSurvivesItsLeader(t *testing.T) {
	t.Parallel() // most of it is waiting for the nodes
	var urls []string
	t.Run("running", func(t *testing.T) {
		cluster := testenv.NATSCluster(t, 3)
		urls = cluster.URLs()
		require.Len(t, urls, 3)
		require.NotNil(t, cluster.Leader())
		nc := natsConn(t, urls[0]+","+urls[1]+","+urls[2])
		kv := bucket(t, nc, 3)
		eventually(t, put(kv, "key", "value"), "put")

		leader := cluster.StreamLeader("KV_pools")
		require.NotNil(t, leader)
		leader.Shutdown()
		eventually(t, put(kv, "key", "newer"), "put without the old leader")
		require.NotSame(t, leader, cluster.StreamLeader("KV_pools"))

		require.NoError(t, leader.RestartEmpty(t.Context()))
		ctx, cancel := context.WithTimeout(t.Context(), waitFor)
		defer cancel()
		require.NoError(t, cluster.WaitReady(ctx))
		requireValue(t, kv, "key", "newer")
	})
	for _, address := range urls {
		requireRefused(t, hostOf(t, address))
	}
}
