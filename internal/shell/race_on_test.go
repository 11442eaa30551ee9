//go:build race

package shell

// A run takes eight times as long with the race detector: these take about 90 s on
// two cores.
const (
	defaultRuns = 12
	detector    = "with the race detector"
)
