package bucket

import (
	"math/bits"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A hard limit (Limit.Hard) promises that at most Max tokens are granted in any window of length Per, in true time and over the whole pool.
// This is how, and why it holds.
//
// # The rules
//
// Let C be the burst of the whole pool, f the most by which a clock may run fast (13/12: 8.33 %), and
//
//	R = (Max + 1 - C) / (f x Per)
//
// A processor with share s, from 0 to 1, has a bucket of capacity s x C that earns s x R by its own clock. Hard limits are stricter than
// others in three ways:
//
//  1. No bucket is rounded up to one token. A processor whose s x C is below one grants nothing (ReasonShareTooSmall). It grants n tokens
//     at once only if s x C is at least n: nobody collects more than the bucket holds.
//  2. Refunds are credited only when a bucket from which they were never drawn would not have overflowed since; see RefundHard.
//  3. A share that is used without the store's consent (Lease.Degraded) counts as none. That is not enough for a pool that degrades: a
//     store that was emptied meanwhile takes such a share for a good one. The pool has to stop instead.
//
// As ever, the bucket is cut to its new capacity when the share falls, and a share that rises adds nothing. A processor without a valid
// lease has an empty bucket.
//
// # The theorem
//
// Assume that at every instant the valid shares of all processors add up to at most one. Assume that no clock runs more than 8.33 % fast,
// and that no permit is settled above its cost. Then the tokens granted in any window (t, t+Per], less those of them that were credited
// again, are at most Max.
//
// Proof. Replace every bucket by one from which the tokens credited later were never drawn. By rule 2 it never overflows where the real one
// did not, so it obeys the same law. It never holds less than the real one, and every grant that counts is one of its own. At the instant t
// processor i holds the share s(i), and its bucket at most s(i) x C. A processor without a share has an empty bucket, however many of them
// join later. During the window processor i earns at most R x f times the integral of its share, since its clock shows at most f x Per. It
// grants no more than it held and earned. The sum over all processors is at most
//
//	sum of s(i) x C + R x f x (integral of the sum of the shares) <= C + R x f x Per = Max + 1
//
// R is rounded down, which makes this less than Max + 1. Tokens are granted whole, so it is at most Max. The number of processors does not
// occur: the shares bound it, for at most C of them can hold a share that is worth a token. It does not matter either how often or how fast
// the shares move, who joins or leaves, and whether anybody knows of it.
//
// # What it costs
//
// With everything in demand the pool uses R x Per = (Max + 1 - Burst) / Max / 1.0833 of Max, and at most Burst processors can draw at a
// time. A larger burst serves more processors, larger costs and later timers; a smaller one leaves more for the rate. So the default is a
// tenth of Max. It is at most 100 tokens or 100 ms worth, whichever is more, because more serves neither many processors nor late timers.
// It is at least 8, for eight processors, or half of Max if that is less.
const (
	// hardClocks is f. The clocks that the pool rests on run at most 8.33 % fast,
	// which is less.
	hardClocks = 13.0 / 12
	// hardRounding lowers the rate by far more than the rounding of floating-point numbers, and far less than anybody notices.
	hardRounding = 1 - 1e-9
)

// HardBurst is the default burst of a hard limit.
func HardBurst(most int, per time.Duration) int {
	b := min(most/10, max(100, EarnedIn(100*time.Millisecond, most, per)))
	return max(b, min(8, (most+1)/2))
}

// EarnedIn returns how many tokens a limit of most per period earns in d.
func EarnedIn(d time.Duration, most int, per time.Duration) int {
	return int(float64(most) * float64(d) / float64(per))
}

// hardSlack is how much C is above Burst: a millionth of it, at most half a token. Shares are rounded down, and a hundredth of a burst of
// 100 must still be worth one token.
func (c Config) hardSlack() float64 { return min(float64(c.Burst)/1e6, 0.5) }

// hardPerPeriod is R x Per, in tokens.
func (c Config) hardPerPeriod() float64 {
	return (float64(c.Max) + 1 - float64(c.Burst) - c.hardSlack()) / hardClocks * hardRounding
}

// HardUnits is C in units.
func (b *Bucket) HardUnits() int64 {
	burst := b.Units(b.config.Burst)
	return burst + min(burst/1_000_000, b.Units(1)/2)
}

// hardCapacity returns a share's part of C, rounded down, so that the buckets of a pool never hold more than C together.
func (b *Bucket) hardCapacity(share int64) int64 {
	hi, lo := bits.Mul64(uint64(b.HardUnits()), uint64(share))
	q, _ := bits.Div64(hi, lo, uint64(limit.WholeShare))
	return int64(q)
}

// HardShare is the smallest share whose capacity is at least so many units, which must not be more than C.
func (b *Bucket) HardShare(units int64) int64 {
	c := uint64(b.HardUnits())
	hi, lo := bits.Mul64(uint64(units), uint64(limit.WholeShare))
	q, r := bits.Div64(hi, lo, c)
	if r > 0 {
		q++
	}
	return int64(q)
}
