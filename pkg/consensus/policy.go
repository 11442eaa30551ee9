package consensus

import (
	"cmp"
	"slices"
)

// A Policy divides the limit among the live processors: it returns the share that each of rows
// should hold, in the same order. It is a pure function, may be called from any goroutine, and
// every processor of a pool uses the same one. A policy cannot break the bound: it only says what
// to ask the store for.
type Policy func(rows []RosterRow) []Share

// Even gives every live processor the same share, regardless of demand: the pool-size rule of
// Numaflow's own throttling.
func Even(rows []RosterRow) []Share {
	out := make([]Share, len(rows))
	for i := range out {
		out[i] = Whole / Share(len(rows))
	}
	return out
}

// idleFloors is the total share of all idle processors: half a percent, so that a first message
// need not wait for a sync.
const idleFloors = Whole / 200

// Fair is max-min fair by demand: nobody gets more than its demand while another processor lacks,
// and processors that lack get equal shares. This is water-filling, as in Bertsekas and Gallager,
// Data Networks, section 6.5.2. Share without demand is spread evenly. Idle processors keep a
// floor, half a percent of the limit among all. With every processor busy it equals Even.
func Fair(rows []RosterRow) []Share {
	n := Share(len(rows))
	out := make([]Share, n)
	if n == 0 {
		return out
	}
	order := make([]int, n)
	var sum Share
	for i, row := range rows {
		order[i] = i
		out[i] = min(max(row.Demand, idleFloors/n), Whole)
		sum += out[i]
	}
	if sum <= Whole {
		for i := range out {
			out[i] += (Whole - sum) / n
		}
		return out
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(out[a], out[b]), a-b) })
	left := Whole
	for k, i := range order {
		out[i] = min(out[i], left/(n-Share(k)))
		left -= out[i]
	}
	return out
}

// leave lowers the shares of a policy to what rows that are no longer live leave of the limit: the largest ones, to one level. So no small
// share is lost, and a processor that was killed and has started again gets one, although the claim of its earlier process stays until its
// removal.
func leave(closed Share, shares []Share) []Share {
	sum := Share(0)
	for _, s := range shares {
		sum += s
	}
	left := Whole - closed
	if closed == 0 || sum <= left {
		return shares
	}
	level := Whole
	for k, s := range slices.Sorted(slices.Values(shares)) {
		if even := left / Share(len(shares)-k); s > even {
			level = even
			break
		}
		left -= s
	}
	out := make([]Share, len(shares))
	for i, s := range shares {
		out[i] = min(s, level)
	}
	return out
}

// firstShares lowers the shares of a division so that a processor without a first token gets it at its next request. Without this it waits
// until another processor gives up the excess of its claim over its share, and that one may be dead. Processors whose claims do not exceed
// their shares pay alike, down to their floors, up to a quarter of its even share: in a pool that grows, live processors give up their excess
// soon, and what is paid beside that is unused for an interval. token is the share of one token per interval.
func firstShares(closed, token Share, wants []Share, rows []RosterRow, floors []Share) []Share {
	n := Share(len(rows))
	over, free, lacks := closed-Whole, Share(0), false
	pays := make([]Share, n)
	for i, row := range rows {
		switch {
		case row.Claim > wants[i]:
			over += row.Claim
		case row.Claim < max(idleFloors/n, min(wants[i], token)):
			over += min(wants[i], Whole/n/4)
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
	out := make([]Share, n)
	for i, w := range wants {
		out[i] = w - Share(float64(pays[i])*float64(min(over, free))/float64(free))
	}
	return out
}
