//go:build !race

package shell

const (
	defaultRuns = 100
	detector    = "without the race detector"
)
