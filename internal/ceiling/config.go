package ceiling

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling/backoff"
	"github.com/numaproj-contrib/numathrottle/internal/ceiling/ramp"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

const (
	// MaxRaise is how many times the configured limit an override may be.
	MaxRaise = limit.MaxShare / limit.WholeShare
	// maxTokens is the largest Max of a ramp.
	maxTokens = 1_000_000_000
	// margin keeps a bucket that holds just one token from losing it to rounding.
	margin = 1 + 1e-6
)

// A Config is what a configured limit says of its ceiling, with every default filled in.
// The zero Config is no limit.
type Config struct {
	// Limit is the configured limit. Its Per counts in nanoseconds.
	Limit Rate
	// Hard says that no override may raise the limit. Burst is then what the bucket of
	// the whole pool holds, in tokens.
	Hard  bool
	Burst int64
	// Granted is which part of Limit a hard limit grants in the long run.
	Granted float64
	// Ramps says that the limit ramps up, as Ramp describes.
	Ramps bool
	Ramp  ramp.Config
	// Adapts says that refusals of the called service lower the ceiling. Reserved is what
	// they leave at least, in tokens per Limit.Per.
	Adapts   bool
	Reserved int64
}

// reserved is what refusals leave at least of a ceiling in tokens per Limit.Per, in 1e-9 of
// that ceiling. It is at least so many tokens per Limit.Per as least says.
func (c *Config) reserved(of, least float64) int64 {
	part := max(float64(c.Reserved), least) / of
	return int64(max(1, min(part*backoff.Whole, backoff.Whole)))
}

// backoffPer is the period of a Rate as a backoff takes it: whole microseconds.
func backoffPer(per time.Duration) time.Duration {
	return max(per.Truncate(time.Microsecond), time.Millisecond)
}
