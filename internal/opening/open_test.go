package opening

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// draw takes tokens as fast as it gets them, until the Throttle is closed.
func draw(th *throttle.Throttle) *atomic.Int64 {
	var used atomic.Int64
	go func() {
		for {
			if _, err := th.Acquire(context.Background(), 1); err != nil {
				return
			}
			used.Add(1)
		}
	}()
	return &used
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestMemoryGrantsTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := mustOpen(t, Config{Limit: throttle.Limit{Max: 100}, Store: "memory://" + t.Name(), Logger: quiet()})
		used := draw(th)
		time.Sleep(10 * time.Second)
		require.InDelta(t, 1000, used.Load(), 20)
		require.Equal(t, "default", th.Status().Name)
		for pool, failFast := range map[string]bool{"strict": false, "strict and fail-fast": true} {
			used = draw(mustOpen(t, Config{
				Limit: throttle.Limit{Max: 10, Strict: true}, Store: "memory://" + t.Name(), Pool: pool, FailFast: failFast, Logger: quiet(),
			}))
			time.Sleep(10 * time.Second)
			require.InDelta(t, 100, used.Load(), 2, "the store issues the tokens of a strict limit from the first sync on")
		}
		require.NoError(t, th.Close())
		_, err := th.Acquire(t.Context(), 1)
		require.ErrorIs(t, err, throttle.ErrClosed)
	})
}

// The name alone makes one limit of vertices of different pipelines.
func TestMemoryIsSharedByName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := func(store, pool, id string) *throttle.Throttle {
			t.Setenv("NUMAFLOW_NAMESPACE", "ns")
			t.Setenv("NUMAFLOW_PIPELINE_NAME", "pipeline-"+id)
			t.Setenv("NUMAFLOW_VERTEX_NAME", "vertex-"+id)
			t.Setenv("NUMAFLOW_POD", id)
			return mustOpen(t, Config{
				Limit: throttle.Limit{Max: 100}, Store: "memory://" + t.Name() + store, Pool: pool, Policy: PolicyEven, Logger: quiet(),
			})
		}
		a, b := open("", "p", "a"), open("", "p", "b")
		otherPool, otherStore := open("", "q", "c"), open("2", "p", "d")
		time.Sleep(5 * time.Second)
		share := func(th *throttle.Throttle) int64 { return th.Status().Lease.Share }
		require.Equal(t, int64(limit.WholeShare/2), share(a))
		require.Equal(t, int64(limit.WholeShare/2), share(b))
		require.Equal(t, int64(limit.WholeShare), share(otherPool))
		require.Equal(t, int64(limit.WholeShare), share(otherStore))

		require.NoError(t, a.Close())
		time.Sleep(2 * time.Second)
		require.Equal(t, int64(limit.WholeShare), share(b), "who leaves frees its share")
	})
}

func TestFairPolicyIsTheDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := func(id string) *throttle.Throttle {
			return mustOpen(t, Config{Limit: throttle.Limit{Max: 100}, Store: "memory://" + t.Name(), ID: id, Logger: quiet()})
		}
		busy, idle := open("busy"), open("idle")
		draw(busy)
		time.Sleep(10 * time.Second)
		require.Greater(t, busy.Status().Lease.Share, int64(limit.WholeShare*9/10))
		require.Positive(t, idle.Status().Lease.Share)
	})
}

// The log and the error of a replaced processor say so.
func TestTheNewerOfTwoProcessorsWithOneIDWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logs testkit.Book
		c := Config{Limit: throttle.Limit{Max: 100}, Store: "memory://" + t.Name(), Pool: "p", ID: "same", Lease: 3 * time.Second, Logger: logs.Logger()}
		older := mustOpen(t, c)
		time.Sleep(2 * time.Second)
		require.True(t, grants(older)())
		newer := mustOpen(t, c)
		time.Sleep(10 * time.Second) // a sync of each, and the older one's claim is over
		require.True(t, grants(newer)())
		require.Equal(t, throttle.ReasonReplaced, reason(older))
		require.Contains(t, logs.String(), "another process joined the pool under this pod's ID")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := older.Acquire(ctx, 1)
		var refused *throttle.Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, throttle.ReasonReplaced, refused.Reason)
	})
}

func TestMemoryWarnsInAPod(t *testing.T) {
	const warning = "memory:// is not shared between pods"
	for _, tc := range []struct {
		name, variable, store string
		max                   int
		warns                 bool
	}{
		{name: "in a pod", variable: "NUMAFLOW_POD", store: "memory://", max: 1, warns: true},
		{name: "in a pod, by default", variable: "NUMAFLOW_POD", max: 1, warns: true},
		{name: "in a pod of another kind", variable: "KUBERNETES_SERVICE_HOST", max: 1, warns: true},
		{name: "in a mono vertex", variable: "NUMAFLOW_MONO_VERTEX_NAME", max: 1, warns: true},
		{name: "without a limit", variable: "NUMAFLOW_POD"},
		{name: "with another store", variable: "NUMAFLOW_POD", store: "static://?replicas=2", max: 1},
		{name: "elsewhere", variable: "HOME", max: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			clearEnv(t)
			t.Setenv(tc.variable, "x")
			var logs testkit.Book
			mustOpen(t, Config{Limit: throttle.Limit{Max: tc.max}, Store: tc.store, Logger: logs.Logger()})
			if tc.warns {
				require.Equal(t, 1, strings.Count(logs.String(), "level=WARN msg=\""+warning), logs.String())
			} else {
				require.NotContains(t, logs.String(), warning)
			}
		})
	}
}

func TestALimiterSaysAtItsStartWhatItDoes(t *testing.T) {
	clearEnv(t)
	var logs testkit.Book
	c := Config{
		Limit: throttle.Limit{Max: 100, Per: time.Minute, Hard: true}, Store: "memory://said", Pool: "ns/pipe/map", ID: "map-0", Logger: logs.Logger(),
	}
	mustOpen(t, c)
	require.Equal(t, 1, strings.Count(logs.String(), "limiter started"))
	require.Regexp(t, `level=INFO msg="limiter started" limit="100 per 1m, burst \d+, hard" pool=ns/pipe/map store=memory://said pod=map-0 lease=10s`,
		logs.String())

	var slotLogs testkit.Book
	f, err := InFlight(t.Context(), 32, Config{Store: "memory://said", Pool: "p", ID: "i", Logger: slotLogs.Logger()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	require.Contains(t, slotLogs.String(), `level=INFO msg="limiter started" limit="32 calls in flight" pool=p`)
}

func TestNoLimitIsSaidWhereOneWasMeant(t *testing.T) {
	for _, tc := range []struct {
		name, variable, store, warns string
		limit                        throttle.Limit
	}{
		{name: "in a pod", variable: "NUMAFLOW_POD", warns: "this is a pod of Numaflow's, but there is no limit"},
		{name: "with a store", variable: "HOME", store: "redis://127.0.0.1:1", warns: "a store is set, but there is no limit"},
		{name: "with a period", variable: "HOME", limit: throttle.Limit{Per: time.Minute}, warns: "settings of a limit are set, but there is no limit"},
		{name: "elsewhere", variable: "HOME"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			clearEnv(t)
			t.Setenv(tc.variable, "x")
			var logs testkit.Book
			mustOpen(t, Config{Limit: tc.limit, Store: tc.store, Logger: logs.Logger()})
			require.NotContains(t, logs.String(), "limiter started")
			if tc.warns == "" {
				require.Contains(t, logs.String(), `level=INFO msg="there is no limit: everything passes at once; set NUMATHROTTLE_MAX"`)
				require.Equal(t, 1, strings.Count(logs.String(), "\n"))
				return
			}
			require.Contains(t, logs.String(), "level=WARN")
			require.Contains(t, logs.String(), tc.warns)
			require.Contains(t, logs.String(), "set NUMATHROTTLE_MAX")
		})
	}
}

func TestStaticDividesTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := mustOpen(t, Config{Limit: throttle.Limit{Max: 100}, Store: "static://?replicas=4", Pool: "p"})
		used := draw(th)
		time.Sleep(time.Minute)
		require.InDelta(t, 60*25, used.Load(), 5)
		require.Equal(t, "p", th.Status().Name)
	})
}

func TestWithoutALimitNoStoreIsUsed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	var connections atomic.Int64
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			conn.Close()
		}
	}()
	for _, scheme := range []string{"redis", "redis+cluster", "nats"} {
		th := mustOpen(t, Config{
			Store: scheme + "://" + listener.Addr().String(), FailFast: true,
			StorePasswordFile: "/nonexistent", // is not even looked for
		})
		require.True(t, throttle.Unlimited(th))
		for range 1000 {
			_, ok := th.TryAcquire(1_000_000)
			require.True(t, ok)
		}
		require.NoError(t, th.Close())
	}
	// A connection made by then would have come before this one.
	conn, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	_, err = conn.Read(make([]byte, 1))
	require.Error(t, err)
	require.EqualValues(t, 1, connections.Load())
}

func TestOpenEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	_, err := Open(ctx, Config{Limit: throttle.Limit{Max: 1}, Store: "memory://" + t.Name(), FailFast: true, Logger: quiet()})
	require.Error(t, err)

	// Without FailFast nothing is waited for, and the context says nothing about
	// what comes after Open.
	th := mustOpen(t, Config{Limit: throttle.Limit{Max: 100}, Store: "memory://" + t.Name(), Logger: quiet()})
	eventually(t, grants(th), "a token")
}

func TestFilesThatCannotBeUsed(t *testing.T) {
	clearEnv(t)
	wrong := writeFile(t, "wrong.txt", canary)
	empty := writeFile(t, "empty.txt", " \n")
	for name, tc := range map[string]struct {
		config Config
		want   string
	}{
		"missing": {
			Config{Store: "redis://h", StorePasswordFile: "/nonexistent/file"},
			`storePasswordFile is "/nonexistent/file", which cannot be used: no such file or directory`,
		},
		"empty": {
			Config{Store: "redis://h", StorePasswordFile: empty},
			`storePasswordFile is "` + empty + `", which cannot be used: it is empty`,
		},
		"sentinel": {
			Config{Store: "redis+sentinel://h/m", StoreSentinelPasswordFile: "/"},
			`storeSentinelPasswordFile is "/", which cannot be used: is a directory`,
		},
		"token": {
			Config{Store: "nats://h", StoreTokenFile: "/nonexistent/file"},
			`storeTokenFile is "/nonexistent/file", which cannot be used: no such file or directory`,
		},
		"creds": {
			Config{Store: "nats://h", StoreCredsFile: wrong},
			`storeCredsFile is "` + wrong + `", which cannot be used: it holds no user JWT with its seed`,
		},
		"nkey": {
			Config{Store: "nats://h", StoreNkeyFile: wrong},
			`storeNkeyFile is "` + wrong + `", which cannot be used: it holds no nkey seed of a user`,
		},
		"authorities": {
			Config{Store: "tls://h", StoreCAFile: wrong},
			`storeCAFile is "` + wrong + `", which cannot be used: it holds no certificate in PEM`,
		},
		"certificate": {
			Config{Store: "rediss://h", StoreCertFile: wrong, StoreKeyFile: wrong},
			`storeCertFile and storeKeyFile are "` + wrong + `" and "` + wrong + `", which cannot be used: ` +
				`tls: failed to find any PEM data in certificate input`,
		},
		"several": {
			Config{Store: "tls://h", StoreCAFile: empty, StoreNkeyFile: "/nonexistent/file", Lease: 1},
			"lease is \"1ns\", allowed: a duration in whole milliseconds, `3s` to `10s`" +
				"\nnumathrottle: " + `storeCAFile is "` + empty + `", which cannot be used: it is empty` +
				"\nnumathrottle: " + `storeNkeyFile is "/nonexistent/file", which cannot be used: no such file or directory`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.config.Limit.Max, tc.config.Pool = 1, "p"
			_, err := Open(t.Context(), tc.config)
			require.EqualError(t, err, "numathrottle: "+tc.want)
		})
	}
}
