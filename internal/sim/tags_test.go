package sim

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/proof"
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
	proof.Record(t, "tags", tagFigures(sum, cfg.Processors))
	if n < 20 || len(sum.Violations) > 0 {
		return
	}
	require.NotZero(t, c.TagSpent, "no budget was spent")
	require.NotZero(t, c.TagClones, "no clone had tokens of a tag")
	for i, w := range c.Tags[1:] {
		require.Greater(t, w.Ratio, 0.6, "no window of %v comes near the bound", windowLengths[i+1])
	}
}

// tagFigures is a sweep with tags as the reliability page shows it: its windows are those of tags.
func tagFigures(sum *Summary, processors int) proof.Pools {
	p := figures(sum, FirstTagged, processors)
	c := &sum.Counters
	p.Subject, p.Granted, p.Windows = "the same with tags: their totals and budgets", c.TagUsed, nil
	for i, w := range c.Tags {
		p.Windows = append(p.Windows, proof.Window{Length: windowLengths[i], Worst: w.Ratio, Tokens: w.Used, Allowed: w.Allowed})
	}
	return p
}
