//go:build !race

package shell

const (
	defaultFirst = 1
	defaultRuns  = 100
	detector     = "without the race detector"
)
