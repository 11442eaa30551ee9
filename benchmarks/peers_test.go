package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
)

// Who is refused asks again when it is told to, and no sooner.
func TestByAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		answers := []time.Duration{time.Second, 2 * time.Second, 0}
		asked := 0
		wait := byAsking(func(context.Context) (time.Duration, error) {
			asked++
			return answers[asked-1], nil
		})
		require.NoError(t, wait(t.Context()))
		require.Equal(t, 3, asked)
		require.GreaterOrEqual(t, time.Since(began), 3*time.Second)
		require.LessOrEqual(t, time.Since(began), 3300*time.Millisecond+2)

		broken := errors.New("broken")
		require.ErrorIs(t, byAsking(func(context.Context) (time.Duration, error) { return time.Hour, broken })(t.Context()), broken)

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		refused := byAsking(func(context.Context) (time.Duration, error) { return time.Hour, nil })
		require.ErrorIs(t, refused(ctx), context.DeadlineExceeded)
	})
}

// Commands are counted as they are sent, those of a pipeline each.
func TestSentHook(t *testing.T) {
	e := &peerEnv{}
	hook := sentHook{&e.sent}
	ctx := t.Context()
	one := hook.ProcessHook(func(context.Context, redis.Cmder) error { return nil })
	require.NoError(t, one(ctx, redis.NewCmd(ctx, "incr", "k")))
	several := hook.ProcessPipelineHook(func(context.Context, []redis.Cmder) error { return nil })
	require.NoError(t, several(ctx, []redis.Cmder{redis.NewCmd(ctx, "time"), redis.NewCmd(ctx, "get", "k")}))
	require.EqualValues(t, 3, e.sent.Load())
}

// Every limiter lets the calls of every pod through, and the figures of those with a store say so.
func TestPeersLetCallsThrough(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		require.Empty(t, os.Getenv("NUMATHROTTLE_REQUIRE_STORES"), err)
		t.Skip("there is no redis-server")
	}
	b := &bench{progress: io.Discard, dir: t.TempDir(), servers: map[string]string{}}
	be, err := b.redisBackend(t.Context(), consensus.MinLease)
	require.NoError(t, err)
	defer func() { require.NoError(t, be.close()) }()
	for _, p := range peers {
		t.Run(p.name, func(t *testing.T) {
			env := &peerEnv{backend: be, max: 400, name: "test-" + p.name, lease: consensus.MinLease}
			opened, err := p.open(t.Context(), env)
			require.NoError(t, err)
			before, err := env.asked(t.Context())
			require.NoError(t, err)
			require.Len(t, opened.pods, peerPods)
			for _, wait := range opened.pods {
				for range 3 {
					require.NoError(t, wait(t.Context()))
				}
			}
			after, err := env.asked(t.Context())
			require.NoError(t, err)
			if env.uses && !env.steps {
				require.GreaterOrEqual(t, after.commands-before.commands, int64(12), "it asks for each call")
			}
			require.NoError(t, opened.done())
		})
	}
}

// A run adds up what is granted while it looks, and nothing is asked of a store that there is not.
func TestRunPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{progress: io.Discard}
		p := peer{"test", func(context.Context, *peerEnv) (peerOpened, error) {
			// Each goroutine is granted ten a second.
			wait := func(ctx context.Context) error {
				if !pause(ctx, 100*time.Millisecond) {
					return context.Cause(ctx)
				}
				return nil
			}
			return peerOpened{pods: []waiter{wait, wait, wait, wait}, done: func() error { return nil }}, nil
		}}
		run, err := b.runPeer(t.Context(), nil, p, peerWork{max: 100, busy: 1, from: time.Second, length: 4 * time.Second})
		require.NoError(t, err)
		require.InDelta(t, 1.6, run.use, 1e-9, "640 of 400")
		require.InDelta(t, 1.6, run.worst, 1e-9, "160 of 100 in a second")
		require.False(t, run.uses)
	})
}

// A limiter that fails ends the run.
func TestRunPeerFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		b := &bench{progress: io.Discard}
		ended := false
		p := peer{"test", func(context.Context, *peerEnv) (peerOpened, error) {
			return peerOpened{
				pods: []waiter{func(context.Context) error { return broken }},
				done: func() error { ended = true; return nil },
			}, nil
		}}
		_, err := b.runPeer(t.Context(), nil, p, peerWork{max: 100, busy: 1, length: time.Hour})
		require.ErrorIs(t, err, broken)
		require.True(t, ended)
	})
}
