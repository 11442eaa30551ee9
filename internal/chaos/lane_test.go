//go:build numathrottle_faults

package chaos

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/proof"
)

const (
	// stateKept is the longest recovery when the store remembers, with the shortest lease.
	stateKept = 2 * time.Second
	// patience is how much longer than allowed a recovery is waited for, so that a
	// broken promise is measured and not only seen.
	patience = 20 * time.Second
	// firstShare bounds the time to the first share, beyond the first freeze.
	firstShare = 60 * time.Second
)

// turns and clusters are how many lanes run at once: on one Redis each, and on a NATS cluster each. How soon a pool recovers
// is measured, so two processors must have time to spare. With six clusters at once thirty threads waited for a processor,
// and every third run found a recovery that was late.
var (
	turns    = make(chan struct{}, 4)
	clusters = make(chan struct{}, 2)
)

// inTurn lets a lane run beside others, but not beside too many. The longest begins at once, since all would wait for it at the end;
// one on a cluster waits in newNATSLane.
func inTurn(t *testing.T) {
	t.Helper()
	t.Parallel()
	if strings.HasSuffix(t.Name(), "nats") || strings.HasSuffix(t.Name(), "defaults") {
		return
	}
	takeTurn(t, turns)
}

// takeTurn waits for a turn, which ends with the test.
func takeTurn(t *testing.T, of chan struct{}) {
	t.Helper()
	of <- struct{}{}
	t.Cleanup(func() { <-of })
}

// A fault is something that happens to the store or to the way to it.
type fault struct {
	name string
	// allowed is the longest recovery.
	allowed time.Duration
	// inject does it, and returns when the store can be reached again.
	inject func(l *lane)
	// workers must draw again after it, each by itself; the pool must in any case.
	workers []int
	// lost says that the store has lost its memory, or cannot know that it has not:
	// then the pool is frozen for a removal time.
	lost bool
	// late, when set, returns how much later the store could be reached for good, when a recovery took so long.
	late func(reachable, took time.Duration) time.Duration
	// repair, when set, makes the store ready for the next fault, after recovery.
	repair func(l *lane)
}

// sinceServed returns what is left of a recovery that took so long when it counts from when the store could be reached for good.
func (f *fault) sinceServed(reachable, took time.Duration) time.Duration {
	if f.late == nil {
		return took
	}
	return max(took-f.late(reachable, took), 0)
}

// A lane is a pool that goes through faults, one after the other.
type lane struct {
	testing.TB
	pool   *pool
	rng    *rand.Rand
	ledger *ledger
	stalls *stallWatch
	replay string
	frozen time.Duration // until when the pool is frozen by the last fault
	// gone and back are when the store was away in the last fault, from and to, as far as
	// the fault knows.
	gone, back time.Duration
	strict     strictness // of a strict pool
	most       int        // calls in flight at once
}

// newLane returns a lane of a test with its pool.
func newLane(t testing.TB, g *ledger, c poolConfig) *lane {
	t.Helper()
	name := fnv.New64()
	_, _ = name.Write([]byte(t.Name()))
	return &lane{
		TB: t, pool: startPool(t, c), ledger: g, stalls: watchStalls(t), replay: replay(t),
		rng: rand.New(rand.NewPCG(seed(t), name.Sum64())),
	}
}

// run waits for the pool and goes through the faults in random order, as often
// as there are rounds.
func (l *lane) run(faults ...fault) {
	defer l.ledger.addPool(l.pool)
	l.start()
	for range rounds(l) {
		for _, i := range l.rng.Perm(len(faults)) {
			if !l.suffer(faults[i]) {
				return
			}
		}
	}
}

// remembered is the longest recovery when the store remembers: who has lost its share asks the store again after
// half a lease at the latest.
func (l *lane) remembered() time.Duration { return max(stateKept, l.pool.Lease/2+500*time.Millisecond) }

// start waits until the pool uses its limit for the first time.
func (l *lane) start() {
	if _, ok := l.pool.recovery(clock(), l.pool.forgotten()+firstShare); !ok {
		l.Fatalf("the pool does not use its limit %s after its start", l.pool.forgotten()+firstShare)
	}
	l.pool.ready = clock()
}

// suffer goes through one fault and judges. It returns false if the pool did not
// recover at all.
func (l *lane) suffer(f fault) bool {
	// In a freeze a second fault takes shares that cannot grow before its end. Mostly
	// that is waited for, so that a recovery is that of one fault.
	if frozen := l.frozen - clock(); frozen > 0 {
		if l.rng.IntN(3) > 0 {
			l.pass(frozen)
		} else {
			f.name, f.allowed = f.name+", in a freeze", l.lost()
		}
	}
	if f.allowed == stateKept {
		f.allowed = l.remembered()
	}
	took, ok := l.fairly(&f, func() (time.Duration, bool) { return l.once(f) })
	l.ledger.addFault(f.name, took, f.allowed)
	switch {
	case !ok:
		l.ledger.brokenf(l, l.replay, "%s: the limit is not used again %s after the store came back", f.name, took)
	case took > f.allowed:
		l.ledger.brokenf(l, l.replay, "%s: the limit was used again %s after the store came back, allowed is %s", f.name, took, f.allowed)
	}
	return ok
}

// fairly goes through one fault, and again, three times in all, while recovery is late and a processor of
// the machine stood still. The disk, at which nobody looks as long as recovery is in time, is no excuse: it is only told.
func (l *lane) fairly(f *fault, once func() (took time.Duration, ok bool)) (took time.Duration, ok bool) {
	for range 3 {
		l.stalls.take()
		took, ok = once()
		ran, worst := l.stalls.ran(), l.stalls.take()
		if ok && took <= f.allowed {
			break
		}
		l.Logf("%s: recovered after %.2fs, the machine held somebody up for %s", f.name, took.Seconds(), worst)
		if ran.Duration < stalled {
			break
		}
		l.ledger.note("once more, for the machine held somebody up", fmt.Sprintf("%s: recovered after %.2f s, %s", f.name, took.Seconds(), ran))
	}
	return took, ok
}

// once goes through one fault, judges the windows, and returns how long recovery took.
func (l *lane) once(f fault) (took time.Duration, ok bool) {
	l.gone, l.back = 0, 0
	began := clock()
	f.inject(l)
	reachable := clock()
	if f.lost {
		l.frozen = reachable + l.pool.forgotten() + time.Second // one sync later, on a busy machine
	}
	took, ok = l.pool.recovery(reachable, f.allowed+patience, f.workers...)
	l.pool.away += reachable - began + took + rampSlack
	took = f.sinceServed(reachable, took)
	l.Logf("%s: %.1fs, recovered after %.2fs", f.name, (reachable - began).Seconds(), took.Seconds())
	if ok && f.repair != nil {
		f.repair(l)
	}
	if l.pool.Strict {
		l.judgeAway(f.name)
	}
	l.judge(f.name)
	return took, ok
}

// lost is the longest recovery when the store has lost its memory.
func (l *lane) lost() time.Duration { return l.pool.forgotten() + stateKept }

// judge looks at the windows since the last look.
func (l *lane) judge(after string) []proof.Window {
	switch {
	case l.pool.Strict:
		return l.judgeStrict(after)
	case l.pool.Slots > 0:
		return l.judgeSlots(after)
	case l.pool.RampUp > 0:
		l.judgeRamp(after)
	}
	worst := l.pool.judge()
	l.ledger.addWindows(worst)
	for _, w := range worst {
		if w.Worst > 1 {
			l.ledger.brokenf(l, l.replay, "%s: %v calls were granted within %s, allowed are %v", after, w.Tokens, w.Length, w.Allowed)
		}
	}
	return worst
}

// between draws a time from the lane's seed.
func (l *lane) between(shortest, longest time.Duration) time.Duration {
	return shortest + time.Duration(l.rng.Int64N(int64(longest-shortest)))
}

// pass lets time pass.
func (l *lane) pass(d time.Duration) {
	select {
	case <-time.After(d):
	case <-l.Context().Done():
	}
}

// bounded returns a context for something that takes seconds at most.
func (l *lane) bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeout(l.Context(), 30*time.Second)
}

// until waits until a check passes.
func (l *lane) until(what string, check func(ctx context.Context) error) {
	l.Helper()
	const longest, look = 40 * time.Second, time.Second
	deadline := clock() + longest
	for {
		ctx, cancel := context.WithTimeout(l.Context(), look)
		err := check(ctx)
		cancel()
		if err == nil {
			return
		}
		if clock() > deadline {
			l.Fatalf("waiting for this in vain: %s: %v", what, err)
		}
		l.pass(10 * time.Millisecond)
	}
}
