package sim

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// taggedSeeds is how many runs with tags there are for each run without.
const taggedSeeds = 0.1

// TestTagSeeds makes runs with tags: none breaks a promise.
func TestTagSeeds(t *testing.T) {
	n := max(1, int(taggedSeeds*float64(setting(t, "SEEDS", unlessSet()))))
	n = int(setting(t, "TAG_SEEDS", uint64(n)))
	cfg := configured(t)
	cfg.Found = func(r Result) { fmt.Fprintf(os.Stderr, "seed %d: %v\n", r.Seed, r.Violation) }
	sum := Sweep(cfg, FirstTagged+setting(t, "FIRST", 1)-1, n, 20)
	c := &sum.Counters
	t.Logf("%d seeds (%.1f seeds/s), %d tokens of tags, %d gushes, %d draws at the end of a budget, worst windows:",
		c.Runs, float64(c.Runs)/sum.Real.Seconds(), c.TagUsed, c.Gushes, c.TagSpent)
	for i, w := range c.Tags {
		t.Logf("%v: %.3f (%g of %.6g)", windowLengths[i], w.Ratio, w.Used, w.Allowed)
	}
	for _, v := range sum.Violations {
		t.Errorf("%s\n%v\n%s", replay(v.Seed, cfg.Processors), v.Violation, v.Plan)
	}
	if n < 20 || len(sum.Violations) > 0 {
		return
	}
	require.NotZero(t, c.TagSpent, "no budget was spent")
	require.NotZero(t, c.TagClones, "no clone had tokens of a tag")
	for i, w := range c.Tags[1:] {
		require.Greater(t, w.Ratio, 0.6, "no window of %v comes near the bound", windowLengths[i+1])
	}
}
