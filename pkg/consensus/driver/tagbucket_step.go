package driver

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// A granter serves the draws of one request.
type granter struct {
	*step
	req *Request
	// lead is how far ahead of the logical clock tokens are given out, in microseconds: a sync interval.
	lead int64
	// held says that nothing is given; until hold, on the logical clock, nothing had been earned.
	held bool
	hold int64
	// back says that what the sender gives back counts.
	back bool
	// swept is how many sweeps of the tag buckets of names this request has caused: at most 2.
	swept int
}

// granter returns the granter for the draws of a request. With newest, the newest request on record before this one is the one whose answer
// the sender took last. With forgot, the store has forgotten something.
//
// The lead is the same on a Deferred store, though its clock is that of the step before. The next step makes up for the time that this one
// does not know. The clock and Paid both lag, so tokens come later than they could, by one step, and at the same rate. A longer lead would
// only let more of them pile up.
func (st *step) granter(req *Request, newest, forgot bool) *granter {
	r := st.rec
	t := &granter{step: st, req: req, lead: micros(wire.Interval(r.Lease, len(r.Rows)))}
	if r.FrozenUntil > 0 {
		t.hold = r.FrozenUntil - st.freezeTime() + st.holdTime()
	}
	t.held = st.rec.FreezeUnstamped || t.hold > st.clock
	remembered := !forgot && !t.held && req.LastTime >= t.hold
	t.back = newest && remembered
	return t
}

// holdTime returns how long after the beginning of a freeze nothing is given, in microseconds. It is 1.19 times as long as a draw is good,
// because clocks may run apart by 8.33 % either way. By then all earlier draws are void. The interval is the longest possible if nothing is
// known of the pool before. Else it is that of twice as many processors as are on record, because some may have been forgotten.
func (st *step) holdTime() int64 {
	n := 2 * len(st.rec.Rows)
	if by := st.rec.FrozenBy; by == FreezeNewRecord || by == FreezeRollback {
		n = manyRows
	}
	return 2 * micros(wire.Interval(st.longest, n)) * 119 / 100
}

// manyRows is so many processors that the interval is as long as it can be.
const manyRows = 1_000_000

// serve serves all draws of the request.
func (t *granter) serve() []Drawn {
	if len(t.req.Draws) == 0 {
		return nil
	}
	t.rec.TagBuckets, t.rec.Names = slices.Clone(t.rec.TagBuckets), t.rec.Names.Clone() // copies of the record share them
	drawn := make([]Drawn, len(t.req.Draws))
	for i := range drawn {
		drawn[i] = t.draw(&t.req.Draws[i])
	}
	return drawn
}

// draw serves one draw. Owed tokens count in any case, tokens given back only if they are known to be no repetition.
func (t *granter) draw(d *Draw) Drawn {
	out := Drawn{Key: d.Key}
	if len(d.Budgets) > 0 {
		out.Spent = make([]int64, len(d.Budgets))
	}
	tagBucket := t.tagBucket(d.Key, d.Pattern)
	if tagBucket == nil {
		out.Lack = LackFull
		return out
	}
	older := d.Version < tagBucket.Version
	t.settleTagBucket(tagBucket, d, older)
	open := t.windows(tagBucket, d)
	switch {
	case t.held:
		out.Lack, out.Again = LackFrozen, again(float64(max(t.hold-t.clock, 1)))
	case older:
		out.Lack = LackVersion
	case !open:
		out.Lack = LackWindow
	default:
		t.give(tagBucket, d, &out)
	}
	if tagBucket.Full = max(tagBucket.Full, tagBucket.Paid); !older {
		tagBucket.Full = min(tagBucket.Paid+span(d.cost(d.Burst)), wire.MaxMicros)
	}
	out.Paid = tagBucket.Paid
	for i := range d.Budgets {
		if w, ok := tagBucket.window(d.Budgets[i].Start); ok {
			out.Spent[i] = tagBucket.Spent[w].Tokens
		}
	}
	return out
}

// tagBucket returns the tag bucket of a key, made if need be; nil if there is no room. One that goes by a pattern gets none of the places of the
// others, and a copy of it moves there once its quota is by its name. A full table drops the one that has been full for longest and has no
// budget window that lasts.
func (t *granter) tagBucket(key uint64, pattern bool) *TagBucket {
	r := t.rec
	i, ok := findTagBucket(r.TagBuckets, key)
	if ok {
		return &r.TagBuckets[i]
	}
	k, named := findTagBucket(r.Names.TagBuckets, key)
	switch {
	case pattern && named:
		return &r.Names.TagBuckets[k]
	case pattern:
		return t.name(key)
	}
	if len(r.TagBuckets) >= wire.MaxTagBuckets {
		old := t.dispensable()
		if old < 0 {
			return nil
		}
		r.TagBuckets = slices.Delete(r.TagBuckets, old, old+1)
		if old < i {
			i--
		}
	}
	tagBucket := TagBucket{Key: key, Paid: t.clock, Full: t.clock}
	if named {
		tagBucket = r.Names.TagBuckets[k] // the one left there is not read any more
	}
	r.TagBuckets = slices.Insert(r.TagBuckets, i, tagBucket)
	return &r.TagBuckets[i]
}

// dispensable returns the place of the tag bucket that is worth least, -1 for none. A new one under the same key would give no more, and its
// budget windows, if any, are over. The request does not draw from it.
func (t *granter) dispensable() int {
	best := -1
	for i := range t.rec.TagBuckets {
		tagBucket := &t.rec.TagBuckets[i]
		if tagBucket.Full > t.clock || best >= 0 && tagBucket.Full >= t.rec.TagBuckets[best].Full ||
			slices.ContainsFunc(tagBucket.Spent, func(s Spent) bool { return s.End > t.at.Now }) ||
			slices.ContainsFunc(t.req.Draws, func(d Draw) bool { return d.Key == tagBucket.Key }) {
			continue
		}
		best = i
	}
	return best
}

// settleTagBucket brings a tag bucket up to date before it gives anything.
func (t *granter) settleTagBucket(tagBucket *TagBucket, d *Draw, older bool) {
	paid := max(tagBucket.Paid+span(d.cost(d.Owed)), t.hold)
	if !older {
		tagBucket.Version = d.Version
		paid = max(paid, t.clock-span(d.cost(d.Burst)))
	}
	tagBucket.Paid = max(0, min(paid, t.clock+maxLead, wire.MaxMicros))
}

// give gives as much as the total and the budgets allow. A draw that may wait gets all or nothing: pods that each hold a part of a call's
// cost would serve none.
func (t *granter) give(tagBucket *TagBucket, d *Draw, out *Drawn) {
	rest, end := tagBucket.rest(d)
	n := d.earned(t.clock + t.lead - tagBucket.Paid)
	asked := d.cost(d.Ask)
	if n < d.Ask && d.Ahead > 0 {
		from := float64(tagBucket.Paid-t.clock) + asked
		if late := from - float64(micros(d.Ahead)); late > 0 {
			out.Lack, out.Again = LackTotal, again(late)
			return
		}
		n, out.From = d.Ask, time.Duration(from)*time.Microsecond
	}
	out.Tokens = min(n, max(rest, 0))
	if d.Ahead > 0 && out.Tokens < d.Ask {
		out.Tokens, out.From = 0, 0
	}
	tagBucket.Paid = min(tagBucket.Paid+span(d.cost(out.Tokens)), wire.MaxMicros)
	tagBucket.spend(d, out.Tokens)
	switch {
	case out.Tokens == d.Ask:
	case rest <= n:
		out.Lack, out.Again = LackBudget, again(float64(end-t.at.Now))
	default:
		out.Lack, out.Again = LackTotal, again(float64(tagBucket.Paid-t.clock-t.lead)+d.cost(1))
	}
}

// again returns a time in microseconds as a Duration, at least one.
func again(us float64) time.Duration {
	return time.Duration(max(span(us), 1)) * time.Microsecond
}

// windows finds the budget windows of a draw on record, and makes those that have begun. It reports whether the store's clock is in all of
// them. Amounts seen by processors count while the store may have forgotten its answers, and for windows that it does not know.
func (t *granter) windows(tagBucket *TagBucket, d *Draw) (open bool) {
	open = true
	spent := slices.Clone(tagBucket.Spent)
	tagBucket.Spent = slices.DeleteFunc(spent, func(s Spent) bool { return s.End+keepWindow <= t.at.Now && !d.names(s.Start) })
	for i := range d.Budgets {
		b := &d.Budgets[i]
		now := t.at.Now >= b.Start && t.at.Now < b.End
		open = open && now
		w, ok := tagBucket.window(b.Start)
		switch {
		case ok:
			s := &tagBucket.Spent[w]
			s.End = max(s.End, b.End)
			if t.held {
				s.Tokens = max(s.Tokens, b.Seen)
			}
		case now:
			seen := b.Seen
			if d.Pattern {
				seen = max(seen, t.least(spentCells(tagBucket.Key, b.Start)))
			}
			tagBucket.Spent = slices.Insert(tagBucket.Spent, w, Spent{b.Start, b.End, seen})
		}
	}
	tagBucket.bound(d)
	used := d.Owed
	if t.back {
		used -= d.Back
	}
	tagBucket.spend(d, used)
	if len(tagBucket.Spent) == 0 {
		tagBucket.Spent = nil
	}
	return open
}

// bound drops the oldest windows that a draw does not name while there are too many.
func (tagBucket *TagBucket) bound(d *Draw) {
	for i := 0; len(tagBucket.Spent) > maxWindows; {
		if d.names(tagBucket.Spent[i].Start) {
			i++
			continue
		}
		tagBucket.Spent = slices.Delete(tagBucket.Spent, i, i+1)
	}
}

// spend adds tokens to the windows that a draw names, to each once.
func (tagBucket *TagBucket) spend(d *Draw, n int64) {
	for i := range tagBucket.Spent {
		if s := &tagBucket.Spent[i]; d.names(s.Start) {
			s.Tokens = max(0, min(s.Tokens+n, maxSpent))
		}
	}
}

// rest returns the least amount left in the budgets of a draw, and the end of that window.
func (tagBucket *TagBucket) rest(d *Draw) (rest, end int64) {
	rest = math.MaxInt64
	for i := range d.Budgets {
		b := &d.Budgets[i]
		w, _ := tagBucket.window(b.Start)
		if left := b.Amount - tagBucket.Spent[w].Tokens; left < rest {
			rest, end = left, b.End
		}
	}
	return rest, end
}

// window returns the place of the window that begins at start, or where it belongs.
func (tagBucket *TagBucket) window(start int64) (int, bool) {
	for i := range tagBucket.Spent {
		if s := tagBucket.Spent[i].Start; s >= start {
			return i, s == start
		}
	}
	return len(tagBucket.Spent), false
}

// names reports whether a draw names a window that begins at start.
func (d *Draw) names(start int64) bool {
	return slices.ContainsFunc(d.Budgets, func(b BudgetDraw) bool { return b.Start == start })
}

// time returns how many microseconds n tokens take to be earned, 0 without a total: in doubles, in this order, because a store may count in
// doubles.
func (d *Draw) time(n int64) float64 {
	if d.Total == 0 {
		return 0
	}
	return float64(float64(n)*float64(micros(d.Per))) / float64(d.Total)
}

// cost is the price of n tokens in microseconds, rounded up.
func (d *Draw) cost(n int64) float64 { return math.Ceil(d.time(n)) }

// earned returns how many of the tokens asked for cost at most so many microseconds.
func (d *Draw) earned(room int64) int64 {
	if d.Total == 0 {
		return d.Ask
	}
	room = max(room, 0)
	most := math.Floor(float64(float64(room)*float64(d.Total)) / float64(micros(d.Per)))
	n := int64(min(most, float64(d.Ask)))
	for d.cost(n) > float64(room) {
		n-- // once at the most
	}
	return n
}

// maxLead is further ahead than anything can be given out, in microseconds: it keeps sums in bounds.
const maxLead = int64(wire.MaxReach / time.Microsecond)

// span is a time in microseconds as a number that can be added to others.
func span(us float64) int64 { return int64(min(us, float64(maxLead))) }

// findTagBucket returns the index of the tag bucket with a key, or where it belongs.
func findTagBucket(tagBuckets []TagBucket, key uint64) (int, bool) {
	return slices.BinarySearchFunc(tagBuckets, key, func(t TagBucket, key uint64) int { return cmp.Compare(t.Key, key) })
}
