package protocol

import (
	"cmp"
	"slices"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A Policy is consensus.Policy.
type Policy func(rows []driver.RosterRow) []driver.Share

// Even is consensus.Even.
func Even(rows []driver.RosterRow) []driver.Share {
	out := make([]driver.Share, len(rows))
	for i := range out {
		out[i] = driver.Whole / driver.Share(len(rows))
	}
	return out
}

// idleFloors is the total share of all idle processors: half a percent, so that a first message
// need not wait for a sync.
const idleFloors = driver.Whole / 200

// Fair is consensus.Fair.
func Fair(rows []driver.RosterRow) []driver.Share {
	n := driver.Share(len(rows))
	out := make([]driver.Share, n)
	if n == 0 {
		return out
	}
	order := make([]int, n)
	var sum driver.Share
	for i, row := range rows {
		order[i] = i
		out[i] = min(max(row.Demand, idleFloors/n), driver.Whole)
		sum += out[i]
	}
	if sum <= driver.Whole {
		for i := range out {
			out[i] += (driver.Whole - sum) / n
		}
		return out
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(out[a], out[b]), a-b) })
	left := driver.Whole
	for k, i := range order {
		out[i] = min(out[i], left/(n-driver.Share(k)))
		left -= out[i]
	}
	return out
}

// leave lowers the shares of a policy to what rows that are no longer live leave of the limit: the largest ones, to one level. So no small
// share is lost, and a processor that was killed and has started again gets one, although the claim of its earlier process stays until its
// removal.
func leave(closed driver.Share, shares []driver.Share) []driver.Share {
	sum := driver.Share(0)
	for _, s := range shares {
		sum += s
	}
	left := driver.Whole - closed
	if closed == 0 || sum <= left {
		return shares
	}
	level := driver.Whole
	for k, s := range slices.Sorted(slices.Values(shares)) {
		if even := left / driver.Share(len(shares)-k); s > even {
			level = even
			break
		}
		left -= s
	}
	out := make([]driver.Share, len(shares))
	for i, s := range shares {
		out[i] = min(s, level)
	}
	return out
}

// firstShares lowers the shares of a division so that a processor without a first token gets it at its next request. Without this it waits
// until another processor gives up the excess of its claim over its share, and that one may be dead. Processors whose claims do not exceed
// their shares pay alike, down to their floors, up to a quarter of its even share: in a pool that grows, live processors give up their excess
// soon, and what is paid beside that is unused for an interval. token is the share of one token per interval.
func firstShares(closed, token driver.Share, wants []driver.Share, rows []driver.RosterRow, floors []driver.Share) []driver.Share {
	n := driver.Share(len(rows))
	over, free, lacks := closed-driver.Whole, driver.Share(0), false
	pays := make([]driver.Share, n)
	for i, row := range rows {
		switch {
		case row.Claim > wants[i]:
			over += row.Claim
		case row.Claim < max(idleFloors/n, min(wants[i], token)):
			over += min(wants[i], driver.Whole/n/4)
			lacks = lacks || row.Claim < wants[i]
		default:
			over += wants[i]
			pays[i] = max(wants[i]-floors[i], 0)
			free += pays[i]
		}
	}
	if !lacks || over <= 0 || free == 0 {
		return wants
	}
	out := make([]driver.Share, n)
	for i, w := range wants {
		out[i] = w - driver.Share(float64(pays[i])*float64(min(over, free))/float64(free))
	}
	return out
}
