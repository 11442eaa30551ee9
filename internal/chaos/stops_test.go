//go:build numathrottle_faults

package chaos

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

const (
	stoppedWorkers = 50
	// standstill is how long a stopped process may take to stand still.
	standstill = 100 * time.Millisecond
)

// TestStoppedProcessorsDrawNothingLate stops all processes of a pool for longer
// than their leases, and lets them go on. What was granted before and used
// afterwards cannot be helped, but there is at most one such call for each goroutine
// that draws.
func TestStoppedProcessorsDrawNothingLate(t *testing.T) {
	g := newLedger(t, "R9", fmt.Sprintf("%d processes of this module on %s", stoppedWorkers, redisVersion(t)))
	l := newLane(t, g, poolConfig{
		Stores: slices.Repeat([]string{"redis://" + testenv.Redis(t).Addr()}, stoppedWorkers), Max: 1000, Goroutines: 1,
		Hold: 30 * time.Millisecond, // so that a stop finds some between check and call
	})
	l.start()
	late := 0
	for range rounds(t) {
		late += l.stopAll()
	}
	g.addPool(l.pool)
	require.Positive(t, late, "no stop came between a check and its call")
	g.note("late uses: granted before a stop, made after it", fmt.Sprintf("%d of at most %d", late, rounds(t)*stoppedWorkers))
	g.record(t, "stops")
}

// stopAll stops all workers past their leases, lets them go on, and judges. It
// returns the number of late uses.
func (l *lane) stopAll() int {
	began := clock()
	for _, w := range l.pool.workers {
		w.halt(l)
	}
	still := clock() + standstill
	l.pass(standstill + l.pool.Lease + l.between(100*time.Millisecond, 2*driver.MinLease))
	resumed := clock()
	for _, w := range l.pool.workers {
		w.resume(l)
	}
	took, ok := l.pool.recovery(resumed, stateKept+patience)
	if !ok || took > stateKept {
		l.ledger.brokenf(l, l.replay, "the limit was used again %s after the processes went on, allowed is %s; the machine held somebody up for %s at worst",
			took, stateKept, l.stalls.look())
	}
	for range l.pool.workers {
		l.ledger.addFault("processor stopped past its lease", took, stateKept)
	}

	uses := l.pool.service.since(began - time.Second) // what was granted shortly before may arrive late
	require.NotEmpty(l, uses)
	for _, u := range uses {
		if u.arrived > still && u.arrived < resumed {
			l.Fatalf("worker %d called while it stood still", u.worker)
		}
	}
	for _, u := range afterEnd(uses) {
		l.ledger.brokenf(l, l.replay, "worker %d was granted a token that it asked for %s after the end of its newest lease",
			u.worker, u.asked-u.until)
	}
	late := lateUses(uses, resumed)
	for worker, n := range late {
		if n > l.pool.Goroutines {
			l.ledger.brokenf(l, l.replay, "worker %d made %d late uses with %d goroutines", worker, n, l.pool.Goroutines)
		}
	}
	l.judgeArrivals(resumed)
	l.judge("processors stopped")
	total := 0
	for _, n := range late {
		total += n
	}
	l.Logf("stopped for %.1fs, recovered after %.2fs, %d late uses", (resumed - still).Seconds(), took.Seconds(), total)
	return total
}

// judgeArrivals looks at the windows by the time of arrival, without the late uses.
func (l *lane) judgeArrivals(resumed time.Duration) {
	onTime := func(u use) bool { return !u.late(resumed) }
	arrivals := stamps(l.pool.service.since(0), onTime, func(u use) time.Duration { return u.arrived })
	for _, w := range l.pool.bound.windows(arrivals) {
		if w.Worst > 1 {
			l.ledger.brokenf(l, l.replay, "%v calls arrived in time within %s, allowed are %v", w.Tokens, w.Length, w.Allowed)
		}
	}
}

// late tells whether a call was granted before its process was stopped and made
// after it went on. One that was stopped right after the grant takes its stamp
// late, too: then its lease was over by the stamp.
func (u *use) late(resumed time.Duration) bool {
	return u.asked < resumed && u.arrived >= resumed && (u.granted < resumed || u.granted > u.until)
}

// lateUses counts the late uses of each worker.
func lateUses(uses []use, resumed time.Duration) map[int]int {
	late := map[int]int{}
	for _, u := range uses {
		if u.late(resumed) {
			late[u.worker]++
		}
	}
	return late
}

// afterEnd returns the calls that were asked for after the end of every lease that
// the worker knew of when they were granted: no share was good for them.
func afterEnd(uses []use) []use {
	return slices.DeleteFunc(slices.Clone(uses), func(u use) bool { return u.asked <= u.until })
}
