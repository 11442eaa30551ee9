package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

var contention = section{
	key: "contention", title: "Contention",
	shows: "Many goroutines poll one limiter as fast as they can. Granted tokens as a fraction of the limit, with a burst of 100 ms. " +
		"`x/time/rate` starts with a full bucket, a Throttle with an empty one.",
	measure: measureContention,
}

// A poll is what goroutines that polled a limiter were granted.
type poll struct {
	granted int64
	polling time.Duration // from the first draw to the order to stop
	whole   time.Duration // from before the limiter was made until all had stopped
}

// pollAll polls the limiter that make returns.
func pollAll(goroutines int, d time.Duration, limiter func() func() bool) poll {
	var stop atomic.Bool
	var granted atomic.Int64
	var running sync.WaitGroup
	began := time.Now()
	allow := limiter()
	first := time.Now()
	for range goroutines {
		running.Go(func() {
			var mine int64
			for !stop.Load() {
				if allow() {
					mine++
				}
			}
			granted.Add(mine)
		})
	}
	<-time.After(d)
	polling := time.Since(first)
	stop.Store(true)
	running.Wait()
	return poll{granted: granted.Load(), polling: polling, whole: time.Since(began)}
}

func measureContention(ctx context.Context, b *bench) ([]table, error) {
	t := table{head: []string{"limit per second", "goroutines", "`x/time/rate`", "TryAcquire", "tokens granted", "tokens allowed"}}
	for _, limit := range []int{10_000, 100_000, 1_000_000} {
		for _, goroutines := range []int{64, 256} {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			b.sayf("%d goroutines at %s per second", goroutines, count(limit))
			l := throttle.Limit{Max: limit, Burst: limit / 10}
			rival := pollAll(goroutines, b.long(3*time.Second), func() func() bool {
				return rate.NewLimiter(rate.Limit(l.Max), l.Burst).Allow
			})
			var err error
			ours := pollAll(goroutines, b.long(3*time.Second), func() func() bool {
				var limiter *throttle.Throttle
				if limiter, err = throttle.New(l); err != nil {
					return func() bool { return false }
				}
				return func() bool { _, ok := limiter.TryAcquire(1); return ok }
			})
			if err != nil {
				return nil, err
			}
			share := func(p poll) float64 { return float64(p.granted) / (float64(limit) * p.polling.Seconds()) }
			allowed := int64(float64(limit)*ours.whole.Seconds()) + int64(l.Burst)
			t.rows = append(t.rows, judged(ours.granted <= allowed && share(ours) >= 0.99,
				"0.99 or more of the limit, at most limit and burst",
				count(limit), fmt.Sprint(goroutines), fraction(share(rival)), fraction(share(ours)), count(ours.granted), count(allowed)))
		}
	}
	return []table{t}, nil
}
