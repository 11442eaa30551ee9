package throttle

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/engine/join"
	"github.com/numaproj-contrib/numathrottle/internal/engine/waitqueue"
)

// Everything at hand: no lock is taken, so it does not matter who holds them.
func TestAllTryAcquireTakesNoLock(t *testing.T) {
	a := whole(t, slow(100))
	b := whole(t, slow(100))
	brimming(a, 50)
	brimming(b, 50)
	l := All(a, PerCall(b))
	a.gate.Lock()
	b.gate.Lock()
	got := make(chan bool, 2)
	go func() {
		_, ok := l.TryAcquire(3)
		got <- ok
		_, ok = l.TryAcquire(60) // nor to be refused
		got <- ok
	}()
	for _, want := range []bool{true, false} {
		select {
		case ok := <-got:
			require.Equal(t, want, ok)
		case <-time.After(10 * time.Second):
			t.Error("TryAcquire waits for a lock")
		}
	}
	b.gate.Unlock()
	a.gate.Unlock()
	require.Equal(t, int64(3), a.Status().Granted)
	require.Equal(t, int64(1), b.Status().Granted)
	require.LessOrEqual(t, testing.AllocsPerRun(30, func() { l.TryAcquire(1) }), 1.0)
}

// What TryAcquire took from one limiter before another refused goes back exactly, also
// while others draw, wait and settle.
func TestAllGivesBackExactly(t *testing.T) {
	a, b := whole(t, slow(100_000)), whole(t, slow(100_000))
	brimming(a, 50_000)
	brimming(b, 50_000)
	var wg sync.WaitGroup
	var granted [2]atomic.Int64
	refuses := newForeign(0)
	for i := range 4 {
		wg.Go(func() {
			th := []*Throttle{a, b}[i%2]
			for range 3000 {
				if _, ok := All(a, b, refuses).TryAcquire(3); ok {
					t.Error("granted")
				}
				if p, ok := All(b, a).TryAcquire(2); ok {
					granted[0].Add(2)
					granted[1].Add(2)
					if i == 0 {
						p.Settle(2)
					}
				}
				if _, ok := th.TryAcquire(1); ok {
					granted[i%2].Add(1)
				}
				if i == 3 {
					p, err := All(a, b).Acquire(t.Context(), 1)
					if err == nil {
						granted[0].Add(1)
						granted[1].Add(1)
						p.Settle(1)
					}
				}
			}
		})
	}
	wg.Wait()
	for i, th := range []*Throttle{a, b} {
		st := th.Status()
		require.Equal(t, granted[i].Load(), st.Granted)
		require.InDelta(t, float64(50_000-granted[i].Load()), st.Tokens, 1)
		sound(t, th)
	}
}

// A draw without a lock that comes between the draws of an attempt leaves nothing drawn.
func TestAllUndoesAPartOfAnAttempt(t *testing.T) {
	for _, fenced := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			a, f, b := full(t, 10), flight(t, 10), full(t, 10)
			time.Sleep(time.Second)
			asked := 0
			won := waitqueue.NewAttempt(t.Context(), []waitqueue.Part[Permit]{
				rateSource{&a.rateLimiter}.Part(),
				{Source: slotSource{f}, Gate: &f.gate, Price: func(n int) int {
					if asked++; asked == 4 { // twice for its place, once for what is at hand, and now for the draw
						require.Equal(t, 10, drain(b), "in between")
					}
					return n
				}},
				rateSource{&b.rateLimiter}.Part(),
			}).WinNow(4)
			require.False(t, won)
			require.GreaterOrEqual(t, asked, 4)
			untouched(t, a, 10)
			require.Zero(t, f.Status().InUse)
			require.Zero(t, f.Status().Granted)

			child := rateSource{&a.rateLimiter}
			child.Lock()
			place := join.Newcomer(child, 4)
			p, ok := child.Take(&place, 4)
			require.True(t, ok)
			if fenced {
				a.bucket.Fence()
			}
			child.Untake(&place, p)
			child.Unlock()
			untouched(t, a, 10)
			require.Equal(t, 10, drain(a))
		})
	}
}

// An All that gives tokens back serves a caller that came in the meantime.
func TestAllGivesBackToWhoWaits(t *testing.T) {
	for name, limiter := range map[string]func(t *testing.T) Limiter{
		"slots":  func(t *testing.T) Limiter { t.Helper(); return flight(t, 1) },
		"tokens": func(t *testing.T) Limiter { t.Helper(); return full(t, 1) },
		"a tag": func(t *testing.T) Limiter {
			t.Helper()
			th := whole(t, Limit{Max: 1000}, WithQuotas(tagsOf(map[string]Quota{"a": {Total: 10, Burst: 1}})))
			time.Sleep(time.Second)
			return th.ForTag("a")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := limiter(t)
				time.Sleep(time.Second)
				var second chan error
				both := beginWith(All(l, &refusing{before: func() {
					if second == nil {
						second = make(chan error, 1)
						go func() {
							_, err := l.Acquire(t.Context(), 1)
							second <- err
						}()
						time.Sleep(time.Millisecond) // it waits now
					}
				}}).AcquireUpTo, 1, 0)
				time.Sleep(5 * time.Millisecond)
				require.True(t, both.waits())
				require.Len(t, second, 1, "it has been served")
				require.NoError(t, <-second)
				both.cancel()
				require.Error(t, both.end(t).err)
			})
		})
	}
}

// A refusing limiter of another package grants nothing. It calls before when it is asked.
type refusing struct{ before func() }

func (l *refusing) TryAcquire(n int) (Permit, bool) {
	if n > 0 {
		l.before()
	}
	return Permit{}, n == 0
}

func (l *refusing) Acquire(ctx context.Context, n int) (Permit, error) {
	if n == 0 {
		return Permit{}, nil
	}
	<-ctx.Done()
	return Permit{}, ctx.Err()
}

func (l *refusing) AcquireUpTo(ctx context.Context, n int) (Permit, error) { return l.Acquire(ctx, n) }

// Tokens of an earlier share do not come back when their draw is undone.
func TestAllUndoesNothingIntoANewShare(t *testing.T) {
	for _, undo := range []func(th rateSource, p Permit){rateSource.Undraw, func(th rateSource, p Permit) {
		th.Lock()
		defer th.Unlock()
		th.Untake(nil, p)
	}} {
		synctest.Test(t, func(t *testing.T) {
			th, s := scripted(t, Limit{Max: 10, Burst: 10}, 1)
			time.Sleep(time.Second + time.Microsecond)
			p, ok := rateSource{&th.rateLimiter}.Draw(5)
			require.True(t, ok)
			s.give(0)
			s.give(1)
			undo(rateSource{&th.rateLimiter}, p)
			untouched(t, th, 0)
		})
	}
}

// An undone draw leaves the right of other permits to be given back as it was.
func TestAllUndoneDrawsDoNotAgePermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := full(t, 100)
		p := take(t, a, 10)
		l := All(a, newForeign(0))
		for range 1000 {
			deny(t, l, 50)
		}
		p.Cancel()
		require.Equal(t, int64(10), a.Status().Returned)
		require.Equal(t, 100, drain(a))
	})
}
