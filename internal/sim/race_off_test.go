//go:build !race

package sim

// defaultSeeds is how many seeds TestSeeds runs.
const defaultSeeds = 300
