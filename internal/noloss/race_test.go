//go:build race

package noloss

// raceEnabled: the race detector's own memory is not what is measured.
const raceEnabled = true
