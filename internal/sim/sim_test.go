package sim

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/proof"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(-1) // the live heap is tiny: collect when the limit is reached
	debug.SetMemoryLimit(512 << 20)
	os.Exit(m.Run())
}

// setting reads a number from the environment.
func setting(t *testing.T, name string, def uint64) uint64 {
	t.Helper()
	text := os.Getenv("NUMATHROTTLE_SIM_" + name)
	if text == "" {
		return def
	}
	v, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, "NUMATHROTTLE_SIM_%s", name)
	return v
}

// unlessSet is how many runs there are without NUMATHROTTLE_SIM_SEEDS.
func unlessSet() uint64 {
	if testing.Short() {
		return 1
	}
	return uint64(testkit.Fewer(testkit.Fewer(300)))
}

// TestSeeds makes many runs: none breaks a promise, and every fault meets every state.
func TestSeeds(t *testing.T) {
	first, n := setting(t, "FIRST", 1), int(setting(t, "SEEDS", unlessSet()))
	cfg := configured(t)
	cfg.Found = func(r Result) { // at once: a long sweep may be ended before its end
		fmt.Fprintf(os.Stderr, "seed %d: %v\n", r.Seed, r.Violation)
	}
	cfg.Progress = progress(n)
	sum := Sweep(cfg, first, n, 10)
	t.Logf("%d seeds, %v of virtual time in %v (%.1f seeds/s), whole again after p50 %v, p99 %v, most %v\n%s",
		sum.Counters.Runs, sum.Virtual, sum.Real.Round(time.Millisecond), float64(sum.Counters.Runs)/sum.Real.Seconds(),
		sum.Percentile(0.5), sum.Percentile(0.99), sum.Percentile(1), &sum.Counters)
	for _, v := range sum.Violations {
		t.Errorf("%s\n%v\n%s", replay(v.Seed, cfg.Processors), v.Violation, v.Plan)
	}
	proof.Record(t, "simulation", figures(sum, first, cfg.Processors))
	if n >= 200 && len(sum.Violations) == 0 {
		requireNotVacuous(t, &sum.Counters)
	}
}

// progress says on stderr every half a minute how far a long sweep has come.
func progress(n int) func(done uint64) {
	began := time.Now()
	reported := began
	return func(done uint64) {
		now := time.Now()
		if now.Sub(reported) < 30*time.Second {
			return
		}
		reported = now
		rate := float64(done) / now.Sub(began).Seconds()
		fmt.Fprintf(os.Stderr, "%d of %d runs, %.1f a second, %v left\n",
			done, n, rate, time.Duration(float64(uint64(n)-done)/rate*float64(time.Second)).Round(time.Second))
	}
}

// replay is the command that shows a run again. The number of processors is a part of it
// where it was given: the plan draws it otherwise, and all that it draws then is different.
func replay(seed uint64, processors int) string {
	set := fmt.Sprintf("NUMATHROTTLE_SIM_SEED=%d ", seed)
	if processors != 0 {
		set += fmt.Sprintf("NUMATHROTTLE_SIM_PROCESSORS=%d ", processors)
	}
	return set + "go test -run TestReplay -v ./internal/sim"
}

// configured is the run that the environment asks for.
func configured(t *testing.T) Config {
	t.Helper()
	return Config{Seed: setting(t, "SEED", 1), Processors: int(setting(t, "PROCESSORS", 0))}
}

// TestReplayIsTheSameRun reads the variables of the printed command back.
func TestReplayIsTheSameRun(t *testing.T) {
	for _, processors := range []int{0, 1, 12} {
		t.Run(fmt.Sprint(processors), func(t *testing.T) {
			t.Setenv("NUMATHROTTLE_SIM_SEED", "")
			t.Setenv("NUMATHROTTLE_SIM_PROCESSORS", "")
			set, _, ok := strings.Cut(replay(691, processors), "go test ")
			require.True(t, ok)
			for word := range strings.FieldsSeq(set) {
				name, value, ok := strings.Cut(word, "=")
				require.True(t, ok, word)
				t.Setenv(name, value)
			}
			require.Equal(t, Config{Seed: 691, Processors: processors}, configured(t))
		})
	}
}

// figures is a sweep as the reliability page shows it.
func figures(sum *Summary, first uint64, processors int) proof.Pools {
	c := &sum.Counters
	p := proof.Pools{
		Subject: "the shipped state machines in a deterministic event loop", Runs: c.Runs, First: first,
		Hours: sum.Virtual.Hours(), Took: sum.Real, Events: c.Events, Syncs: c.Syncs, Granted: c.Granted,
		PeakShare: c.Peak.Fraction(), Recovery: &proof.Times{
			N: len(sum.Healed), P50: sum.Percentile(0.5), P99: sum.Percentile(0.99), Longest: sum.Percentile(1),
		},
	}
	for f := range numFaults {
		p.Faults = append(p.Faults, proof.Fault{Name: f.String(), Times: c.Faults[f]})
	}
	for i, w := range c.Windows {
		p.Windows = append(p.Windows, proof.Window{Length: windowLengths[i], Worst: w.Ratio, Tokens: w.Used, Allowed: w.Allowed})
	}
	for _, v := range sum.Violations {
		p.Violations = append(p.Violations, proof.Violation{
			Promise: v.Violation.Kind.Promise(), Text: v.Violation.String(), Replay: replay(v.Seed, processors),
		})
	}
	return p
}

func requireNotVacuous(t *testing.T, c *Counters) {
	t.Helper()
	for f := range numFaults {
		for m := range numMet {
			require.NotZero(t, c.FaultMet[f][m], "%s has never met a share or pool that was %s", f, m)
		}
	}
	for s, n := range c.Answers {
		require.NotZero(t, n, "no answer was %s", driver.Status(s))
	}
	for i, n := range c.Freezes[1:] {
		require.NotZero(t, n, "no pool was frozen by %s", freezeCauses[i+1])
	}
	for i, w := range c.Windows {
		require.Greater(t, w.Ratio, 0.7, "no window of %v comes near the bound", windowLengths[i])
	}
	// The best second follows a rest in a run whose hard limit changes. It is one second of few runs, so each change to what pods draw moves it:
	// from 0.96 to 0.94 when shares began to gather for large draws, while the mean of such runs' best seconds rose from 0.57 to 0.58.
	require.GreaterOrEqual(t, c.Hard.Ratio, 0.9, "no second comes near a hard limit")
	require.GreaterOrEqual(t, c.Lowered.Ratio, 0.85, "no second comes near a hard limit that is lowered")
	require.Greater(t, c.Changed.Ratio, 0.7, "no window with a changed limit comes near the bound")
	require.NotZero(t, c.Ramping, "no processor went by a ceiling below the limit")
	require.InDelta(t, 1, c.Nearest, 1e-9, "no two permits are as near as can be")
	for what, n := range map[string]uint64{"given back": c.Returned, "good beside shares": c.Mixed} {
		require.NotZero(t, n, "no permit was %s", what)
	}
	require.NotZero(t, c.Together, "nobody went on when all had lost the store")
	require.NotZero(t, c.Deaths, "nobody has named a death")
	require.NotZero(t, c.Pauses, "nobody has paused a pool")
	require.NotZero(t, c.Receipts, "nobody has sent a receipt")
	require.Equal(t, driver.Whole, c.Peak, "no pool has ever used the whole")
	require.Greater(t, c.Answers[driver.Granted]*2, c.Syncs, "most requests came to nothing")
}

func TestReplay(t *testing.T) {
	testkit.SkipRace(t, "a run has one goroutine, and TestSeeds has some with it")
	cfg := configured(t)
	cfg.Trace = traceTo(t)
	res := Run(cfg)
	t.Logf("seed %d: %s\n%s", cfg.Seed, res.Plan, &res.Counters)
	if res.Violation != nil {
		t.Error(res.Violation)
	}
}

// traceTo is where a trace goes: nowhere, unless NUMATHROTTLE_SIM_TRACE or
// NUMATHROTTLE_SIM_SEED is set.
func traceTo(t *testing.T) io.Writer {
	t.Helper()
	if os.Getenv("NUMATHROTTLE_SIM_SEED") == "" && os.Getenv("NUMATHROTTLE_SIM_TRACE") == "" {
		return nil
	}
	return t.Output()
}
