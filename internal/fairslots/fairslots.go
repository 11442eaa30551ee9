// Package fairslots divides calls in flight among tags. Slots are a state and not a flow: a call holds one until it ends, so a slot can be
// given to a tag only when another call has ended. There are two questions, and a function for each:
//
//   - How many slots of a tag's total does a processor ask its pool for? [Ask].
//   - Which tag gets the next free slot of a processor? A [Turn] compares them.
//
// It has no clock, no lock and no goroutines.
package fairslots

import "math"

// An Asking is one tag as a processor sees it.
type Asking struct {
	// Here is how many slots it would use here if it could, and Elsewhere how many at all other processors: 0 or more. Total is how many it
	// may have over the whole pool: 1 or more.
	Here, Elsewhere, Total int64
	// Reserved is how many slots of the total are reserved for its callers here, and ReservedElsewhere how many for those of others.
	Reserved, ReservedElsewhere int64
	// Spare says that slots of the total were free by the last two answers of the pool, and not only the one that this processor has given up.
	Spare bool
	// Turn rises by one with each lease. Rank is the processor's place among all, from 0, and Processors is how many there are.
	Turn             int64
	Rank, Processors int
}

// Ask returns how many slots a processor asks for. If all processors together would use no more than the total, that is its demand. Otherwise
// it is its reserved slots, and its part of the rest by demand. Rounding leaves some slots, which take turns: one half of the processors asks for
// one more, and with each lease another one joins that half. So with fewer slots than processors, each has one for a part of the time. The other
// half asks for one more only if one is spare.
func (a Asking) Ask() int64 {
	if a.Here+a.Elsewhere <= a.Total {
		return a.Here
	}
	reserved := min(a.Reserved, a.Here)
	here, elsewhere := a.Here-reserved, max(a.Elsewhere-a.ReservedElsewhere, 0)
	part := float64(max(a.Total-reserved-a.ReservedElsewhere, 0)) * float64(here) / float64(max(here+elsewhere, 1))
	part = min(part, float64(here))
	asks := math.Floor(part)
	n := int64(max(a.Processors, 1))
	if mine := (int64(a.Rank)+a.Turn)%n < (n+1)/2; asks < part && (mine || a.Spare) {
		asks++
	}
	return reserved + int64(asks)
}

// Never is the start of a tag that can't use a slot.
var Never = math.Inf(1)

// A Turn counts the slot-seconds of one tag at one processor. Waiting tags are served by them, as a fair scheduler serves by processor time. So a
// tag of long calls gets no more than one of short calls. The zero Turn is that of a new tag.
type Turn struct {
	used float64 // slot-seconds by weight
	at   float64 // seconds, of the last Step
}

// Step counts the slots that were held since the last step, at a weight. now is in seconds of any clock.
func (t *Turn) Step(now float64, held int, weight float64) {
	t.used += max(now-t.at, 0) * float64(held) / max(weight, leastWeight)
	t.at = max(t.at, now)
}

// leastWeight is the smallest weight: a tag with a weight of 0 is served very slowly.
const leastWeight = 1e-6

// Join lets a tag begin to wait when the last tag that was served had start: it has saved up nothing meanwhile.
func (t *Turn) Join(start float64) { t.used = max(t.used, start) }

// Forget lets a tag be served as if it had used no more than most: what it used long ago does not hold it back for ever.
func (t *Turn) Forget(most float64) { t.used = min(t.used, most) }

// Start is the order in which waiting tags are served, the lowest first. Tags below their reservation here come before all others, and of these
// the one with the smallest part of it.
func (t *Turn) Start(held int, reserved float64) float64 {
	if float64(held) < reserved {
		return firstReserved + float64(held)/reserved
	}
	return t.used
}

// firstReserved is below the start of any tag that is not below its reservation.
const firstReserved = -2

// Reserved reports whether a start is that of a tag below its reservation.
func Reserved(start float64) bool { return start < 0 }
