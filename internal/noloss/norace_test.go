//go:build !race

package noloss

const raceEnabled = false
