// Package inflight says how many slots a share of a limit on calls in flight is good for, and back.
// Shares are in 1e-9 of the limit, rounded down. Its functions are pure.
package inflight

// Whole is the share that is all slots.
const Whole int64 = 1_000_000_000

// Exact is the largest number of slots for which a share counts as 1e-9 more than it is, so that
// a third of three slots is one. The slots of all processors together stay at most that number for
// fewer processors than a million.
const Exact = 1000

// Slots is how many of most slots a share is good for; share is 0 to Whole, most at least 0.
func Slots(share int64, most int) int {
	if share > 0 && share < Whole && most <= Exact {
		share++
	}
	return int(share * int64(most) / Whole)
}

// Share is the smallest share that is good for n of most slots; n is 0 to most, most at least 1.
func Share(n, most int) int64 {
	share := (int64(n)*Whole + int64(most) - 1) / int64(most)
	if share > 0 && most <= Exact {
		share-- // it counts as more than it is
	}
	return share
}
