package sim

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Summary is the result of many runs.
type Summary struct {
	Counters Counters
	// Violations holds the runs that broke a promise, by rising seed.
	Violations []Result
	// Healed holds the recovery times of the others, sorted.
	Healed []time.Duration
	// Virtual is the simulated time with faults, and Real the elapsed time.
	Virtual, Real time.Duration
}

// Percentile returns the recovery time that a fraction q of the runs stays below.
func (s *Summary) Percentile(q float64) time.Duration {
	if len(s.Healed) == 0 {
		return 0
	}
	return s.Healed[min(int(q*float64(len(s.Healed))), len(s.Healed)-1)]
}

// Sweep makes n runs, with the seeds from first on, on every core. It stops early once limit of them broke a promise. It ignores cfg.Seed
// and cfg.Trace.
func Sweep(cfg Config, first uint64, n, limit int) *Summary {
	cfg.Trace, cfg.Seed = nil, first
	cfg.Duration = cfg.duration()
	var (
		sum   Summary
		mu    sync.Mutex
		wg    sync.WaitGroup
		next  atomic.Int64
		found atomic.Int64
		start = time.Now()
	)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for found.Load() < int64(limit) {
				i := next.Add(1) - 1
				if i >= int64(n) {
					return
				}
				c := cfg
				c.Seed = first + uint64(i)
				res := Run(c)
				mu.Lock()
				sum.add(res)
				if cfg.Progress != nil {
					cfg.Progress(sum.Counters.Runs)
				}
				mu.Unlock()
				if res.Violation != nil {
					found.Add(1)
					if cfg.Found != nil {
						cfg.Found(res)
					}
				}
			}
		})
	}
	wg.Wait()
	slices.Sort(sum.Healed)
	slices.SortFunc(sum.Violations, func(a, b Result) int { return int(int64(a.Seed) - int64(b.Seed)) })
	sum.Virtual = time.Duration(sum.Counters.Runs) * cfg.Duration
	sum.Real = time.Since(start)
	return &sum
}

func (s *Summary) add(r Result) {
	s.Counters.Add(&r.Counters)
	if r.Violation != nil {
		s.Violations = append(s.Violations, r)
		return
	}
	s.Healed = append(s.Healed, r.Healed)
}
