package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

var hotPath = section{
	key: "hot", title: "Hot path",
	shows: "What one draw costs, beside the least that any limiter with a clock has to do, and beside `golang.org/x/time/rate`. " +
		"Nanoseconds per operation; with two goroutines, elapsed time over the operations of both together.",
	measure: measureHotPath,
}

// An operation is what is measured. loop does it n times and returns how often
// it was denied.
type operation struct {
	name string
	loop func(n int) (denied int)
	// denies says that every operation must be denied; else none may be.
	denies bool
}

// The operations that ratios are made of.
const (
	opClock = iota
	opClockAndSwap
	opTimeRate
	opTokens
)

func operations() ([]operation, error) {
	// In stock are tokens that come slower than they are drawn, so that the bucket
	// does not overflow while that is measured.
	const stockRate = 10_000_000
	stocked, err := throttle.New(throttle.Limit{Max: stockRate, Burst: 1_000_000_000})
	if err != nil {
		return nil, err
	}
	full, err := throttle.New(throttle.Limit{Max: 1_000_000_000, Burst: 500_000_000})
	if err != nil {
		return nil, err
	}
	empty, err := throttle.New(throttle.Limit{Max: 1, Per: time.Hour})
	if err != nil {
		return nil, err
	}
	<-time.After(time.Second) // fills the buckets
	rival := rate.NewLimiter(stockRate, 1_000_000_000)
	return []operation{
		opClock:        {name: "monotonic clock read", loop: readClock},
		opClockAndSwap: {name: "clock read and compare-and-swap", loop: readClockAndSwap},
		opTimeRate: {name: "`x/time/rate` Allow, with tokens", loop: func(n int) (denied int) {
			for range n {
				if !rival.Allow() {
					denied++
				}
			}
			return denied
		}},
		opTokens: {name: "TryAcquire, tokens in stock", loop: draw(stocked)},
		{name: "TryAcquire, bucket full and overflowing", loop: draw(full)},
		{name: "TryAcquire, without tokens", loop: draw(empty), denies: true},
	}, nil
}

func draw(t *throttle.Throttle) func(n int) int {
	return func(n int) (denied int) {
		for range n {
			if _, ok := t.TryAcquire(1); !ok {
				denied++
			}
		}
		return denied
	}
}

var (
	base = time.Now()
	// last keeps the compiler from leaving out what nobody uses.
	last atomic.Int64
)

func readClock(n int) int {
	var latest time.Duration
	for range n {
		latest = time.Since(base)
	}
	last.Store(int64(latest))
	return 0
}

// readClockAndSwap repeats a swap that another goroutine got ahead of, as every
// shared counter must.
func readClockAndSwap(n int) int {
	for range n {
		now := int64(time.Since(base))
		for !last.CompareAndSwap(last.Load(), now) { //nolint:revive // until it counts
		}
	}
	return 0
}

// run does the operation about n times on so many goroutines at once.
func (o operation) run(goroutines, n int) (nanosPerOp float64, err error) {
	each := n / goroutines
	var denied, ready, began atomic.Int64
	var running sync.WaitGroup
	for range goroutines {
		running.Go(func() {
			// Each has a processor of its own before any begins.
			for ready.Add(1); ready.Load() < int64(goroutines); {
				continue
			}
			began.CompareAndSwap(0, int64(time.Since(base)))
			denied.Add(int64(o.loop(each)))
		})
	}
	running.Wait()
	took := time.Since(base) - time.Duration(began.Load())
	expected := 0
	if o.denies {
		expected = each * goroutines
	}
	if got := int(denied.Load()); got != expected {
		return 0, fmt.Errorf("%s: %d of %d operations were denied, expected %d", o.name, got, each*goroutines, expected)
	}
	return float64(took) / float64(each*goroutines), nil
}

// allocations returns the heap allocations of one operation.
func (o operation) allocations() float64 {
	const n = 1_000_000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	o.loop(n)
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / n
}

// goroutineCounts are the numbers of goroutines that the hot path is measured on.
var goroutineCounts = []int{1, 2}

func measureHotPath(ctx context.Context, b *bench) ([]table, error) {
	ops, err := operations()
	if err != nil {
		return nil, err
	}
	turn := b.long(50 * time.Millisecond)
	repetitions := make([][]int, len(ops)) // per operation and number of goroutines
	for i, op := range ops {
		for _, g := range goroutineCounts {
			nanos, err := op.run(g, 200_000)
			if err != nil {
				return nil, err
			}
			repetitions[i] = append(repetitions[i], int(float64(turn)/nanos))
		}
	}
	times := map[int][][]float64{}
	for _, g := range goroutineCounts {
		times[g] = make([][]float64, len(ops))
	}
	rounds := b.times(40)
	for round := range rounds {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if round%10 == 0 {
			b.sayf("turn %d of %d", round+1, rounds)
		}
		for k, g := range goroutineCounts {
			for j := range ops {
				i := (j + round) % len(ops)
				nanos, err := ops[i].run(g, repetitions[i][k])
				if err != nil {
					return nil, err
				}
				times[g][i] = append(times[g][i], nanos)
			}
		}
	}
	return hotPathTables(ops, times), nil
}

func hotPathTables(ops []operation, times map[int][][]float64) []table {
	costs := table{head: []string{"operation", "one goroutine, ns", "two goroutines, ns", "allocations"}}
	for i, op := range ops {
		allocations := op.allocations()
		cells := []string{
			op.name, nanoseconds(median(times[1][i])), nanoseconds(median(times[2][i])), fmt.Sprintf("%.4f", allocations),
		}
		if i == opTokens {
			costs.rows = append(costs.rows, judged(allocations < 0.001, "0 allocations", cells...))
		} else {
			costs.rows = append(costs.rows, plain(cells...))
		}
	}
	costs.caption = "A draw notes its position in a page of 4,096 bits, and one in 4,096 draws makes the next page."

	compared := table{
		caption: "The same as ratios.",
		head:    []string{"TryAcquire with tokens in stock", "one goroutine", "two goroutines"},
	}
	compare := func(name string, over func(g int) float64, kept func(g int, v float64) bool, target string) {
		one, two := over(1), over(2)
		compared.rows = append(compared.rows, judged(kept(1, one) && kept(2, two), target, name, ratio(one), ratio(two)))
	}
	compare("times the clock read and compare-and-swap",
		func(g int) float64 { return median(ratios(times[g][opTokens], times[g][opClockAndSwap])) },
		func(_ int, v float64) bool { return v <= 1.3 }, "at most 1.3")
	compare("times faster than `x/time/rate` Allow",
		func(g int) float64 { return median(ratios(times[g][opTimeRate], times[g][opTokens])) },
		func(g int, v float64) bool { return v >= map[int]float64{1: 1.8, 2: 2.5}[g] }, "at least 1.8 and 2.5")
	return []table{costs, compared}
}
