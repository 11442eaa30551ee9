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
