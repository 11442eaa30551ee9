//go:build race

package race

// On tells whether this was built with the race detector.
const On = true
