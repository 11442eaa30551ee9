// Package bounds holds the bounds of settings: of quotas and pauses. The documentation of the fields gives them to users.
package bounds

import "time"

// Bounds of a pause.
const (
	MaxPauseTag    = 64
	MaxPauseReason = 128
	MaxPauseBy     = 64
	// MaxPause is the longest pause with a known end.
	MaxPause = 366 * 24 * time.Hour
	// MaxPausedTags is how many tags a pool can have paused at a time, including the empty one.
	MaxPausedTags = 16
)

// Bounds of quotas.
const (
	MaxPatterns = 100
	MaxTokens   = 1_000_000_000
	MaxAmount   = 1_000_000_000_000_000
	MaxWeight   = 1000
	MinPer      = time.Millisecond
	MaxPer      = 31 * 24 * time.Hour
)
