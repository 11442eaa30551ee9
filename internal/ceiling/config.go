package ceiling

import (
	"math/bits"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling/backoff"
	"github.com/numaproj-contrib/numathrottle/internal/ceiling/ramp"
)

const (
	// MaxRaise is the maximum of an override relative to the configured limit.
	MaxRaise int64 = 64
	// maxTokens is the largest Max of a ramp.
	maxTokens = 1_000_000_000
	// margin keeps a bucket that holds just one token from losing it to rounding.
	margin = 1 + 1e-6
)

// A Config is the configuration of a limit's ceiling, with every default filled in. The zero Config is no limit.
type Config struct {
	// Limit is the configured limit. Its Per counts in nanoseconds.
	Limit Rate
	// Hard means that no override may raise the limit. Burst is then the size of the whole pool's bucket, in tokens.
	Hard  bool
	Burst int64
	// Granted is the part of Limit that a hard limit grants in the long run.
	Granted float64
	// Ramps means that the limit ramps up, as Ramp describes.
	Ramps bool
	Ramp  ramp.Config
	// Adapts means that refusals by the called service lower the ceiling. Reserved is the minimum that they leave, in tokens per Limit.Per.
	Adapts   bool
	Reserved int64
	// Follows means that the limit in force in the pool is at most what the called service announces, as the pool agrees (Agree). First is the
	// limit before anything was announced, in tokens per Limit.Per; 0: the configured one. As with Limit, one processor binds all.
	Follows bool
	First   int64
}

// reserved returns the minimum that refusals leave of a ceiling of so many tokens per Limit.Per, in 1e-9 of that ceiling: no fewer than
// least tokens per Limit.Per.
func (c *Config) reserved(of, least float64) int64 {
	part := max(float64(c.Reserved), least) / of
	return int64(max(1, min(part*backoff.Whole, backoff.Whole)))
}

// backoffPer returns the period of a Rate for package backoff: whole microseconds.
func backoffPer(per time.Duration) time.Duration {
	return max(per.Truncate(time.Microsecond), time.Millisecond)
}

// A Rate is a limit as in configurations: Max tokens in Per. The zero Rate is none.
type Rate struct {
	Max int64
	Per time.Duration
}

// Below reports whether r is a lower rate than o. Both are more than none.
func (r Rate) Below(o Rate) bool {
	hi, lo := bits.Mul64(uint64(r.Max), uint64(o.Per))
	hi2, lo2 := bits.Mul64(uint64(o.Max), uint64(r.Per))
	return hi < hi2 || hi == hi2 && lo < lo2
}

// in returns the rate with a period where it has none.
func (r Rate) in(per time.Duration) Rate {
	if r.Per == 0 {
		r.Per = per
	}
	return r
}

// Tokens converts the rate to tokens per another period.
func (r Rate) Tokens(per time.Duration) float64 {
	if per == r.Per {
		return float64(r.Max)
	}
	return float64(r.Max) * float64(per) / float64(r.Per)
}
