package sim

import (
	"os"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(800) // the live heap is tiny
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

func TestSeeds(t *testing.T) {
	first, n := setting(t, "FIRST", 1), setting(t, "SEEDS", 200)
	sum := Sweep(Config{Processors: int(setting(t, "PROCESSORS", 0))}, first, int(n), 10)
	t.Logf("%d seeds, %v of virtual time in %v (%.1f seeds/s), whole again after p50 %v, p99 %v, most %v\n%s",
		sum.Counters.Runs, sum.Virtual, sum.Real.Round(time.Millisecond), float64(sum.Counters.Runs)/sum.Real.Seconds(),
		sum.Percentile(0.5), sum.Percentile(0.99), sum.Percentile(1), &sum.Counters)
	for _, v := range sum.Violations {
		t.Errorf("seed %d: %v\n%s", v.Seed, v.Violation, v.Plan)
	}
}

func TestReplay(t *testing.T) {
	seed := setting(t, "SEED", 1)
	cfg := Config{Seed: seed, Processors: int(setting(t, "PROCESSORS", 0))}
	if os.Getenv("NUMATHROTTLE_SIM_SEED") != "" {
		cfg.Trace = os.Stdout
	}
	res := Run(cfg)
	t.Logf("seed %d: %s\n%s", seed, res.Plan, &res.Counters)
	if res.Violation != nil {
		t.Error(res.Violation)
	}
}
