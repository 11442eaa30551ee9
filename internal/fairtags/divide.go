package fairtags

import (
	"cmp"
	"math"
	"slices"
)

// classMinimum is the part of the limit that each lower class keeps while it asks for tokens, on top of its tags' reservations.
const classMinimum = 0.05

// idleFloor is the part of the limit that all rows together keep for a first call, as far as it is not guaranteed to tags. So a row without
// demand has tokens at once, and not only after it has reported that call.
const idleFloor = 1.0 / 200

// near is one but for rounding: a value above this part of a bound has reached it.
const near = 1 - 1e-9

// Divide divides limit, in tokens per second, first among tags and then among the processors of rows. The argument self is the index of the
// processor that asks, for Plan.Own. If it is no index of rows, there is no Own.
//
// A value that cannot be a rate, such as NaN, counts as 0, and a weight that is not above 0 as 1. A key that tags does not have counts as
// 0, that of all other tags. When tags does not have 0 either, those have weight 1, class 0 and nothing reserved.
//
// The plan does not depend on the order of Busy and of tags, but for rounding. It never gives out more than limit, be it by Wants or by
// Targets. Divide neither keeps nor changes its arguments, so it may be called from several goroutines at once.
func Divide(limit float64, tags []Terms, rows []Row, self int) Plan {
	d := newDivision(limit, tags, rows)
	d.demands()
	d.guarantee()
	d.keepFloors()
	d.share()
	plan := Plan{Wants: d.wants(), Guaranteed: d.guaranteed(), Targets: d.targets(len(tags)), Own: make([]float64, len(tags)), Scale: d.scale}
	if self >= 0 && self < len(rows) {
		d.own(&plan, self)
	}
	return plan
}

// A division is one call of Divide. The tags are the caller's, then all other tags together if it does not name them, then the reservations
// of tags that did not fit into Busy.
type division struct {
	limit, room float64 // room is the limit without what silent rows have claimed
	scale       float64
	rows        []Row
	floors      []float64 // kept for idle rows, beyond their demand
	tags        []tag
	index       map[uint64]int
	other, rest int
}

// A tag is a division's work on one tag.
type tag struct {
	Terms
	demand float64 // of all live rows
	parts  []part  // the same by row
	// lo is the guarantee, hi the most usable, x the result: lo <= x <= hi.
	lo, hi, x float64
}

// A part is the demand of one row.
type part struct {
	row  int
	rate float64
}

func newDivision(limit float64, terms []Terms, rows []Row) *division {
	d := &division{limit: rate(limit), rows: rows, index: make(map[uint64]int, len(terms))}
	d.tags = make([]tag, len(terms), len(terms)+2)
	for i, t := range terms {
		d.tags[i].Terms = clean(t)
		if _, twice := d.index[t.Key]; !twice {
			d.index[t.Key] = i
		}
	}
	other, named := d.index[0]
	if !named {
		other = d.add(Terms{Total: math.Inf(1), Limiting: math.Inf(1), Weight: 1})
		d.index[0] = other
	}
	d.other = other
	d.rest = d.add(Terms{Reserved: most, Total: most, Limiting: most, Weight: 1})
	d.room = d.limit
	for _, r := range rows {
		if r.Silent {
			d.room -= rate(r.Claim)
		}
	}
	d.room = max(d.room, 0)
	return d
}

func (d *division) add(t Terms) int {
	d.tags = append(d.tags, tag{Terms: t})
	return len(d.tags) - 1
}

// find returns the index of a key, or that of all other tags for an unknown key.
func (d *division) find(key uint64) int {
	i, known := d.index[key]
	if known {
		return i
	}
	return d.other
}

// demands adds up the demands of the live rows.
func (d *division) demands() {
	for r, row := range d.rows {
		if row.Silent {
			continue
		}
		for _, b := range row.Busy {
			d.ask(d.find(b.Key), r, rate(b.Rate))
		}
		reserved := min(rate(row.RestReserved), rate(row.Rest))
		d.ask(d.rest, r, reserved)
		d.ask(d.other, r, rate(row.Rest)-reserved)
	}
}

// ask adds to the demand of a tag at a row. Rows come one after the other.
func (d *division) ask(i, row int, more float64) {
	if more == 0 {
		return
	}
	t := &d.tags[i]
	t.demand += more
	if last := len(t.parts) - 1; last >= 0 && t.parts[last].row == row {
		t.parts[last].rate += more
		return
	}
	t.parts = append(t.parts, part{row, more})
}

// guarantee computes each tag's guarantee and the most that it can use. Reservations beat the called service's limit for the tag, but not
// the pool's limit: then everything is scaled down alike.
func (d *division) guarantee() {
	sum := 0.0
	for i := range d.tags {
		t := &d.tags[i]
		t.lo = min(t.demand, t.Reserved, t.Total)
		t.hi = max(t.lo, min(t.demand, t.Total, t.Limiting))
		sum += t.lo
	}
	d.scale = 1
	if sum <= d.room {
		return
	}
	d.scale = d.room / sum
	for i := range d.tags {
		d.tags[i].lo *= d.scale
	}
}

// keepFloors takes the floors of idle rows out of the room that is not guaranteed.
func (d *division) keepFloors() {
	live, demands := 0, make([]float64, len(d.rows))
	left := d.room
	for i := range d.tags {
		left -= d.tags[i].lo
		for _, p := range d.tags[i].parts {
			demands[p.row] += p.rate
		}
	}
	for _, r := range d.rows {
		if !r.Silent {
			live++
		}
	}
	asked := make([]float64, len(d.rows))
	for i, r := range d.rows {
		if !r.Silent {
			asked[i] = max(d.limit*idleFloor/float64(live)-demands[i], 0)
		}
	}
	d.floors = make([]float64, len(d.rows))
	d.room -= give(d.floors, asked, left)
}

// share gives the room to the classes, the first one first. Each lower one keeps a twentieth of the room for demand that is not guaranteed.
// All lower ones together keep at most half of the room that is not guaranteed, so that they never starve the first.
func (d *division) share() {
	classes := d.byClass()
	left := d.room
	for _, t := range d.tags {
		left -= t.lo
	}
	left = max(left, 0)
	keep, kept := make([]float64, len(classes)), 0.0
	for c, members := range classes {
		if c == 0 {
			continue
		}
		for _, i := range members {
			keep[c] += d.tags[i].hi - d.tags[i].lo
		}
		keep[c] = min(keep[c], classMinimum*d.room)
		kept += keep[c]
	}
	if kept > left/2 {
		for c := range keep {
			keep[c] *= left / 2 / kept
		}
		kept = left / 2
	}
	for c, members := range classes {
		kept -= keep[c]
		left -= d.fill(members, max(left-kept, 0))
	}
}

// byClass returns the indices of the tags of each class that asks for something, the first class first.
func (d *division) byClass() [][]int {
	var order []int
	for i := range d.tags {
		if d.tags[i].demand > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(d.tags[a].Class, d.tags[b].Class) })
	var classes [][]int
	for from, i := range order {
		if from == 0 || d.tags[i].Class != d.tags[order[from-1]].Class {
			classes = append(classes, nil)
		}
		classes[len(classes)-1] = append(classes[len(classes)-1], i)
	}
	return classes
}

// fill divides the members' guarantees, plus extra, by weighted max-min, and returns how much of extra it gave out.
func (d *division) fill(members []int, extra float64) float64 {
	spans := make([]span, len(members))
	for j, i := range members {
		spans[j] = span{lo: d.tags[i].lo, hi: d.tags[i].hi, weight: d.tags[i].Weight}
		extra += spans[j].lo
	}
	at := level(spans, extra)
	given := 0.0
	for j, i := range members {
		d.tags[i].x = spans[j].at(at)
		given += d.tags[i].x - d.tags[i].lo
	}
	return given
}

// wants adds up each row's parts of all tags, and an equal part of the unwanted rest.
func (d *division) wants() []float64 {
	wants := make([]float64, len(d.rows))
	spare := d.room
	for i := range d.tags {
		t := &d.tags[i]
		spare -= t.x
		at := t.level(t.x)
		for _, p := range t.parts {
			wants[p.row] += min(p.rate, at)
		}
	}
	live, claimed := 0, 0.0
	for _, r := range d.rows {
		if r.Silent {
			claimed += rate(r.Claim)
		} else {
			live++
		}
	}
	for i, r := range d.rows {
		switch {
		case !r.Silent:
			wants[i] += d.floors[i] + max(spare, 0)/float64(live)
		case claimed > d.limit:
			wants[i] = rate(r.Claim) * (d.limit / claimed)
		default:
			wants[i] = rate(r.Claim)
		}
	}
	return wants
}

// guaranteed adds up each row's parts of all guarantees. That of a silent one is its claim.
func (d *division) guaranteed() []float64 {
	sums := make([]float64, len(d.rows))
	for i := range d.tags {
		t := &d.tags[i]
		if t.lo == 0 {
			continue
		}
		at := t.level(t.lo)
		for _, p := range t.parts {
			sums[p.row] += min(p.rate, at)
		}
	}
	for i, r := range d.rows {
		if r.Silent {
			sums[i] = rate(r.Claim)
		}
	}
	return sums
}

// level returns the most that each row gets of the tag when it gets sum in all.
func (t *tag) level(sum float64) float64 {
	if sum >= t.demand {
		return math.Inf(1)
	}
	if len(t.parts) == 1 {
		return sum
	}
	spans := make([]span, len(t.parts))
	for i, p := range t.parts {
		spans[i] = span{hi: p.rate, weight: 1}
	}
	return level(spans, sum)
}

// targets returns the results of the first n tags, with the reasons why they are not higher.
func (d *division) targets(n int) []Target {
	first := math.MaxInt // the first class of those that get more than their guarantees
	for _, t := range d.tags {
		if t.x > t.lo {
			first = min(first, t.Class)
		}
	}
	targets := make([]Target, n)
	for i := range targets {
		t := &d.tags[i]
		targets[i] = Target{Demand: t.demand, Rate: t.x, By: d.by(t, first < t.Class)}
		targets[i].Bound = min(max(min(t.Reserved, t.Total), min(t.Total, t.Limiting)), d.limit)
	}
	return targets
}

// by names the bound that holds a tag at its rate. after says that an earlier class gets more than its guarantees.
func (d *division) by(t *tag, after bool) string {
	switch {
	case t.x >= t.demand*near && t.demand >= t.Limiting*near && t.demand > 0:
		return ByLimiting // who is limited asks for no more than that
	case t.x >= t.demand*near:
		return ByDemand
	case t.x >= t.Total*near:
		return ByTotal
	case t.Reserved <= t.Limiting && t.x >= t.Limiting*near:
		return ByLimiting
	case d.scale == 1 && t.Reserved > 0 && t.x <= t.lo:
		return ByReserved
	case after:
		return ByClass
	default:
		return ByLimit
	}
}
