package consensus

import "time"

// maxWholeSlots is the largest limit that is divided in whole slots: above it a fraction of a
// slot for each processor is nothing that anybody would miss.
const maxWholeSlots = 1000

// SetSlots says that the limit is one of so many slots, none of which can be divided: a share
// is then a whole number of them. 0, as before the first call: it can be divided.
func (p *Processor) SetSlots(n int) {
	p.slots, p.split.wants = 0, nil
	if n <= maxWholeSlots {
		p.slots = max(n, 0)
	}
}

// wholeSlots rounds what a policy gives to whole slots, so that none is lost and their sum is as before:
// everyone gets what it has in full, and the slots that are left go to those that could use one
// more. If there are more of these than slots, they take turns: turn counts them. So
// with fewer slots than busy processors each has one some of the time, and not everybody a part of
// one for ever. It changes wants.
func wholeSlots(wants []Share, rows []RosterRow, slots int, turn int64) {
	m, left := Share(slots), Share(0)
	counts := make([]Share, len(wants))
	var needy, content []int
	for i, w := range wants {
		w++ // shares are rounded down, and count as so much more; see throttle.InFlight
		counts[i] = min(w*m/Whole, m)
		left += w*m - counts[i]*Whole
		switch {
		case w*m == counts[i]*Whole || counts[i] == m:
		case rows[i].Demand*m > counts[i]*Whole:
			needy = append(needy, i)
		default:
			content = append(content, i)
		}
	}
	free := int(left / Whole)
	if n := len(needy); n > free {
		first := int(turn%int64(n)) * free
		for k := range free {
			counts[needy[(first+k)%n]]++
		}
	} else {
		for _, i := range append(needy, content...)[:min(free, n+len(content))] {
			counts[i]++
		}
	}
	for i, n := range counts {
		wants[i] = slotsShare(n, m)
	}
}

// slotsShare is the smallest share that counts as n of m slots.
func slotsShare(n, m Share) Share {
	if n == 0 || n == m {
		return n / max(m, 1) * Whole
	}
	return (n*Whole+m-1)/m - 1
}

// turn counts the leases since the pool's clock began: processors that look at the same answer
// agree on it.
func (p *Processor) turn() int64 { return p.ceiling.time / max(p.lease.Microseconds(), 1) }

// slotless tells whether the store answers and has no slot for this processor at present.
func (p *Processor) slotless(now time.Duration) bool {
	return p.slots > 0 && p.state == StateHolding && p.held == 0 && p.until > now && p.frozen <= now
}
