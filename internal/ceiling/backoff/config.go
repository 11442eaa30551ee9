package backoff

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling/state"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// Whole is the configured limit as a rate.
const Whole = limit.WholeShare

// The constants of the law; see the package documentation.
const (
	second   = 1_000_000 // microseconds
	recovery = 5 * second
	// beta, in percent, is how much a cut leaves, and the lowest accepted part that a single observation may imply. mildBeta replaces it if
	// at most mild percent of the calls were refused.
	beta, mildBeta, mild = 70, 85, 10
	// tolerance, in percent: refusals up to this part of the calls cause no cut.
	tolerance = 2
	// binding, in percent: the part of the offered tokens that must be used for the ceiling to rise.
	binding = 90
	// steepness of the probing curve, per cubic second.
	steepness = 0.1
	// ahead is how long the ceiling rises without another step.
	ahead = 2 * second
	// Witnesses is the minimum number of processors for ignoring the worst of them.
	Witnesses = 3
)

// Bounds of numbers.
const (
	maxMicros     = state.MaxMicros
	maxGeneration = 78_000_000_000 // seven digits to base 36
	maxRate       = 64 * Whole
	maxClimbed    = 3600 * second
	maxLag        = 3600 * second
	maxTokens     = 64 * 1_000_000_000
	minPer        = time.Millisecond
	maxPer        = 31 * 24 * time.Hour
)

// A Config is the reference for rates.
type Config struct {
	// Max tokens per Per is the configured limit: 1 to 64e9 tokens, 1 ms to 31 days.
	Max int64
	Per time.Duration
	// Reserved is the part that is always allowed, in 1e-9 of the limit: 1 to Whole.
	Reserved int64
}
