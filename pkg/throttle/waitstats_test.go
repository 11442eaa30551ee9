package throttle

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// heldFor returns what was counted for one reason.
func heldFor(l interface{ WaitStats() []WaitStats }, r Reason) WaitStats {
	for _, h := range l.WaitStats() {
		if h.Reason == r {
			return h
		}
	}
	return WaitStats{Reason: r}
}

// watcher is an Observer that writes down what it is told.
type watcher struct{ reported []any }

func (w *watcher) Waits(_ context.Context, wait Wait) func(Waited) {
	w.reported = append(w.reported, wait)
	return func(end Waited) { w.reported = append(w.reported, end) }
}

func TestObserverIsToldOfWaitsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watcher{}
		th, s := scripted(t, Limit{Max: 10, Burst: 10}, 1, WithName("llm"), WithTag("gold"), WithObserver(w))
		time.Sleep(2 * time.Second)
		acquire(t, th, 4)
		_, err := th.AcquireUpTo(t.Context(), 2)
		require.NoError(t, err)
		take(t, th, 4)
		deny(t, th, 1)
		_, err = th.Acquire(timeout(t, time.Millisecond), 10)
		require.Error(t, err)
		require.Empty(t, w.reported, "nobody waited")

		acquire(t, th, 5)
		require.Equal(t, []any{
			Wait{Limit: "llm", Tag: "gold", Reason: ReasonLimit, Cost: 5}, Waited{For: 500*time.Millisecond + 1, N: 5},
		}, w.reported)

		w.reported = nil
		s.give(0)
		_, err = th.Acquire(timeout(t, time.Second), 5)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, []any{
			Wait{Limit: "llm", Tag: "gold", Reason: ReasonNoShare, Cost: 5}, Waited{For: time.Second, Err: err},
		}, w.reported)
	})
}

// A wait at several limiters is told to each of them in turn.
func TestObserverOfAnAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watcher{}
		fast := whole(t, Limit{Max: 10, Burst: 10}, WithName("fast"), WithObserver(w))
		slow, s := scripted(t, Limit{Max: 10, Burst: 10}, 0, WithName("slow"), WithObserver(w))
		c := beginWith(All(fast, slow).Acquire, 5, 0)
		time.Sleep(100 * time.Millisecond)
		s.give(1)
		time.Sleep(time.Second)
		require.NoError(t, c.end(t).err)
		require.Equal(t, []any{
			Wait{Limit: "slow", Reason: ReasonNoShare, Cost: 5}, Waited{For: 600*time.Millisecond + 1, N: 5},
		}, w.reported)
		require.Equal(t, int64(1), heldFor(slow, ReasonNoShare).Waits)
		require.Empty(t, fast.WaitStats())
	})
}
