//go:build !race

package sim

// defaultSeeds is how many seeds TestSeeds runs.
const defaultSeeds = 300

// withRace tells whether the race detector is on.
const withRace = false
