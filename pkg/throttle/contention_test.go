package throttle

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

// Many goroutines at once are granted at most what the limit earns. How much of
// it they get depends on the machine, and is only logged.
func TestContention(t *testing.T) {
	long(t)
	poll(t, 64)
	for _, perSecond := range []int{1000, 10_000, 100_000, 1_000_000} {
		t.Run(fmt.Sprintf("Acquire by 64 at %d per second", perSecond), func(t *testing.T) {
			contend(t, 64, perSecond, func(ctx context.Context, th *Throttle, got *atomic.Int64) {
				for {
					p, err := th.Acquire(ctx, 1)
					if err != nil {
						return
					}
					got.Add(int64(p.N()))
				}
			})
		})
	}
}

// TestContentionOfMany has four times as many, which end one after the other: with the race detector
// that takes longer than all that they do.
func TestContentionOfMany(t *testing.T) {
	long(t)
	testkit.SkipRace(t, "TestContention runs with it")
	poll(t, 256)
}

// poll lets so many goroutines try for tokens at several limits.
func poll(t *testing.T, goroutines int) {
	t.Helper()
	for _, perSecond := range []int{10_000, 100_000, 1_000_000} {
		t.Run(fmt.Sprintf("TryAcquire by %d at %d per second", goroutines, perSecond), func(t *testing.T) {
			contend(t, goroutines, perSecond, func(ctx context.Context, th *Throttle, got *atomic.Int64) {
				for ctx.Err() == nil {
					if p, ok := th.TryAcquire(1); ok {
						got.Add(int64(p.N()))
					}
				}
			})
		})
	}
}

func contend(t *testing.T, goroutines, perSecond int, load func(context.Context, *Throttle, *atomic.Int64)) {
	t.Helper()
	th := whole(t, Limit{Max: perSecond})
	ctx := timeout(t, 400*time.Millisecond)
	var got atomic.Int64
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() { load(ctx, th, &got) })
	}
	windows(ctx, t, th)
	wg.Wait()
	elapsed := time.Since(th.gate.Base).Seconds()
	earned := float64(perSecond) * elapsed
	require.LessOrEqual(t, float64(got.Load()), earned, "it started empty, so that nothing comes on top")
	require.Equal(t, got.Load(), th.Status().Granted)
	t.Logf("granted %.4f of the limit in %.3f s", float64(got.Load())/earned, elapsed)
}

// windows checks that no window until the end of ctx is granted more than the
// limit earns in it and a burst.
func windows(ctx context.Context, t *testing.T, th *Throttle) {
	t.Helper()
	type mark struct {
		before, after time.Duration // around the reading
		granted       int64
	}
	var marks []mark
	for ctx.Err() == nil {
		m := mark{before: time.Since(th.gate.Base)}
		m.granted = th.Status().Granted
		m.after = time.Since(th.gate.Base)
		marks = append(marks, m)
		time.Sleep(5 * time.Millisecond)
	}
	for i, from := range marks {
		for _, to := range marks[i:] {
			most := float64(th.limit.Max)*(to.after-from.before).Seconds() + float64(th.limit.Burst) + 1
			require.LessOrEqual(t, float64(to.granted-from.granted), most)
		}
	}
}
