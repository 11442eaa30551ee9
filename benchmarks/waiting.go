package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

var waiting = section{
	key: "waiting", title: "Waiting",
	shows: "64 goroutines call Acquire repeatedly, alone, and while others keep every core busy. Granted tokens as a fraction of the limit, " +
		"from an empty bucket with the default burst.",
	measure: measureWaiting,
}

// busy keeps every core occupied until the returned function is called.
func busy() (stop func()) {
	var over atomic.Bool
	var running sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		running.Go(func() {
			for !over.Load() { //nolint:revive // the load is the point
			}
		})
	}
	return func() {
		over.Store(true)
		running.Wait()
	}
}

// acquireAll lets goroutines wait for tokens for d, and returns what they were
// granted as a fraction of the limit.
func acquireAll(ctx context.Context, limit, goroutines int, d time.Duration) (float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	began := time.Now()
	t, err := throttle.New(throttle.Limit{Max: limit})
	if err != nil {
		return 0, err
	}
	defer t.Close()
	counts := make([]struct {
		atomic.Int64

		_ [56]byte // a cache line each
	}, goroutines)
	var running sync.WaitGroup
	for i := range counts {
		running.Go(func() {
			for {
				if _, err := t.Acquire(ctx, 1); err != nil {
					return // the context has ended; nothing else fails a wait without a deadline
				}
				counts[i].Add(1)
			}
		})
	}
	<-time.After(d)
	took := time.Since(began)
	var granted int64
	for i := range counts {
		granted += counts[i].Load()
	}
	cancel()
	running.Wait()
	return float64(granted) / (float64(limit) * took.Seconds()), nil
}

// A lateness is how late waits ended.
type lateness struct{ samples []time.Duration }

func (l lateness) cells() []string {
	return []string{milliseconds(quantile(l.samples, 0.5)), milliseconds(quantile(l.samples, 0.99)), count(len(l.samples))}
}

// grantLateness lets one caller wait for one token at a time, and compares when
// it came with when the Throttle said it could.
func grantLateness(ctx context.Context, samples int) (lateness, error) {
	t, err := throttle.New(throttle.Limit{Max: 200, Burst: 1})
	if err != nil {
		return lateness{}, err
	}
	defer t.Close()
	var l lateness
	for len(l.samples) < samples {
		th, held := t.Throttled()
		asked := time.Now()
		if _, err := t.Acquire(ctx, 1); err != nil {
			return lateness{}, err
		}
		if held && th.RetryAfter > 0 {
			l.samples = append(l.samples, time.Since(asked)-th.RetryAfter)
		}
	}
	return l, nil
}

// timerLateness is the same for a plain timer.
func timerLateness(ctx context.Context, samples int) (lateness, error) {
	const wait = 5 * time.Millisecond
	var l lateness
	for len(l.samples) < samples {
		asked := time.Now()
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return lateness{}, context.Cause(ctx)
		}
		l.samples = append(l.samples, time.Since(asked)-wait)
	}
	return l, nil
}

func measureWaiting(ctx context.Context, b *bench) ([]table, error) {
	use := table{head: []string{"limit per second", "alone", "with every core busy"}}
	for _, limit := range []int{1_000, 10_000, 100_000} {
		b.sayf("64 goroutines at %s per second", count(limit))
		alone, err := acquireAll(ctx, limit, 64, b.long(5*time.Second))
		stop := busy()
		crowded, err2 := acquireAll(ctx, limit, 64, b.long(5*time.Second))
		stop()
		if err := errors.Join(err, err2, context.Cause(ctx)); err != nil {
			return nil, err
		}
		use.rows = append(use.rows, judged(alone >= 0.999 && crowded >= 0.99, "at least 0.999 and 0.99",
			count(limit), fraction(alone), fraction(crowded)))
	}
	late := table{
		caption: "Lateness of a grant: one caller waits for tokens 5 ms apart. For comparison, a plain timer of the Go runtime.",
		head:    []string{"", "p50", "p99", "waits"},
	}
	samples := b.times(400)
	for _, crowded := range []bool{false, true} {
		b.sayf("lateness, %d waits", 2*samples)
		stop, suffix := func() {}, "alone"
		if crowded {
			stop, suffix = busy(), "with every core busy"
		}
		grants, err := grantLateness(ctx, samples)
		timers, err2 := timerLateness(ctx, samples)
		stop()
		if err := errors.Join(err, err2); err != nil {
			return nil, err
		}
		late.rows = append(late.rows,
			plain(append([]string{fmt.Sprintf("Acquire, %s", suffix)}, grants.cells()...)...),
			plain(append([]string{fmt.Sprintf("timer, %s", suffix)}, timers.cells()...)...))
	}
	return []table{use, late}, nil
}
