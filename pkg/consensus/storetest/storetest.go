package storetest

import (
	"crypto/rand"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A Harness says how to reach a server under test, and what kind of store it is.
// Only New is required.
type Harness struct {
	// New returns a handle on the store. Each call stands for another process
	// on the same server; stores that live in one process return the same value.
	// The harness closes the handle, in t.Cleanup. New may be called from several
	// goroutines.
	New func(t testing.TB) driver.Store

	// Memory says that the store never freezes a pool, because it cannot forget
	// one that its processors remember (At.Identity is empty).
	Memory bool

	// Deferred says that the store learns the time of a step only after it
	// (At.Deferred), so that time passes one step late.
	Deferred bool

	// KnowsNew says that the store may know that a pool is new (At.Remembers), in which case a new pool need not be frozen. After Wipe or
	// Restart it does not know for the next removal time.
	KnowsNew bool

	// Longest is the longest lease that the store was built for: a store that
	// forgot something freezes for Removal(Longest). Defaults to
	// driver.MaxLease, with which the suite takes minutes; 500ms is a good value.
	Longest time.Duration

	// Permits is how many permits the case with many of them issues. Defaults to 2,000.
	Permits int

	// Issued, if set, receives the result of the case with many permits, if all are spaced: their number, and how often
	// the server was restarted or wiped.
	Issued func(t testing.TB, permits, faults int)

	// Wipe empties the server: all records are gone, the connections stay or are made again. nil if that cannot happen, or not in a test.
	Wipe func(t testing.TB)

	// Restart gives the server another identity and keeps the records, as a
	// restart from disk or a failover without loss does. nil as for Wipe.
	Restart func(t testing.TB)

	// Snapshot copies the record of one pool. Its result puts the copy back without a change of the server's identity, as a failover to an
	// older copy does. nil as for Wipe.
	Snapshot func(t testing.TB, pool string) (restore func())
}

// Run runs the suite: several cases at once, except those that wipe or restart
// the server.
func Run(t *testing.T, h Harness) {
	t.Helper()
	require.NotNil(t, h.New, "storetest: Harness.New is nil")
	if h.Longest == 0 {
		h.Longest = driver.MaxLease
	}
	s := &suite{Harness: h}
	rules := slices.Concat(joinCases, roomCases, sequenceCases, silenceCases, rosterCases, numberCases, callCases, forgetCases,
		documentCases, operatorCases, epochCases, deathCases, permitCases, tagBucketCases, slotCases, pushCases)
	t.Run("rules", func(t *testing.T) { s.runAll(t, rules, parallel) })
	t.Run("server", func(t *testing.T) { s.runAll(t, slices.Concat(permitServerCases, pushServerCases, serverCases), 1) })
}

// A suite runs cases on one server.
type suite struct {
	Harness
}

// A testCase is one directed case: a rule in a few words, and the code that shows it.
type testCase struct {
	name string
	// needs reports whether the harness can do what the case needs; nil: always.
	needs func(h *Harness) bool
	run   func(p *pool)
	// timed is what run is for a case that must not take longer than a removal time; see inTime.
	timed func(p *pool) (began time.Time, check func())
}

// parallel is the number of cases that run at once. Most of their time is spent
// waiting for time to pass, whatever the number of cores.
const parallel = 8

// runAll runs each case in a pool of its own, and as many at once as parallel says.
func (s *suite) runAll(t *testing.T, cases []testCase, parallel int) {
	t.Helper()
	// One handle for all; cases that are about several processes ask for more.
	store := s.New(t)
	var wg sync.WaitGroup
	defer wg.Wait()
	free := make(chan struct{}, parallel)
	for _, c := range cases {
		if c.needs != nil && !c.needs(&s.Harness) {
			continue
		}
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			t.Run(c.name, func(t *testing.T) {
				p := s.pool(t, store, "storetest/"+c.name+"/"+rand.Text())
				if c.timed != nil {
					p.inTime(c.timed)
				} else {
					c.run(p)
				}
			})
		})
	}
}

// callTimeout bounds one call of a store with its repeats. A store that needs
// more is broken.
const callTimeout = 10 * time.Second

// patience bounds a wait for something that follows from time alone.
const patience = time.Minute

func (s *suite) pool(t *testing.T, store driver.Store, name string) *pool {
	t.Helper()
	// The lease counts time in a few hundred milliseconds, but not so few that a
	// slow machine skips over a clamp in one step.
	return &pool{T: t, suite: s, name: name, store: store, lease: min(s.Longest, 400*time.Millisecond)}
}
