package throttle

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// These tests run in real time: they look for interleavings, which virtual time
// does not produce. Each of them hunts for so long.
const hunt = 500 * time.Millisecond

// tag bucket puts tokens into the bucket that the rate would not earn in a test's time,
// nor in years: the totals of tokens may wrap around, which the level survives.
func brimming(th *Throttle, tokens int) {
	th.gate.Lock()
	defer th.gate.Unlock()
	th.bucket.Deposit(th.bucket.Units(tokens))
	th.bucket.Fence()
}

// slow is a limit that earns nothing during a test: one token in four minutes.
func slow(burst int) Limit { return Limit{Max: 10_000, Per: maxPer, Burst: burst} }

// Once Lease has returned with a share of 0, not one more token is granted.
func TestNoGrantAfterTheShareWent(t *testing.T) {
	th, s := scripted(t, Limit{Max: 1_000_000_000, Burst: 1_000_000}, 0)
	var without atomic.Int64 // even while there may be a share, odd while there is none
	var granted, late atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				before := without.Load()
				if _, ok := th.TryAcquire(1); ok {
					granted.Add(1)
					if before%2 == 1 && without.Load() == before {
						late.Add(1)
					}
				}
			}
		})
	}
	for began := time.Now(); time.Since(began) < lasts(hunt) || granted.Load() == 0 && time.Since(began) < 20*hunt; {
		s.give(1)
		spin(rand.IntN(2000))
		s.give(0)
		drawn := th.Status().Granted
		without.Add(1)
		spin(rand.IntN(2000))
		require.Equal(t, drawn, th.Status().Granted, "granted after Lease(0) had returned")
		without.Add(1)
	}
	close(stop)
	wg.Wait()
	require.Zero(t, late.Load())
	require.Positive(t, granted.Load())
	require.Equal(t, granted.Load(), th.Status().Granted)
}

// spin passes a few nanoseconds n times, without yielding.
func spin(n int) {
	var x atomic.Int64
	for range n {
		x.Add(1)
	}
}

// meanwhile calls f from two goroutines again and again while during runs, from
// shortly before it begins.
func meanwhile(f, during func()) {
	var started atomic.Int64
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			f()
			started.Add(1)
			for !stop.Load() {
				f()
			}
		})
	}
	for started.Load() < 2 {
		runtime.Gosched()
	}
	during()
	stop.Store(true)
	wg.Wait()
}

// A draw reads the totals, is held up, and swaps after something else has
// happened that it could not see: it must fail, and look again.
func TestFence(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(t *testing.T, th *Throttle, s *script)
	}{
		{"no share", func(_ *testing.T, _ *Throttle, s *script) { s.give(0) }},
		{"a lower share", func(_ *testing.T, _ *Throttle, s *script) { s.give(0.001) }},
		{"a lease that is over", func(_ *testing.T, _ *Throttle, s *script) { s.lend(1, -1) }},
		{"debt", func(_ *testing.T, th *Throttle, _ *script) { th.correct(th.bucket.Granted(), 0, 100) }},
		{"someone who waits", func(t *testing.T, th *Throttle, _ *script) {
			ctx, cancel := context.WithCancel(t.Context())
			t.Cleanup(cancel)
			go func() { _, _ = th.Acquire(ctx, 60) }()
			for th.Status().Waiting == 0 {
				runtime.Gosched()
			}
		}},
		{"Close", func(t *testing.T, th *Throttle, _ *script) { require.NoError(t, th.Close()) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			th, s := scripted(t, slow(100), 1)
			brimming(th, 50)
			granted := th.bucket.Granted()
			require.GreaterOrEqual(t, th.bucket.Level(th.gate.Now()), th.bucket.Units(1))
			tc.do(t, th, s)
			require.False(t, th.bucket.Undraw(granted, 0), "a draw that saw the total before would still swap")
		})
	}
}

// A lease that comes too late starts empty, also for a draw that comes at the
// very moment of it.
func TestLateRenewalStartsEmptyForConcurrentDraws(t *testing.T) {
	th, s := scripted(t, slow(1000), 1)
	s.lend(1, -1)
	meanwhile(func() { th.TryAcquire(1) }, func() {
		for began := time.Now(); time.Since(began) < lasts(hunt); {
			brimming(th, 50)
			s.give(1)
			s.lend(1, -1)
		}
	})
	require.Zero(t, th.Status().Granted, "granted from before the lease ran out")
}

// A share that rises adds nothing, also for a draw at the very moment of it.
func TestShareRisesAddsNothingForConcurrentDraws(t *testing.T) {
	th, s := scripted(t, slow(1000), 0.001)
	meanwhile(func() { th.TryAcquire(2) }, func() {
		for began := time.Now(); time.Since(began) < lasts(hunt); {
			brimming(th, 50) // of which one fits into the bucket
			s.give(1)
			s.give(0.001)
		}
	})
	require.Zero(t, th.Status().Granted, "there was never more than one token")
}

// Once a settlement above the cost has returned, the tokens that the debt took
// are granted to nobody.
func TestNoGrantOfWhatDebtTook(t *testing.T) {
	th := whole(t, slow(1000))
	meanwhile(func() { th.TryAcquire(1) }, func() {
		for began := time.Now(); time.Since(began) < lasts(hunt); {
			brimming(th, 2)
			th.correct(th.bucket.Granted(), 0, 100)
			drawn := th.bucket.Granted()
			spin(rand.IntN(20))
			require.Equal(t, drawn, th.bucket.Granted())
			brimming(th, int(-th.Status().Tokens))
		}
	})
}

// Draws that find the bucket overflowing at the same time forfeit that only once.
func TestConcurrentDrawsOfAFullBucketLoseNothing(t *testing.T) {
	th := whole(t, slow(100))
	for began := time.Now(); time.Since(began) < lasts(hunt); {
		brimming(th, 1000)
		var got atomic.Int64
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { got.Add(int64(drain(th))) })
		}
		wg.Wait()
		require.Equal(t, int64(100), got.Load())
	}
}

// Each stocked token is granted at most once, by whichever call.
func TestQueueAndDrawsDoNotShareATokens(t *testing.T) {
	for _, tc := range []struct {
		name string
		wait func(ctx context.Context, th *Throttle) (Permit, error)
	}{
		{"AcquireUpTo", func(ctx context.Context, th *Throttle) (Permit, error) { return th.AcquireUpTo(ctx, 5) }},
		{"Acquire", func(ctx context.Context, th *Throttle) (Permit, error) { return th.Acquire(ctx, 1) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			th := whole(t, slow(1000))
			stocked, granted := 0, atomic.Int64{}
			for began := time.Now(); time.Since(began) < lasts(hunt); {
				brimming(th, 1)
				stocked++
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				meanwhile(func() {
					if _, ok := th.TryAcquire(1); ok {
						granted.Add(1)
					}
				}, func() {
					if p, err := tc.wait(ctx, th); err == nil {
						granted.Add(int64(p.N()))
					}
				})
				cancel()
				granted.Add(int64(drain(th)))
				require.GreaterOrEqual(t, th.Status().Tokens, 0.0, "more granted than there was")
			}
			require.Equal(t, int64(stocked), granted.Load())
			sound(t, th)
		})
	}
}
