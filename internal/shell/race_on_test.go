//go:build race

package shell

// A run takes eight times as long with the race detector: these take about a minute on
// two cores.
const (
	defaultRuns = 8
	detector    = "with the race detector"
)
