package sharing

import (
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// ExactSlots is the largest number of slots for which a share counts as 1e-9 more than it is, so that a third of three slots is one. With
// fewer than a million processors, the slots of all of them stay within the limit.
const ExactSlots = 1000

// SlotsOf returns how many of most calls in flight a share allows. share is 0 to WholeShare, most at least 0.
func SlotsOf(share int64, most int) int {
	if share > 0 && share < limit.WholeShare && most <= ExactSlots {
		share++
	}
	return int(share * int64(most) / limit.WholeShare)
}

// ShareOf returns the smallest share that allows n of most calls in flight. n is 0 to most, most at least 1.
func ShareOf(n, most int) int64 {
	share := (int64(n)*limit.WholeShare + int64(most) - 1) / int64(most)
	if share > 0 && most <= ExactSlots {
		share-- // it counts as more than it is
	}
	return share
}
