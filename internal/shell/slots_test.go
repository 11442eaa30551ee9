package shell

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSlots makes runs with a limit on calls in flight beside the one on tokens: none breaks a promise.
func TestSlots(t *testing.T) {
	first, runs, one := wanted(t)
	if !one && !testing.Short() {
		runs = max(2, runs/4) // TestShell has the others
	}
	var sum flightCounts
	for seed := first; seed < first+runs; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p := drawSlots(seed)
			if one {
				t.Logf("seed %d: %s", seed, &p)
			}
			res := runSeed(t, p, wiring{}, one)
			for _, v := range res.violations {
				t.Errorf("%v\nseed %d: %s\n%s", v, seed, &p, strings.Replace(replay(seed), "TestShell", "TestSlots", 1))
			}
			sum.add(res.flight)
		})
	}
	t.Logf("%+v", sum)
	if runs >= 10 && !t.Failed() {
		require.NotZero(t, sum.full, "never were all slots in use")
		require.NotZero(t, sum.died, "nobody has died with calls under way")
		require.NotZero(t, sum.lapsed, "nobody was away for a removal time with calls under way")
	}
}
