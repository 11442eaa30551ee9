//go:build !race

package race

// On reports whether this was built with the race detector.
const On = false
