package shell

import (
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/proof"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // the live heap is small
	os.Exit(m.Run())
}

// setting reads a number from the environment; ok tells whether it is set.
func setting(t *testing.T, name string, def uint64) (v uint64, ok bool) {
	t.Helper()
	text := os.Getenv("NUMATHROTTLE_SHELL_" + name)
	if text == "" {
		return def, false
	}
	v, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, "NUMATHROTTLE_SHELL_%s", name)
	return v, true
}

func replay(seed uint64) string {
	return fmt.Sprintf("NUMATHROTTLE_SHELL_SEED=%d go test -race -run TestShell -count 5 -v ./internal/shell", seed)
}

// runSeed makes one run in a bubble. Goroutines that are stuck or left are a
// violation like any other.
func runSeed(t *testing.T, p plan, wiring wiring, trace bool) (res *result) {
	t.Helper()
	res = &result{plan: p}
	defer func() {
		if r := recover(); r != nil {
			res.violations = append(res.violations, violation{0, breachStuck, fmt.Sprint(r)})
		}
	}()
	synctest.Test(t, func(t *testing.T) { res = simulate(t, p, wiring, trace) })
	return res
}

// wanted returns which runs there are: those of the environment, else as many as race_on_test.go and race_off_test.go
// say. one tells whether it is a single seed that was asked for.
func wanted(t *testing.T) (first, runs uint64, one bool) {
	t.Helper()
	if seed, ok := setting(t, "SEED", 0); ok {
		return seed, 1, true
	}
	first, runs = defaultFirst, defaultRuns
	if testing.Short() {
		runs = 1
	}
	runs, set := setting(t, "RUNS", runs)
	if set {
		first = 1
	}
	first, _ = setting(t, "FIRST", first)
	return first, runs, false
}

// TestShell makes many runs: none breaks a promise.
func TestShell(t *testing.T) {
	first, runs, one := wanted(t)
	sum := newSummary(first)
	t.Run("seeds", func(t *testing.T) {
		for seed := first; seed < first+runs; seed++ {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				p := drawPlan(seed)
				if one {
					t.Logf("seed %d: %s", seed, &p)
				}
				res := runSeed(t, p, wiring{}, one)
				for _, v := range res.violations {
					t.Errorf("%v\nseed %d: %s\n%s", v, seed, &p, replay(seed))
				}
				sum.add(res)
			})
		}
	})
	t.Log(sum)
	if runs >= 24 && !t.Failed() {
		sum.requireNotVacuous(t)
	}
	if !one {
		proof.Record(t, "shell", sum.figures())
	}
}

// A summary is what many runs came to.
type summary struct {
	began time.Time
	mu    sync.Mutex
	pools proof.Pools
	// used is the part of the limit granted under faults, of each run.
	used       []float64
	recoveries []time.Duration
	grants     uint64
	looks      uint64
	probes     uint64
	waits      uint64
	lost       uint64
	degraded   uint64
	together   uint64
	alone      uint64
	slots      uint64
	issuing    uint64 // runs
	faults     [numFaults]uint64
	outcomes   [numOutcomes]uint64
	answers    [driver.Behind + 1]uint64
	freezes    map[driver.FreezeCause]uint64
}

func newSummary(first uint64) *summary {
	s := &summary{began: time.Now(), freezes: map[driver.FreezeCause]uint64{}}
	s.pools = proof.Pools{
		Subject:    "consensus.Member and throttle.Throttle in virtual time, " + detector,
		First:      first,
		Processors: processors,
	}
	for _, w := range windows {
		s.pools.Windows = append(s.pools.Windows, proof.Window{Length: w})
	}
	return s
}

func (s *summary) add(res *result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pools.Runs++
	s.pools.Hours += res.virtual.Hours()
	s.pools.Granted += res.granted
	s.pools.Syncs += res.syncs
	s.pools.PeakShare = max(s.pools.PeakShare, res.peak.Fraction())
	for i, w := range res.windows {
		if w.Worst > s.pools.Windows[i].Worst {
			s.pools.Windows[i] = w
		}
	}
	for _, v := range res.violations {
		s.pools.Violations = append(s.pools.Violations, proof.Violation{Promise: "R6", Text: v.String(), Replay: replay(res.plan.seed)})
	}
	s.used = append(s.used, float64(res.underFaults)/(res.plan.perSecond()*res.plan.span.Seconds()))
	if res.recovered > 0 {
		s.recoveries = append(s.recoveries, res.recovered)
	}
	switch {
	case res.plan.together:
		s.together++
		s.alone += res.alone
	case res.plan.loss == consensus.Degrade:
		s.degraded++
	}
	s.grants, s.looks, s.lost = s.grants+res.grants, s.looks+res.looks, s.lost+res.lost
	s.probes, s.waits = s.probes+res.probes, s.waits+res.waits
	if s.slots += res.slots; res.slots > 0 {
		s.issuing++
	}
	for i, n := range res.faults {
		s.faults[i] += n
	}
	for i, n := range res.outcomes {
		s.outcomes[i] += n
	}
	for i, n := range res.answers {
		s.answers[i] += n
	}
	for c, n := range res.freezes {
		s.freezes[c] += n
	}
}

// figures are those for the page.
func (s *summary) figures() *proof.Pools {
	p := s.pools
	p.Took = time.Since(s.began)
	for f, n := range s.faults {
		p.Faults = append(p.Faults, proof.Fault{Name: fault(f).String(), Times: n})
	}
	p.Faults = append(p.Faults, proof.Fault{Name: "message lost", Times: s.lost})
	times := proof.Summarize(s.recoveries)
	p.Recovery = &times
	slices.Sort(s.used)
	p.Notes = []proof.Note{
		{What: "permits granted", Figure: fmt.Sprint(s.grants)},
		{What: "part of the limit granted under faults, median", Figure: fmt.Sprintf("%.2f", s.used[len(s.used)/2])},
		{What: "moments at which all shares were added up", Figure: fmt.Sprint(s.looks)},
		{What: "deadlines that could not be met, told at once", Figure: fmt.Sprint(s.probes)},
		{What: "waiters whose deadline could still be met, at such a moment", Figure: fmt.Sprint(s.waits)},
		{What: "runs in which tokens were issued one by one", Figure: fmt.Sprint(s.issuing)},
		{What: "slots reserved", Figure: fmt.Sprint(s.slots)},
		{What: "runs in which all lose the store alike, and go on without it", Figure: fmt.Sprint(s.together)},
		{What: "shares used without the store in them, at such a moment", Figure: fmt.Sprint(s.alone)},
		{What: "runs in which some lose it and go on (bound not judged)", Figure: fmt.Sprint(s.degraded)},
	}
	for o, n := range s.outcomes {
		p.Notes = append(p.Notes, proof.Note{What: "calls: " + outcome(o).String(), Figure: fmt.Sprint(n)})
	}
	return &p
}

func (s *summary) String() string {
	f := s.figures()
	var b strings.Builder
	fmt.Fprintf(&b, "%d runs, %.1f virtual hours in %v; %d permits, %d tokens, %d syncs, largest sum of shares %.9f\n",
		f.Runs, f.Hours, f.Took.Round(time.Millisecond), s.grants, f.Granted, f.Syncs, f.PeakShare)
	for _, w := range f.Windows {
		fmt.Fprintf(&b, "worst window of %v: %.3f of the bound (%g of %.1f tokens)\n", w.Length, w.Worst, w.Tokens, w.Allowed)
	}
	fmt.Fprintf(&b, "whole again after p50 %v, p99 %v, at most %v\n", f.Recovery.P50, f.Recovery.P99, f.Recovery.Longest)
	for _, x := range f.Faults {
		fmt.Fprintf(&b, "fault: %s %d\n", x.Name, x.Times)
	}
	for _, n := range f.Notes {
		fmt.Fprintf(&b, "%s: %s\n", n.What, n.Figure)
	}
	for i, n := range s.answers {
		fmt.Fprintf(&b, "answers %s: %d\n", driver.Status(i), n)
	}
	for c, n := range s.freezes {
		fmt.Fprintf(&b, "freezes by %s: %d\n", c, n)
	}
	return b.String()
}

// requireNotVacuous requires that everything has happened that the runs are about.
func (s *summary) requireNotVacuous(t *testing.T) {
	t.Helper()
	for f, n := range s.faults {
		require.NotZero(t, n, "fault %s", fault(f))
	}
	for o, n := range s.outcomes {
		require.NotZero(t, n, "no call was %s", outcome(o))
	}
	for a, n := range s.answers {
		if driver.Status(a) != driver.Cloned { // nobody is cloned here
			require.NotZero(t, n, "no answer was %s", driver.Status(a))
		}
	}
	require.NotZero(t, s.probes)
	require.NotZero(t, s.waits)
	require.NotZero(t, s.slots)
	require.NotZero(t, s.alone)
	require.NotZero(t, s.lost)
	require.Greater(t, s.pools.PeakShare, 0.99, "no pool has ever used the whole")
	slices.Sort(s.used)
	require.Greater(t, s.used[len(s.used)/2], 0.1, "hardly anything was granted")
}
