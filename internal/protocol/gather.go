package protocol

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A hard limit grants a draw only from a share whose part of the burst holds it. While all processors are busy none has such a share for a
// draw above its even part. So shares gather: in every other turn one processor with such a draw wants what that needs, and the others want so
// much less. It gives that back once the draw is granted, or at the end of the turn. If several processors have such
// draws, they take turns. What is reserved for tags is not given away: a draw that needs more than the rest waits until less is asked for.

// gather moves shares of a policy to one of the processors that need more, in its turn. needs are the shares that the smallest and the largest
// draw of each processor need, 0 for none. It gets that for the largest, if the others have so much above their floors, or else for the
// smallest. Without floors they keep nothing.
func gather(shares []driver.Share, needs [][2]driver.Share, floors []driver.Share, turn int64) []driver.Share {
	if turn%2 != 0 {
		return shares
	}
	floor := func(i int) driver.Share {
		if i < len(floors) {
			return min(max(floors[i], 0), shares[i])
		}
		return 0
	}
	kept, all := driver.Share(0), driver.Share(0)
	for i := range shares {
		kept += floor(i)
		all += shares[i]
	}
	var needy []int
	gets := make([]driver.Share, len(shares))
	for i := range needs {
		for _, need := range needs[i] {
			if most := all - (kept - floor(i)); need > shares[i] && need <= most {
				gets[i] = min(need+need/16+floor(i), most) // up to 5 % may stay with the others; see choose
			}
		}
		if gets[i] > 0 {
			needy = append(needy, i)
		}
	}
	if len(needy) == 0 {
		return shares
	}
	one := needy[int(turn/2)%len(needy)]
	kept -= floor(one)
	free, left := all-shares[one]-kept, all-gets[one]-kept // of the others, before and after
	out := make([]driver.Share, len(shares))
	for i := range shares {
		if i == one {
			out[i] = gets[i]
			continue
		}
		out[i] = floor(i) + driver.Share(float64(shares[i]-floor(i))*float64(left)/float64(max(free, 1)))
	}
	return out
}

// gather moves shares of the division to a processor that needs more. byTags says that it is one by tags.
func (p *Processor) gather(rows []driver.RosterRow, byTags bool) {
	var floors []driver.Share
	if byTags {
		floors = p.tags.floors()
	}
	own := p.split.wants[p.split.self]
	p.split.wants = gather(p.split.wants, p.draws(rows, p.split.self), floors, p.gatherTurn())
	if left := p.split.wants[p.split.self]; byTags && left < own {
		floor := floors[p.split.self]
		p.tags.lower(float64(left-floor) / float64(own-floor))
	}
}

// draws returns what the processors of the roster need for draws that wait, with that of self as last observed.
func (p *Processor) draws(rows []driver.RosterRow, self int) [][2]driver.Share {
	needs := make([][2]driver.Share, len(rows))
	for i := range rows {
		if needs[i] = p.needs; i != self {
			needs[i] = NoteIn(rows[i].Note).needs
		}
	}
	return needs
}

// gatherTurn counts the turns since the pool's clock began. A turn takes four intervals, in which the others give their shares and the one
// gets them, and as long as a full bucket takes to be earned. Processors with the same answer and limit agree on it.
func (p *Processor) gatherTurn() int64 {
	turn := 4 * wire.Interval(p.Lease, p.Answer.Live)
	if c := &p.ceiling.law.Config; c.Limit.Max > 0 && c.Granted > 0 {
		turn += min(time.Duration(float64(c.Burst)/(float64(c.Limit.Max)*c.Granted)*float64(c.Limit.Per)), 24*time.Hour)
	}
	return p.clock.time / max(turn.Microseconds(), 1)
}
