package protocol

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// wholeSlots rounds the shares of a policy to whole slots of most, so that none is lost and their sum is as
// before. Every processor gets its full slots, and the slots that are left go to processors that could use
// one more. If there are more of these than slots, they take turns: turn counts them. So with fewer slots
// than busy processors each has a slot some of the time, instead of a part of one forever.
func wholeSlots(shares []driver.Share, rows []driver.RosterRow, most int, turn int64) []driver.Share {
	counts := make([]int, len(rows))
	m, left := driver.Share(most), driver.Share(0)
	var needy, content []int
	for i := range rows {
		share := min(max(shares[i], 0), driver.Whole)
		counts[i] = sharing.SlotsOf(int64(share), most)
		over := (share+1)*m - driver.Share(counts[i])*driver.Whole // it is rounded down; see sharing.ExactSlots
		left += max(over, 0)
		switch {
		case over <= 0 || counts[i] == most:
		case rows[i].Demand*m > driver.Share(counts[i])*driver.Whole:
			needy = append(needy, i)
		default:
			content = append(content, i)
		}
	}
	free := int(left / driver.Whole)
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
	out := make([]driver.Share, len(rows))
	for i, n := range counts {
		if out[i] = driver.Share(sharing.ShareOf(n, most)); n == most {
			out[i] = driver.Whole
		}
	}
	return out
}

// turn counts the leases since the pool's clock began: processors with the same answer agree on it.
func (p *Processor) turn() int64 { return p.clock.time / max(p.Lease.Microseconds(), 1) }

// slotless reports whether the store answers and has no slot for this processor at present.
func (p *Processor) slotless(now time.Duration) bool {
	return p.split.slots > 0 && p.state == StateHolding && p.held == 0 && p.until > now && p.frozen <= now
}
