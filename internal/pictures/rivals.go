package main

import (
	"time"

	"golang.org/x/time/rate"
)

// runDivided plays a scenario with golang.org/x/time/rate in each pod: each has a fixed part of the limit.
func runDivided(s scenario) []int {
	part := float64(limitPerSecond) / float64(len(names))
	limiters := make([]*rate.Limiter, len(names))
	return runPods(s, func(pod int, now time.Duration, fresh bool) int {
		if fresh {
			limiters[pod] = rate.NewLimiter(rate.Limit(part), burst/len(names))
		}
		calls := 0
		for limiters[pod].AllowN(epoch.Add(now), 1) {
			calls++
		}
		return calls
	})
}

// runBuiltIn plays a scenario by the rules of Numaflow's rateLimit with a Redis store, as in the source of v1.8.3. It is the best case: no
// ramp, and batches no larger than a pod's part.
//
//   - At the top of each second of the wall clock a pod has max / pods new tokens, in whole ones, and may use them at once.
//   - Tokens left from the previous second are lost.
//   - A dead pod is counted for ttl, 180 s, and in fact for as long as a pod runs that knows it.
func runBuiltIn(s scenario) []int {
	type tokens struct {
		second time.Duration
		left   int
	}
	held := make([]tokens, len(names))
	known := map[int]bool{} // all pods so far; none is forgotten within the run
	for _, e := range s.events {
		if e.what == starts {
			known[e.pod] = true
		}
	}
	return runPods(s, func(pod int, now time.Duration, fresh bool) int {
		if second := now.Truncate(time.Second); fresh || second != held[pod].second {
			held[pod] = tokens{second, limitPerSecond / len(known)}
		}
		calls := held[pod].left
		held[pod].left = 0
		return calls
	})
}

// runPods plays a scenario with limiters that do not know of each other. draw draws as much as a pod may at a moment. fresh reports whether
// the pod has just started, or has work again.
func runPods(s scenario, draw func(pod int, now time.Duration, fresh bool) int) []int {
	var all []int
	there, busy, fresh := make([]bool, len(names)), make([]bool, len(names)), make([]bool, len(names))
	left := s.events
	for now := time.Duration(0); now < s.length; now += tick {
		left, _ = happen(left, now, func(e event) error {
			switch e.what {
			case starts:
				there[e.pod], busy[e.pod], fresh[e.pod] = true, false, true
			case dies, leaves:
				there[e.pod] = false
			case works, rests:
				busy[e.pod] = e.what == works
			}
			return nil
		})
		calls := 0
		for pod := range names {
			if there[pod] && busy[pod] {
				calls += draw(pod, now, fresh[pod])
				fresh[pod] = false
			}
		}
		all = append(all, calls)
	}
	return all
}
