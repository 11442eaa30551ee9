//go:build !race

package consensus

// RaceEnabled is false: see race_on_test.go.
const RaceEnabled = false
