package benchmarks

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

func newThrottle(b testing.TB, l throttle.Limit) *throttle.Throttle {
	b.Helper()
	t, err := throttle.New(l)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, t.Close()) })
	return t
}

// BenchmarkHotPath measures a draw beside a clock read and a compare-and-swap, the least that any limiter needs, and x/time/rate. The
// target for a draw with tokens is 1.3 times a clock read and a compare-and-swap.
func BenchmarkHotPath(b *testing.B) {
	var last atomic.Int64
	swap := func(v int64) {
		for !last.CompareAndSwap(last.Load(), v) { //nolint:revive // until it counts
		}
	}
	base := time.Now()
	// Tokens come faster than they are drawn, and the bucket is not full before the end.
	stock := throttle.Limit{Max: 100_000_000, Burst: 1_000_000_000}
	draw := func(l throttle.Limiter) func() bool {
		return func() bool { _, ok := l.TryAcquire(1); return ok }
	}
	for _, op := range []struct {
		name   string
		open   func() func() bool
		denies bool
	}{
		{"clock", func() func() bool { return func() bool { return time.Since(base) > 0 } }, false},
		{"swap", func() func() bool { return func() bool { swap(1); return true } }, false},
		{"clock-and-swap", func() func() bool { return func() bool { swap(int64(time.Since(base))); return true } }, false},
		{"x-time-rate", func() func() bool { return rate.NewLimiter(100_000_000, 1_000_000_000).Allow }, false},
		{"TryAcquire", func() func() bool { return draw(newThrottle(b, stock)) }, false},
		{"TryAcquire-of-three", func() func() bool {
			return draw(throttle.All(newThrottle(b, stock), newThrottle(b, stock), newThrottle(b, stock)))
		}, false},
		{"TryAcquire-full", func() func() bool { return draw(newThrottle(b, throttle.Limit{Max: 1_000_000_000})) }, false},
		{"TryAcquire-empty", func() func() bool { return draw(newThrottle(b, throttle.Limit{Max: 1, Per: time.Hour})) }, true},
	} {
		b.Run(op.name, func(b *testing.B) {
			do := op.open()
			time.Sleep(200 * time.Millisecond) // fills the bucket
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if do() == op.denies {
						b.Error("a draw ended otherwise than expected")
						return
					}
				}
			})
		})
	}
}

// busy keeps every core occupied until stop.
func busy() (stop func()) {
	var over atomic.Bool
	var running sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		running.Go(func() {
			for !over.Load() { //nolint:revive // the load is the point
			}
		})
	}
	return func() { over.Store(true); running.Wait() }
}

// BenchmarkWait lets 64 goroutines acquire tokens for some seconds, alone and while others keep every core busy. They
// report the granted part of the limit: the targets are 0.999 and 0.99.
func BenchmarkWait(b *testing.B) {
	for _, load := range []string{"alone", "busy"} {
		for _, limit := range []int{1_000, 10_000, 100_000} {
			b.Run(fmt.Sprint(load, "/", limit), func(b *testing.B) {
				if load == "busy" {
					stop := busy()
					defer stop()
				}
				for b.Loop() {
					t := newThrottle(b, throttle.Limit{Max: limit})
					ctx, cancel := context.WithCancel(b.Context())
					var granted atomic.Int64
					var running sync.WaitGroup
					began := time.Now()
					for range 64 {
						running.Go(func() {
							for {
								if _, err := t.Acquire(ctx, 1); err != nil {
									return
								}
								granted.Add(1)
							}
						})
					}
					time.Sleep(5 * time.Second)
					b.ReportMetric(float64(granted.Load())/float64(limit)/time.Since(began).Seconds(), "granted")
					cancel()
					running.Wait()
				}
			})
		}
	}
}

// BenchmarkLateness measures how late one waiting caller gets a token, beside a timer of Go.
func BenchmarkLateness(b *testing.B) {
	for _, load := range []string{"alone", "busy"} {
		b.Run(load+"/timer", func(b *testing.B) {
			lateness(b, load, func() (late time.Duration) {
				began := time.Now()
				time.Sleep(5 * time.Millisecond)
				return time.Since(began) - 5*time.Millisecond
			})
		})
		b.Run(load+"/Acquire", func(b *testing.B) {
			t := newThrottle(b, throttle.Limit{Max: 200, Burst: 1})
			lateness(b, load, func() time.Duration {
				th, _ := t.Throttled()
				began := time.Now()
				_, err := t.Acquire(b.Context(), 1)
				require.NoError(b, err)
				return time.Since(began) - th.RetryAfter
			})
		})
	}
}

func lateness(b *testing.B, load string, wait func() time.Duration) {
	b.Helper()
	if load == "busy" {
		stop := busy()
		defer stop()
	}
	var late []time.Duration
	for b.Loop() {
		late = append(late, wait())
	}
	reportTimes(b, late)
}

// reportTimes reports the median and the 99th percentile in milliseconds.
func reportTimes(b *testing.B, times []time.Duration) {
	b.Helper()
	slices.Sort(times)
	for name, q := range map[string]int{"p50-ms": 50, "p99-ms": 99} {
		b.ReportMetric(float64(times[len(times)*q/100])/float64(time.Millisecond), name)
	}
}
