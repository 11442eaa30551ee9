package bucket

import (
	"math"
	"math/bits"
	"time"
)

// A Config is what a bucket is made for. Every field must be set and valid.
type Config struct {
	// Max is the number of tokens per Per over the whole pool, and Burst how many of them the whole pool can save up.
	Max   int
	Per   time.Duration
	Burst int
	// Hard promises at most Max tokens in any window of length Per; see hard.go.
	Hard bool
	// Debt is the most that can be owed, in tokens. 0: as much as fits into the units.
	Debt int
}

// PerPeriod is the whole pool's grant per Per in the long run, in tokens.
func (c Config) PerPeriod() float64 {
	if c.Hard && c.Max > 0 {
		return c.hardPerPeriod()
	}
	return float64(c.Max)
}

// MaxCost is the largest cost of one draw, in tokens. A larger one would be above the limit by itself, or, with a hard limit, above the
// most that can be granted at once.
func (c Config) MaxCost() int {
	if c.Hard {
		return c.Burst
	}
	return max(c.Max, c.Burst)
}

// A Scale turns tokens into the units of a bucket: powers of two, about 2^30 units for a second's worth of tokens. So neither a rate of one
// per day nor one of a billion per second is rounded noticeably. The running totals last for years, even those of MaxShare.
type Scale struct {
	Shift   uint    // a token is 1<<Shift units
	Whole   float64 // units per nanosecond of the whole limit
	Largest int     // the largest cost of one draw: the draw asks for it each time
}

func newScale(c Config) Scale {
	rate := 30 - int(math.Ceil(math.Log2(float64(c.Max)/c.Per.Seconds())))
	room := 54 - bits.Len(uint(c.MaxCost())) // MaxShare has six bits more
	shift := uint(max(0, min(rate, room)))
	return Scale{shift, c.PerPeriod() / float64(c.Per) * float64(int64(1)<<shift), c.MaxCost()}
}

// MaxUnits bounds sums of tokens that are turned into units, so that neither they nor their differences overflow.
const MaxUnits = 1 << 62

// Units turns tokens into units.
func (s Scale) Units(n int) int64 { return int64(n) << s.Shift }

// Tokens turns units into tokens.
func (s Scale) Tokens(u int64) float64 { return float64(u) / float64(int64(1)<<s.Shift) }
