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

// The time is split by reason at the moments at which it changes by the clock alone.
func TestHeldBackTimeByReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 1, Per: time.Hour}, 0)
		require.Empty(t, th.WaitStats())
		time.Sleep(time.Minute)
		require.Empty(t, th.WaitStats(), "nobody waits")

		c := begin(th, 1, 0)
		s.h.Lease(Lease{Frozen: time.Now().Add(2 * time.Second)})
		time.Sleep(5 * time.Second) // two frozen, three without a share
		s.h.Lease(Lease{Share: WholeShare, Until: time.Now().Add(7 * time.Second)})
		time.Sleep(11 * time.Second) // seven by the limit, four without the store
		s.h.Lease(Lease{Reason: ReasonReplaced})
		time.Sleep(13 * time.Second)
		s.h.Lease(Lease{Reason: "a sharer's own"})
		time.Sleep(17 * time.Second)
		want := map[Reason]time.Duration{
			ReasonFrozen: 2 * time.Second, ReasonNoShare: 3 * time.Second, ReasonLimit: 7 * time.Second,
			ReasonStoreLost: 4 * time.Second, ReasonReplaced: 13 * time.Second, ReasonOther: 17 * time.Second,
		}
		check := func() {
			got := map[Reason]time.Duration{}
			for _, h := range th.WaitStats() {
				got[h.Reason] = h.Time
			}
			require.Equal(t, want, got)
		}
		check()
		c.cancel()
		require.Error(t, c.end(t).err)
		time.Sleep(time.Minute)
		check() // nobody waits
		require.Equal(t, int64(1), heldFor(th, ReasonNoShare).Waits)
	})
}

func TestHeldBackTimeEndsWithTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, Limit{Max: 1, Burst: 1})
		a, b := begin(th, 1, 0), begin(th, 1, 0)
		time.Sleep(10 * time.Second)
		require.NoError(t, a.end(t).err)
		require.NoError(t, b.end(t).err)
		h := heldFor(th, ReasonLimit)
		require.InDelta(t, 2, h.Time.Seconds(), 1e-6, "the time counts once for both")
		require.Equal(t, int64(2), h.Waits)
		require.Zero(t, h.Refusals)

		begin(th, 1, 0)
		c := begin(th, 1, 0)
		require.NoError(t, th.Close())
		require.ErrorIs(t, c.end(t).err, ErrClosed)
		time.Sleep(time.Minute)
		require.InDelta(t, 2, heldFor(th, ReasonLimit).Time.Seconds(), 1e-6)
		require.Equal(t, int64(1), heldFor(th, ReasonClosed).Refusals)
	})
}

func TestHeldBackOfSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := flight(t, 2)
		p := take(t, f, 2)
		c := beginWith(f.Acquire, 1, 0)
		time.Sleep(3 * time.Second)
		slotHolder{f}.Lease(Lease{Share: WholeShare, Until: time.Now().Add(5 * time.Second)})
		time.Sleep(9 * time.Second)
		require.Equal(t, WaitStats{Reason: ReasonInFlight, Waits: 1, Time: 8 * time.Second}, heldFor(f, ReasonInFlight))
		require.Equal(t, 4*time.Second, heldFor(f, ReasonStoreLost).Time)
		slotHolder{f}.Lease(Lease{Share: WholeShare})
		p.Cancel()
		require.NoError(t, c.end(t).err)
		time.Sleep(time.Minute)
		require.Equal(t, 8*time.Second, heldFor(f, ReasonInFlight).Time)
		deny(t, f, 2)
		deny(t, f, 3)
		require.Equal(t, int64(1), heldFor(f, ReasonInFlight).Refusals)
		require.Equal(t, int64(1), heldFor(f, ReasonTooLarge).Refusals)
	})
}

// Every refusal names the limit, the tag, the reason and what is known of the time to
// retry, and is counted by its reason.
// Slots say why and for how long as tokens do.
func TestSlotsOfAFrozenPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s script
		f := flight(t, 10, WithSharer(&s), WithName("calls"), WithTag("gold"))
		thawed := time.Now().Add(7 * time.Second)
		s.h.Lease(Lease{Frozen: thawed})
		th, ok := f.Throttled()
		require.True(t, ok)
		require.Equal(t, Throttling{Reason: ReasonFrozen, RetryAfter: 7 * time.Second, Frozen: 7 * time.Second, Limit: "calls", Tag: "gold"}, th)
		_, err := f.Acquire(timeout(t, time.Second), 1)
		e := throttled(t, err)
		const left = 6 * time.Second
		require.Equal(t, Error{Reason: ReasonFrozen, Limit: "calls", Tag: "gold", Cost: 1, RetryAfter: left, Frozen: left, Cause: e.Cause, by: e.by}, *e)
		f.gate.SetPauses([]Paused{{Until: thawed.Add(time.Second)}})
		th, _ = f.Throttled()
		require.Equal(t, ReasonPause, th.Reason)
		require.GreaterOrEqual(t, th.RetryAfter, 7*time.Second, "the later of both")
		f.gate.SetPauses(nil)
		s.h.Lease(Lease{Share: WholeShare, Until: time.Now().Add(time.Second), Frozen: thawed})
		_, ok = f.Throttled()
		require.False(t, ok, "who has a share uses it")
		for range 10 {
			take(t, f, 1)
		}
		th, _ = f.Throttled()
		require.Equal(t, ReasonInFlight, th.Reason)
		require.Zero(t, th.RetryAfter, "a call may end at any time")
		time.Sleep(2 * time.Second)
		th, _ = f.Throttled()
		require.Equal(t, ReasonFrozen, th.Reason)
		require.Equal(t, time.Until(thawed), th.RetryAfter)
	})
}

func TestEveryRefusalSaysWhyAndIsCounted(t *testing.T) {
	const frozen = 7 * time.Second
	for _, tc := range []struct {
		name  string
		lease Lease
		limit Limit
		n     int
		want  Reason
		retry time.Duration // 0: not known
	}{
		{name: "the limit", lease: Lease{Share: WholeShare}, n: 10, want: ReasonLimit, retry: 10 * time.Second},
		{name: "no share", want: ReasonNoShare, n: 1},
		{name: "frozen", lease: Lease{Frozen: time.Now().Add(frozen)}, want: ReasonFrozen, n: 1, retry: frozen - time.Second},
		{name: "replaced", lease: Lease{Reason: ReasonReplaced}, want: ReasonReplaced, n: 1},
		{name: "lost", lease: Lease{Share: WholeShare, Until: time.Now()}, want: ReasonStoreLost, n: 1},
		{name: "too large", lease: Lease{Share: WholeShare}, want: ReasonTooLarge, n: 11},
		{
			name: "share too small", lease: Lease{Share: WholeShare / 10}, limit: Limit{Max: 10, Per: 10 * time.Second, Burst: 5, Hard: true},
			n: 2, want: ReasonShareTooSmall,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if tc.limit.Max == 0 {
					tc.limit = Limit{Max: 10, Per: 10 * time.Second, Burst: 10}
				}
				th, s := scripted(t, tc.limit, 0, WithName("llm"), WithTag("gold"))
				lease := tc.lease
				if !lease.Frozen.IsZero() {
					lease.Frozen = time.Now().Add(frozen)
				}
				if !lease.Until.IsZero() {
					lease.Until = time.Now()
				}
				s.h.Lease(lease)
				other := whole(t, Limit{Max: 1000})
				var refusals int64
				for name, l := range map[string]Limiter{"Throttle": th, "All": All(th, other)} {
					deny(t, l, tc.n)
					refusals++
					require.Equal(t, refusals, heldFor(th, tc.want).Refusals, "%s: TryAcquire", name)

					_, err := l.Acquire(timeout(t, time.Second), tc.n)
					refusals++
					e := throttled(t, err)
					want := Error{Reason: tc.want, Limit: "llm", Tag: "gold", Cost: tc.n, RetryAfter: e.RetryAfter, Cause: e.Cause, by: th}
					if tc.want == ReasonFrozen {
						want.Frozen = e.RetryAfter
					}
					if tc.want == ReasonTooLarge {
						want.Largest = 10
					}
					require.Equal(t, want, *e, name)
					require.Equal(t, refusals, heldFor(th, tc.want).Refusals, "%s: Acquire", name)
					if lease.Frozen.IsZero() {
						require.InDelta(t, tc.retry.Seconds(), e.RetryAfter.Seconds(), 1e-6, name)
					} else {
						require.Equal(t, time.Until(lease.Frozen), e.RetryAfter, name)
					}
					s.h.Lease(Lease{}) // empty again
					if !lease.Until.IsZero() {
						lease.Until = time.Now()
					}
					s.h.Lease(lease)
				}
				if tc.want != ReasonTooLarge && tc.want != ReasonLimit {
					require.Equal(t, int64(2), heldFor(th, tc.want).Waits)
				}
				held, ok := th.Throttled()
				require.True(t, ok)
				require.Equal(t, "gold", held.Tag)
			})
		})
	}
}

// What keeps the callers waiting is also why one that does not wait is refused.
func TestRefusalWhileOthersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 1, Burst: 1}, 1)
		c := begin(th, 1, 0)
		deny(t, th, 1)
		require.Equal(t, int64(1), heldFor(th, ReasonLimit).Refusals)
		s.h.Lease(Lease{Reason: ReasonReplaced})
		deny(t, th, 1)
		require.Equal(t, int64(1), heldFor(th, ReasonReplaced).Refusals)
		c.cancel()
		require.Error(t, c.end(t).err)
	})
}

// watcher is an Observer that writes down what it is told.
type watcher struct{ told []any }

func (w *watcher) Waits(_ context.Context, wait Wait) func(Waited) {
	w.told = append(w.told, wait)
	return func(end Waited) { w.told = append(w.told, end) }
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
		require.Empty(t, w.told, "nobody waited")

		acquire(t, th, 5)
		require.Equal(t, []any{
			Wait{Limit: "llm", Tag: "gold", Reason: ReasonLimit, Cost: 5}, Waited{For: 500*time.Millisecond + 1, N: 5},
		}, w.told)

		w.told = nil
		s.give(0)
		_, err = th.Acquire(timeout(t, time.Second), 5)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, []any{
			Wait{Limit: "llm", Tag: "gold", Reason: ReasonNoShare, Cost: 5}, Waited{For: time.Second, Err: err},
		}, w.told)
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
		}, w.told)
		require.Equal(t, int64(1), heldFor(slow, ReasonNoShare).Waits)
		require.Empty(t, fast.WaitStats())
	})
}
