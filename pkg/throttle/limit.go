package throttle

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"
)

// A Limit is the number of tokens that a pool may use in a period. The zero Limit
// is no limit.
type Limit struct {
	// Max is the number of tokens per Per, over the whole pool: 0 to 1e9.
	// 0 means no limit.
	Max int
	// Per is the period: 1 ms to 31 days. Defaults to one second.
	Per time.Duration
	// Burst is how many tokens the whole pool can save up: 0 to 1e9. Defaults to
	// what Max earns in 100 ms, at least 1.
	Burst int
}

// Bounds of a Limit's fields.
const (
	maxTokens = 1_000_000_000
	minPer    = time.Millisecond
	maxPer    = 31 * 24 * time.Hour
)

// Validate returns an error that names every field out of bounds, or nil.
func (l Limit) Validate() error {
	var errs []error
	bad := func(field string, value any, allowed string) {
		errs = append(errs, fmt.Errorf("limit: %s is %v, allowed: %s", field, value, allowed))
	}
	if l.Max < 0 || l.Max > maxTokens {
		bad("max", l.Max, "0 (no limit) to 1000000000")
	}
	if l.Per != 0 && (l.Per < minPer || l.Per > maxPer) {
		bad("per", l.Per, "1ms to 744h")
	}
	if l.Burst < 0 || l.Burst > maxTokens {
		bad("burst", l.Burst, "0 (100 ms worth of max) to 1000000000")
	}
	if len(errs) == 0 && l.Max > int(l.withDefaults().Per) { // above one per nanosecond
		bad("max per "+l.withDefaults().Per.String(), l.Max, "at most 1000000000 tokens per second")
	}
	return errors.Join(errs...)
}

// withDefaults returns the limit with every default filled in.
func (l Limit) withDefaults() Limit {
	if l.Per == 0 {
		l.Per = time.Second
	}
	if l.Burst == 0 && l.Max > 0 {
		l.Burst = max(1, int(float64(l.Max)*float64(100*time.Millisecond)/float64(l.Per)))
	}
	return l
}

func (l Limit) perSecond() float64 {
	return float64(l.Max) / l.withDefaults().Per.Seconds()
}

// maxCost is the largest cost of one draw: a larger one would be above the limit
// by itself.
func (l Limit) maxCost() int { return max(l.Max, l.Burst) }

// A scale turns tokens into the units that a bucket counts in: powers of two,
// about 2^36 units for a second's worth of tokens, so that neither a rate of one
// per day nor one of a billion per second is rounded noticeably, and the running
// totals last for years.
type scale struct {
	shift   uint    // a token is 1<<shift units
	whole   float64 // units per nanosecond of the whole limit
	largest int     // the largest cost of one draw: the draw asks for it each time
}

func newScale(l Limit) scale {
	rate := 36 - int(math.Ceil(math.Log2(l.perSecond())))
	room := 60 - bits.Len(uint(l.maxCost()))
	shift := uint(max(0, min(rate, room)))
	return scale{shift, float64(l.Max) / float64(l.Per) * float64(int64(1)<<shift), l.maxCost()}
}

// maxUnits bounds sums of tokens that are turned into units, so that neither they
// nor their differences overflow.
const maxUnits = 1 << 62

func (s scale) units(n int) int64      { return int64(n) << s.shift }
func (s scale) tokens(u int64) float64 { return float64(u) / float64(int64(1)<<s.shift) }
