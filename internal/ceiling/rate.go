package ceiling

import (
	"math/bits"
	"time"
)

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

// Tokens converts the rate to tokens per another period.
func (r Rate) Tokens(per time.Duration) float64 {
	if per == r.Per {
		return float64(r.Max)
	}
	return float64(r.Max) * float64(per) / float64(r.Per)
}
