package main

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// evenly grants so many calls a second to each pod, evenly to its goroutines, and fails while it is told to.
func evenly(perPod int, away *atomic.Bool, uses bool) peer {
	return peer{"test", func(_ context.Context, e *peerEnv) (peerOpened, error) {
		wait := func(ctx context.Context) error {
			if away.Load() {
				return errors.New("the store is away")
			}
			if !pause(ctx, time.Second*peerGoroutines/time.Duration(perPod)) {
				return context.Cause(ctx)
			}
			return nil
		}
		e.uses, e.steps = uses, false
		return peerOpened{pods: []waiter{wait, wait, wait, wait}, done: func() error { return nil }}, nil
	}}
}

// A pod that is killed makes no calls any more; while the store is away nothing is granted, and afterwards all is again.
func TestBreakPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{progress: io.Discard}
		var away atomic.Bool
		be := &backend{
			halt:   func(context.Context) error { away.Store(true); return nil },
			resume: func() error { away.Store(false); return nil },
			cpu:    func(context.Context) (time.Duration, error) { return 0, nil },
		}
		cells, err := b.breakPeer(t.Context(), be, evenly(peerFaultMax/peerPods, &away, true))
		require.NoError(t, err)
		require.Len(t, cells, 5)
		require.Equal(t, []string{"0.75", "0.75"}, cells[:2], "three of four pods are left")
		require.Regexp(t, `^0\.0[0-2]$`, cells[2], "what was under way when the store went")
		require.Equal(t, "1.02", cells[3], "a call of each goroutine, and what comes in a second")
		require.Regexp(t, `^0\.[01]\d s$`, cells[4])

		cells, err = b.breakPeer(t.Context(), be, evenly(peerFaultMax/peerPods, &away, false))
		require.NoError(t, err)
		require.Equal(t, []string{"0.75", "0.75", "-", "-", "-"}, cells, "there is no store to go away")
	})
}

// Single draws are timed, each pod's.
func TestTimeDraws(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{progress: io.Discard}
		took, err := b.timeDraws(t.Context(), nil, evenly(1000*peerGoroutines, new(atomic.Bool), false))
		require.NoError(t, err)
		require.Len(t, took, 1000, "a tenth of the limit for ten seconds")
		require.Equal(t, time.Millisecond, median(took))
		require.Equal(t, "1.000 ms", short(time.Millisecond))
		require.Equal(t, "0.3 us", short(300*time.Nanosecond))
	})
}
