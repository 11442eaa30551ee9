//go:build race

package shell

// A run takes ten times as long with the race detector: these few have every fault and every kind of store, which
// TestTheDefaultRunsHaveEverything requires.
const (
	defaultFirst = 290
	defaultRuns  = 5
	detector     = "with the race detector"
)
