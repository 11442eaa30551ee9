//go:build race

package sim

// defaultSeeds is small under the race detector: a run has one goroutine, and the
// detector makes it ten times slower. make sim runs thousands without it.
const defaultSeeds = 4

// withRace tells whether the race detector is on.
const withRace = true
