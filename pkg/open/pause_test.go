package open

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// TestPauseOnEachStore pauses a pool of two processors on real servers: both stop at once, one that
// joins later is paused, too, and all go on.
func TestPauseOnEachStore(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T) string{
		"redis":          func(t *testing.T) string { return "redis://" + testenv.Redis(t).Addr() },
		"redis database": func(t *testing.T) string { return "redis://" + testenv.Redis(t).Addr() + "/5" },
		"nats":           func(t *testing.T) string { return testenv.NATS(t).URL() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := start(t)
			a, b := mustOpen(t, short(store, "a")), mustOpen(t, short(store, "b"))
			slots := short(store, "b")
			slots.Limit, slots.Pool = throttle.Limit{}, "slots"
			f := mustOpenInFlight(t, 10, slots)
			eventually(t, func() bool { return a.Status().Lease.Share == throttle.WholeShare/2 }, "half of the limit")
			eventually(t, func() bool { return b.Status().Lease.Share == throttle.WholeShare/2 }, "half of the limit")

			var r throttle.PauseReceipts
			works(t, func() (err error) {
				r, err = a.Pause(t.Context(), time.Time{}, "the service is down", throttle.WaitForReceipts(10*time.Second))
				return err
			})
			require.Equal(t, []string{"a", "b"}, r.Answered)
			require.Empty(t, r.Missing)
			require.NotZero(t, r.Generation)
			for _, th := range []*throttle.Throttle{a, b} {
				require.False(t, grants(th)())
				require.Equal(t, throttle.ReasonPause, reason(th))
				require.Equal(t, "the service is down", th.Status().Paused.Reason)
			}
			c := mustOpen(t, short(store, "c"))
			eventually(t, func() bool { return c.Status().Paused != nil }, "the pause")
			require.False(t, grants(c)())

			works(t, func() error { return b.Resume(t.Context()) })
			for _, th := range []*throttle.Throttle{a, b, c} {
				eventually(t, grants(th), "a token")
			}
			eventually(t, func() bool { return f.Status().Slots == 10 }, "all slots")
			works(t, func() error {
				_, err := f.Pause(t.Context(), time.Now().Add(time.Hour), "")
				return err
			})
			_, ok := f.TryAcquire(1)
			require.False(t, ok)
			works(t, func() error { return f.Resume(t.Context()) })
			eventually(t, func() bool { _, ok := f.TryAcquire(1); return ok }, "a slot")
		})
	}
}

// works asks a store again that answers too late: with the shortest lease it has half a second, in which a server on a busy disk may stand still.
func works(t *testing.T, ask func() error) {
	t.Helper()
	var err error
	for range 10 {
		if err = ask(); err == nil {
			return
		}
	}
	require.NoError(t, err)
}

func TestPauseWithoutAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, store := range []string{"memory://", "static://?replicas=4"} {
			th := mustOpen(t, Config{Limit: throttle.Limit{Max: 1000}, Store: store, Logger: quiet()})
			eventually(t, grants(th), "a token")
			r, err := th.Pause(t.Context(), time.Now().Add(time.Minute), "told so")
			require.NoError(t, err)
			require.Empty(t, r.Missing)
			require.InDelta(t, 60, time.Until(r.Until).Seconds(), 0.1)
			time.Sleep(time.Minute - time.Second)
			require.False(t, grants(th)(), store)
			time.Sleep(3 * time.Second)
			require.True(t, grants(th)(), store)
			require.NoError(t, th.Close())
		}
	})
}
