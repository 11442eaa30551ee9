package protocol

import (
	"math"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/fairtags"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// wholeSlots rounds the shares of a policy to whole slots of most, so that none is lost and their sum is as
// before. Every processor gets its full slots, and the slots that are left go to processors that could use
// one more. If there are more of these than slots, they take turns: pick says whose turn it is. So with fewer
// slots than busy processors each has a slot some of the time, instead of a part of one forever.
func wholeSlots(shares []driver.Share, rows []driver.RosterRow, most int, pick picking) []driver.Share {
	counts, overs := make([]int, len(rows)), make([]driver.Share, len(rows))
	m, left := driver.Share(most), driver.Share(0)
	var needy, content []int
	for i := range rows {
		share := min(max(shares[i], 0), driver.Whole)
		counts[i] = sharing.SlotsOf(int64(share), most)
		over := (share+1)*m - driver.Share(counts[i])*driver.Whole // it is rounded down; see sharing.ExactSlots
		overs[i] = max(over, 0)
		left += overs[i]
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
		for _, i := range pick(needy, overs, free) {
			counts[i]++
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

// inWhole returns a share without its part of a slot. No call fits into that part, and the next request gives it back, since another processor
// may lack just as much for a slot.
func (s *split) inWhole(share driver.Share) driver.Share {
	if s.slots == 0 || share >= driver.Whole {
		return share
	}
	return driver.Share(sharing.ShareOf(sharing.SlotsOf(int64(share), s.slots), s.slots))
}

// A picking picks free of the rows in needy, which are more. overs is what each row is due beyond its whole slots, in 1e-9 slots.
type picking func(needy []int, overs []driver.Share, free int) []int

// inTurn picks each row as often as the others. turn counts the turns.
func inTurn(turn int64) picking {
	return func(needy []int, _ []driver.Share, free int) []int {
		first := int(turn%int64(len(needy))) * free
		picked := make([]int, free)
		for k := range picked {
			picked[k] = needy[(first+k)%len(needy)]
		}
		return picked
	}
}

// byPart picks each row as often as what it is due says, because its tags have weights and classes. Before that come rows that have the slot
// beside others, and are due half of it: a slot that moves is lost to the tag whose call ends first.
func byPart(turn int64, shares []driver.Share, rows []driver.RosterRow, most int) picking {
	has := func(i int) bool {
		n := sharing.SlotsOf(int64(shares[i]), most)
		return n > 0 && sharing.SlotsOf(int64(rows[i].Claim), most) > n
	}
	return func(needy []int, overs []driver.Share, free int) []int {
		kept := make([]driver.Share, len(overs))
		holders := 0
		for _, i := range needy {
			if overs[i] >= driver.Whole/2 && has(i) {
				kept[i] = overs[i]
				holders++
			}
		}
		picked := spread(nil, needy, kept, min(holders, free), turn)
		return spread(picked, needy, overs, free-len(picked), turn)
	}
}

// golden is the golden ratio times 2^64: its multiples lie far apart, modulo 2^64.
const golden = 0x9e3779b97f4a7c15

// spread adds n rows to those picked. The rows lie side by side on a line, each as long as its part, and points at equal distances pick them.
// Where the first point lies changes with the turn, so that each row is picked as often as its part says.
func spread(picked, rows []int, parts []driver.Share, n int, turn int64) []int {
	rows = slices.DeleteFunc(slices.Clone(rows), func(i int) bool { return parts[i] == 0 || slices.Contains(picked, i) })
	sum := 0.0
	for _, i := range rows {
		sum += float64(parts[i])
	}
	step, end := sum/float64(n), 0.0
	at := step * float64(uint64(turn+1)*golden) / (1 << 64)
	var others []int // picked if points fall onto the same row
	for _, i := range rows {
		if end += float64(parts[i]); at >= end {
			others = append(others, i)
			continue
		}
		picked = append(picked, i)
		for n--; at < end; {
			at += step
		}
	}
	return append(picked, others[:min(max(n, 0), len(others))]...)
}

// turn counts the leases since the pool's clock began: processors with the same answer agree on it.
func (c *core) turn() int64 { return c.clock.time / max(c.Lease.Microseconds(), 1) }

// slotless reports whether the store answers and has no slot for this processor at present.
func (p *Processor) slotless(now time.Duration) bool {
	return p.split.slots > 0 && p.state == StateHolding && p.held == 0 && p.until > now && p.frozen <= now
}

// guaranteedSlots writes into a grant what the plan guarantees a tag in whole slots.
func (p *tagPolicy) guaranteedSlots(key uint64, out *sharing.TagSlotGrant) {
	for _, w := range p.whole {
		if w.key == key {
			out.Reserved, out.ReservedElsewhere, out.First = w.here, w.elsewhere, w.first
		}
	}
}

// A wholePart counts the slots reserved for a tag at this processor (here) and at all others (elsewhere). first is how many of its calls may come
// first here: one for each slot here, and one for each that no other processor uses.
type wholePart struct {
	key                    uint64
	here, elsewhere, first float64
}

// reserveWhole divides the slots that are reserved for each tag in whole ones. It returns the plan's shares with these in place of the parts of
// slots that the plan guarantees, but raises no share above what its row can use: such a slot would stay free.
func (p *tagPolicy) reserveWhole(shares []driver.Share, roster []driver.RosterRow, most float64, self int, turn int64) []driver.Share {
	rows, uses, whole := p.planRows, p.uses, make([]float64, len(shares))
	p.whole = nil
	for _, t := range p.terms {
		if t.Reserved == 0 {
			continue
		}
		w := wholePart{key: t.Key}
		for i, n := range wholeParts(t, p.plan.Scale, rows, uses, turn) {
			w.first += n
			whole[i] += n
			if i == self {
				w.here = n
			} else {
				w.elsewhere += n
			}
		}
		w.first = max(w.first-usedElsewhere(t.Key, rows, uses, self), w.here)
		p.whole = append(p.whole, w)
	}
	parts, sum := 0.0, 0.0
	for i := range shares {
		if !rows[i].Silent {
			parts, sum = parts+p.plan.Guaranteed[i], sum+whole[i]
		}
	}
	out, asks := slices.Clone(shares), p.asks(roster, most)
	over := driver.Share(0) // demand
	for i := range out {
		if parts == 0 || rows[i].Silent {
			continue
		}
		// If rounding leaves some of the reserved slots, they stay in the shares of the plan.
		more := shareOf(whole[i], most) - shareOf(p.plan.Guaranteed[i]*min(sum/parts, 1), most)
		gets := min(more, max(asks[i]-out[i], 0))
		out[i] += gets
		over += more - gets
	}
	for i := range out { // the rows that have lost it get it back
		back := min(over, max(shares[i]-out[i], 0))
		out[i] += back
		over -= back
	}
	return out
}

// asks returns the demand of each row, without slots that a tag waits for and others hold of its total: the row can't use them.
func (p *tagPolicy) asks(roster []driver.RosterRow, most float64) []driver.Share {
	out := make([]driver.Share, len(roster))
	for i := range roster {
		asks := p.planRows[i].Rest
		for _, b := range p.planRows[i].Busy {
			asks += b.Rate
		}
		out[i] = min(roster[i].Demand, shareOf(asks, most))
	}
	return out
}

// usedElsewhere returns how many slots of a tag are in use at other live processors.
func usedElsewhere(key uint64, rows []fairtags.Row, uses [][]float64, self int) (sum float64) {
	for i := range rows {
		for k, b := range rows[i].Busy {
			if b.Key == key && i != self && !rows[i].Silent {
				sum += math.Round(uses[i][k])
			}
		}
	}
	return sum
}

// wholeParts divides the slots reserved for a tag among the rows, in whole ones. The parts are by demand, and rounded down. The slots that this
// leaves go to rows that use one more already, then to others that lack one. If these are too many, they take turns.
func wholeParts(t fairtags.Terms, scale float64, rows []fairtags.Row, uses [][]float64, turn int64) map[int]float64 {
	type part struct {
		row         int
		rate, lacks float64
		more        bool // it uses one more
	}
	var parts []part
	sum := 0.0
	for i := range rows {
		for k, b := range rows[i].Busy {
			if b.Key == t.Key && b.Rate > 0 && !rows[i].Silent {
				parts = append(parts, part{row: i, rate: b.Rate, lacks: uses[i][k]})
				sum += b.Rate
			}
		}
	}
	const rounding = 0.01 // of demands in reports
	all := math.Floor(min(t.Reserved, sum)*scale + rounding)
	left, out := all, map[int]float64{}
	for i := range parts {
		q := &parts[i]
		due := all * q.rate / max(sum, all)
		n := math.Floor(due + rounding)
		q.more, q.lacks = q.lacks > n+0.5, due-n
		out[q.row] = n
		left -= n
	}
	var lacking, using []int
	lacks := make([]driver.Share, len(rows))
	for _, q := range parts {
		if q.lacks <= rounding {
			continue
		}
		lacking, lacks[q.row] = append(lacking, q.row), driver.Share(q.lacks*float64(driver.Whole))
		if q.more {
			using = append(using, q.row)
		}
	}
	turn += int64(t.Key)
	picked := spread(nil, using, lacks, min(int(left), len(using)), turn)
	for _, row := range spread(picked, lacking, lacks, min(int(left), len(lacking))-len(picked), turn) {
		out[row]++
	}
	return out
}
