package shell

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// However few the runs of make test are, they have every fault, every kind of store, and each of what else is drawn.
func TestTheDefaultRunsHaveEverything(t *testing.T) {
	have := map[string]bool{}
	for seed := uint64(defaultFirst); seed < defaultFirst+defaultRuns; seed++ {
		p := drawPlan(seed)
		for f, on := range p.faults {
			if on && (fault(f) < firstForgetful || p.store != storeMemory) {
				have[fault(f).String()] = true
			}
		}
		for _, drawn := range []any{
			p.store, fmt.Sprint("even ", p.even), fmt.Sprint("spiky ", p.spiky), fmt.Sprint("given back ", p.giveBack), p.loss,
			fmt.Sprint("known new ", p.knownNew), fmt.Sprint("overrun ", p.overrun > 0), fmt.Sprint(len(p.leases), " leases"),
			fmt.Sprint("clock off ", p.storeRate != 1), fmt.Sprint("low ", p.perSecond() < 10),
		} {
			have[fmt.Sprint(drawn)] = true
		}
	}
	const stores, losses, either = 3, 2, 8
	require.Len(t, have, int(numFaults)+stores+losses+2*either, "%v", have)
}
