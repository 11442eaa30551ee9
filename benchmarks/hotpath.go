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
	shows: "The cost of one draw, compared with a clock reading and a compare-and-swap, the least that any limiter needs, and with " +
		"`golang.org/x/time/rate`. Nanoseconds per operation; with two goroutines, elapsed time by the operations of both.",
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
	opSwap
	opClockAndSwap
	opTimeRate
	opTokens
	opAll
)

func operations() ([]operation, error) {
	// In stock are tokens that come slower than they are drawn, so that the bucket
	// does not overflow while that is measured.
	const stockRate = 10_000_000
	stock := throttle.Limit{Max: stockRate, Burst: 1_000_000_000}
	stocked, err := throttle.New(stock)
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
	three := make([]throttle.Limiter, 3)
	for i := range three {
		if three[i], err = throttle.New(stock); err != nil {
			return nil, err
		}
	}
	<-time.After(time.Second) // fills the buckets
	rival := rate.NewLimiter(stockRate, 1_000_000_000)
	return []operation{
		opClock:        {name: "monotonic clock read", loop: readClock},
		opSwap:         {name: "compare-and-swap", loop: swap},
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
		opAll:    {name: "TryAcquire of `All` of three limits, tokens in stock", loop: draw(throttle.All(three...))},
		{name: "TryAcquire, bucket full and overflowing", loop: draw(full)},
		{name: "TryAcquire, without tokens", loop: draw(empty), denies: true},
	}, nil
}

func draw(t throttle.Limiter) func(n int) int {
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

// swap repeats a swap that another goroutine got ahead of, as every shared counter must.
func swap(n int) int {
	for range n {
		for v := last.Load(); !last.CompareAndSwap(v, v+1); v = last.Load() { //nolint:revive // until it counts
		}
	}
	return 0
}

// readClockAndSwap is both, for each draw.
func readClockAndSwap(n int) int {
	for range n {
		now := int64(time.Since(base))
		for !last.CompareAndSwap(last.Load(), now) { //nolint:revive // until it counts
		}
	}
	return 0
}

// spread is how long goroutines spin before the first turn. The kernel starts a
// thread on the processor of the one that woke it, and moves it to an idle one only
// after a while: shorter turns would measure two goroutines on one processor.
const spread = 500 * time.Millisecond

// A race runs operations in turn on several goroutines at once, which never block
// between two turns, so that each keeps its processor.
type race struct {
	goroutines int64
	arrived    atomic.Int64 // at one of the barriers, since the beginning
}

// barrier returns when all goroutines have come to it for the nth time.
func (r *race) barrier(n int64) {
	for r.arrived.Add(1); r.arrived.Load() < n*r.goroutines; {
		continue
	}
}

// run does each turn's operation n times in all, and returns the nanoseconds that
// one took.
func (r *race) run(turns []turn) ([]float64, error) {
	nanos := make([]float64, len(turns))
	denied := make([]atomic.Int64, len(turns))
	var running sync.WaitGroup
	for g := range r.goroutines {
		running.Go(func() {
			for begin := time.Now(); time.Since(begin) < spread && r.goroutines > 1; {
				continue
			}
			for i, t := range turns {
				r.barrier(int64(2*i + 1))
				began := time.Now()
				denied[i].Add(int64(t.op.loop(t.n / int(r.goroutines))))
				r.barrier(int64(2*i + 2))
				if g == 0 {
					nanos[i] = float64(time.Since(began)) / float64(t.n)
				}
			}
		})
	}
	running.Wait()
	for i, t := range turns {
		expected := 0
		if t.op.denies {
			expected = t.n / int(r.goroutines) * int(r.goroutines)
		}
		if got := int(denied[i].Load()); got != expected {
			return nil, fmt.Errorf("%s: %d of %d operations were denied, expected %d", t.op.name, got, t.n, expected)
		}
	}
	return nanos, nil
}

// A turn is one operation, n times.
type turn struct {
	op operation
	n  int
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

// calibrate returns how often each operation is done in a turn of that length.
func calibrate(ops []operation, goroutines int, length time.Duration) ([]int, error) {
	turns := make([]turn, len(ops))
	for i, op := range ops {
		turns[i] = turn{op, 200_000}
	}
	nanos, err := (&race{goroutines: int64(goroutines)}).run(turns)
	if err != nil {
		return nil, err
	}
	repetitions := make([]int, len(ops))
	for i := range ops {
		repetitions[i] = int(float64(length) / nanos[i])
	}
	return repetitions, nil
}

func measureHotPath(ctx context.Context, b *bench) ([]table, error) {
	ops, err := operations()
	if err != nil {
		return nil, err
	}
	length := b.long(50 * time.Millisecond)
	rounds := b.times(40)
	times := map[int][][]float64{}
	for _, g := range goroutineCounts {
		b.sayf("%d goroutines, %d turns of each operation", g, rounds)
		repetitions, err := calibrate(ops, g, length)
		if err != nil {
			return nil, err
		}
		var turns []turn
		var which []int
		for round := range rounds {
			for j := range ops {
				i := (j + round) % len(ops)
				turns, which = append(turns, turn{ops[i], repetitions[i]}), append(which, i)
			}
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		nanos, err := (&race{goroutines: int64(g)}).run(turns)
		if err != nil {
			return nil, err
		}
		times[g] = make([][]float64, len(ops))
		for k, i := range which {
			times[g][i] = append(times[g][i], nanos[k])
		}
	}
	return hotPathTables(ops, times), nil
}

// sums adds up two measurements of each round.
func sums(a, b []float64) []float64 {
	both := make([]float64, len(a))
	for i := range a {
		both[i] = a[i] + b[i]
	}
	return both
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
	over := func(of, to int) []string {
		var cells []string
		for _, g := range goroutineCounts {
			cells = append(cells, ratio(median(ratios(times[g][of], times[g][to]))))
		}
		return cells
	}
	compared.rows = append(compared.rows, plain(append([]string{"a draw of `All` of three limits, times one TryAcquire"}, over(opAll, opTokens)...)...))
	compare("times a clock read and a compare-and-swap, one after the other",
		func(g int) float64 {
			return median(ratios(times[g][opTokens], sums(times[g][opClock], times[g][opSwap])))
		},
		func(_ int, v float64) bool { return v <= 1.3 }, "at most 1.3")
	compare("times the two as one operation, which overlaps with that of the other goroutine",
		func(g int) float64 { return median(ratios(times[g][opTokens], times[g][opClockAndSwap])) },
		func(_ int, v float64) bool { return v <= 1.3 }, "at most 1.3")
	compare("times faster than `x/time/rate` Allow",
		func(g int) float64 { return median(ratios(times[g][opTimeRate], times[g][opTokens])) },
		func(g int, v float64) bool { return v >= map[int]float64{1: 1.8, 2: 2.5}[g] }, "at least 1.8 and 2.5")
	return []table{costs, compared}
}
