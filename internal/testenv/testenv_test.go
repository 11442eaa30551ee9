package testenv

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
)

const (
	// waitFor bounds what takes well under a second on a quiet machine.
	waitFor = 30 * time.Second
	every   = 20 * time.Millisecond

	// parentEnv makes this test binary start a server in the directory that it names, print the server's address, and hang, instead of
	// running tests.
	parentEnv = "TESTENV_PARENT_DIR"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentEnv); dir != "" {
		server, err := servers.StartRedis(context.Background(), dir)
		if err != nil {
			fmt.Fprintln(os.Stdout, "error:", err)
			os.Exit(1)
		}
		fmt.Fprintln(os.Stdout, server.Addr())
		select {}
	}
	flag.Parse()
	if testing.Short() {
		fmt.Println("-short: every test here starts servers")
		return
	}
	m.Run()
}

func TestServerEndsWithItsParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has a parent-death signal")
	}
	Redis(t) // skips or fails where there is no redis-server

	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentEnv+"="+t.TempDir())
	output, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	addr, err := bufio.NewReader(output).ReadString('\n')
	require.NoError(t, err)
	client := redisClient(t, strings.TrimSpace(addr))
	require.NoError(t, client.Ping(t.Context()).Err(), "the parent printed %q", addr)
	require.NoError(t, parent.Process.Kill())
	require.Error(t, parent.Wait())
	require.Eventually(t, func() bool { return client.Ping(t.Context()).Err() != nil }, waitFor, every,
		"the server ends when its parent is killed")
}

func redisClient(tb testing.TB, addr string) *redis.Client {
	tb.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true})
	tb.Cleanup(func() { client.Close() })
	return client
}

// A daemon is a server that a test breaks.
type daemon interface {
	Kill() error
	Stop(ctx context.Context) error
	Continue() error
	Restart(ctx context.Context) error
	Pid() int
}

// A started server is one with a client.
type started struct {
	daemon
	addr string
	put  func(ctx context.Context) error
	get  func(ctx context.Context) error // an error without what was put
}

// Each server hangs while it is stopped, has its address for itself over a kill, and keeps what it has on disk. It is gone after its test.
func TestServers(t *testing.T) {
	aRedis := func(t *testing.T, opts ...servers.RedisOption) started {
		server := Redis(t, opts...)
		client := redisClient(t, server.Addr())
		return started{
			server, server.Addr(),
			func(ctx context.Context) error { return client.Set(ctx, "key", "value", 0).Err() },
			func(ctx context.Context) error { return client.Get(ctx, "key").Err() },
		}
	}
	for name, c := range map[string]struct {
		start func(t *testing.T) started
		keeps bool
	}{
		"redis":     {func(t *testing.T) started { return aRedis(t) }, false},
		"redis aof": {func(t *testing.T) started { return aRedis(t, servers.WithAppendOnly()) }, true},
		"nats": {func(t *testing.T) started {
			server := NATSBinary(t)
			put, get := bucket(t, server.URL())
			return started{server, hostOf(t, server.URL()), put, get}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var addr string
			t.Run("running", func(t *testing.T) {
				s := c.start(t)
				addr = s.addr
				eventually(t, s.put)
				require.NoError(t, s.Stop(t.Context()))
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer cancel()
				require.Error(t, s.get(ctx))
				pid := s.Pid()
				require.NotZero(t, pid, "a stopped server is still there")
				require.NoError(t, s.Continue())
				eventually(t, s.get)

				require.NoError(t, s.Kill())
				require.Zero(t, s.Pid())
				requireRefused(t, addr)
				_, err := net.ListenPacket("udp4", addr)
				require.Error(t, err, "no other server may reserve its port")
				require.Error(t, s.Stop(t.Context()))
				require.Error(t, s.Continue())
				require.NoError(t, s.Restart(t.Context()))
				require.NotEqual(t, pid, s.Pid())
				if c.keeps {
					eventually(t, s.get)
				} else {
					require.ErrorIs(t, s.get(t.Context()), redis.Nil)
				}
			})
			requireRefused(t, addr)
		})
	}
}

func TestEmbeddedNATSKeepsItsStore(t *testing.T) {
	n := NATS(t)
	put, get := bucket(t, n.URL())
	eventually(t, put)
	n.Shutdown()
	requireRefused(t, hostOf(t, n.URL()))
	require.NoError(t, n.Restart(t.Context()))
	eventually(t, get)
}

// bucket makes a bucket and returns functions that put something in it and look for that.
func bucket(t *testing.T, url string) (put, get func(ctx context.Context) error) {
	t.Helper()
	nc, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(every), nats.ReconnectBufSize(-1))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	kv, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "pools"})
	require.NoError(t, err)
	return func(ctx context.Context) error { _, err := kv.PutString(ctx, "key", "value"); return err },
		func(ctx context.Context) error { _, err := kv.Get(ctx, "key"); return err }
}

// eventually polls a call to a server that may be on its way back.
func eventually(t *testing.T, call func(ctx context.Context) error) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.NoError(c, call(ctx))
	}, waitFor, every)
}

func hostOf(t *testing.T, address string) string {
	t.Helper()
	parsed, err := url.Parse(address)
	require.NoError(t, err)
	return parsed.Host
}

// requireRefused asserts that nothing listens on the address.
func requireRefused(t *testing.T, addr string) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err == nil {
		conn.Close()
	}
	require.Error(t, err, "something still listens on %s", addr)
}

// recorder is a testing.TB that only notes how a test was given up.
type recorder struct {
	testing.TB
	skipped, failed string
}

func (r *recorder) Helper() {}

func (r *recorder) Skipf(format string, args ...any) {
	r.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// A missing server skips a test, unless every store is required; one that does not start fails it.
func TestGiveUp(t *testing.T) {
	missing := fmt.Errorf("some-server is %w: install it", servers.ErrNotInstalled)
	for _, c := range []struct {
		required string
		err      error
		skips    bool
	}{{"", missing, true}, {"1", missing, false}, {"", errors.New("some-server is broken"), false}} {
		t.Setenv(RequireStores, c.required)
		r := &recorder{TB: t}
		done := make(chan struct{})
		go func() {
			defer close(done)
			giveUp(r, c.err)
		}()
		<-done
		said, other := r.failed, r.skipped
		if c.skips {
			said, other = other, said
		}
		require.Contains(t, said, c.err.Error())
		require.Empty(t, other)
	}
}
