package limit

import (
	"math/big"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/bounds"
)

// slack is how much longer the windows of a draw are than they look. A draw is valid for two intervals, by a clock that may be a twelfth
// faster than the store's, and one interval ahead. An interval is at most 2.5 s, a quarter of the longest lease: 2 x 2.5 s x 13/12 + 2.5 s
// is less than 8 s.
const slack = 8 * time.Second

// Enforced returns the bounds that a tag bucket (the token bucket of one tag) applies: total tokens per per, with at most burst saved up. For a
// quota without a Total, total is 0. q must be valid; defaults are filled in as for a limit per second.
//
// Without Hard these are Total, Per and Burst. Let a tag bucket grant total' tokens per per', with burst saved up and no draw above m. Then it
// grants at most total' x (W + slack) / per' + burst + m in any window W. So with Hard the burst is at most a tenth of Total, and a draw
// takes at most the burst (see Largest). The rest of Total is spread over Per and the slack: (Total - 2 x burst) per (Per + 8 s). If that
// period exceeds 31 days, it is cut to 31 days and its total is scaled down.
func (q Quota) Enforced() (total int64, per time.Duration, burst int64) {
	q = q.WithDefaults(0)
	total, per, burst = int64(q.Total), q.Per, int64(q.Burst)
	if q.Total == 0 || !q.Hard {
		return total, per, burst
	}
	burst = min(burst, max(1, total/10))
	total, per = max(0, total-2*burst), per+slack
	if per > bounds.MaxPer {
		// Up to 1e9 tokens times 2.7e15 ns: too much for 64 bits.
		n := new(big.Int).Mul(big.NewInt(total), big.NewInt(int64(bounds.MaxPer)))
		total, per = n.Div(n, big.NewInt(int64(per))).Int64(), bounds.MaxPer
	}
	return total, per, burst
}

// Kept returns the fraction of Total that the tag earns in the long run: 1, or less with Hard. The shorter Per, the smaller it is: about
// 0.54 with ten seconds, 0.88 with a minute, 0.998 with an hour.
func (q Quota) Kept() float64 {
	q = q.WithDefaults(0)
	if !q.Hard || q.Total == 0 {
		return 1
	}
	total, per, _ := q.Enforced()
	return float64(total) / per.Seconds() / rate(q.Total, q.Per)
}

// Largest returns the most tokens that one draw may take, or 0 if any number is allowed. A larger draw would break the promise of a Hard
// quota.
func (q Quota) Largest() int64 {
	if !q.Hard || q.Total == 0 {
		return 0
	}
	_, _, burst := q.Enforced()
	return burst
}
