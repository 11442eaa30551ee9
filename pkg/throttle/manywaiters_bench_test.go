package throttle_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// BenchmarkManyWaiters measures the work per grant while many callers of many tags wait: closed loops at 20,000/s for b.N grants.
// granted is the part of the limit that was used, cpu-us/op the processor time per grant.
//
//	go test -run '^$' -bench ManyWaiters -benchtime 60000x ./pkg/throttle
func BenchmarkManyWaiters(b *testing.B) {
	const limit = 20_000
	for _, size := range []struct{ tags, callers int }{{100, 10}, {100, 40}, {1000, 100}} {
		for _, kind := range []string{"no quotas", "weights", "totals"} {
			b.Run(fmt.Sprintf("%s/%d tags, %d callers each", kind, size.tags, size.callers), func(b *testing.B) {
				var opts []throttle.Option
				names := make([]string, size.tags)
				quotas := throttle.Quotas{Tags: map[string]throttle.Quota{}}
				for i := range names {
					names[i] = fmt.Sprint("tag-", i)
					q := throttle.Quota{Weight: 2}
					if kind == "totals" {
						q = throttle.Quota{Total: 5 * limit / (2 * size.tags)}
					}
					quotas.Tags[names[i]] = q
				}
				if kind != "no quotas" {
					opts = append(opts, throttle.WithQuotas(quotas))
				}
				l, err := throttle.New(throttle.Limit{Max: limit}, opts...)
				require.NoError(b, err)
				drawInLoops(b, l, names, size.callers, limit)
				require.NoError(b, l.Close())
			})
		}
	}
}

// drawInLoops has callers of each tag draw one token after another until there were b.N grants, half a second after they began.
func drawInLoops(b *testing.B, l *throttle.Throttle, names []string, callers int, limit float64) {
	b.Helper()
	ctx, stop := context.WithCancel(b.Context())
	var granted atomic.Int64
	var running sync.WaitGroup
	for range callers {
		for _, name := range names {
			running.Go(func() {
				for ctx.Err() == nil {
					if _, err := l.ForTag(name).Acquire(ctx, 1); err == nil {
						granted.Add(1)
					}
				}
			})
		}
	}
	time.Sleep(500 * time.Millisecond)
	b.ResetTimer()
	began, before, cpu := time.Now(), granted.Load(), processorTime()
	for granted.Load()-before < int64(b.N) && time.Since(began).Seconds() < 3*float64(b.N)/limit {
		time.Sleep(time.Millisecond)
	}
	n, took := float64(granted.Load()-before), time.Since(began).Seconds()
	b.StopTimer()
	b.ReportMetric(n/took/limit, "granted")
	b.ReportMetric((processorTime()-cpu).Seconds()*1e6/max(n, 1), "cpu-us/grant")
	stop()
	running.Wait()
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
