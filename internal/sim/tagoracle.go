package sim

import (
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// tagState is the checks' view of the tags of a run.
type tagState struct {
	gushing bool
	used    []windows // of each tag, by true time
	largest []int64   // largest reservation of each
	// interval is the longest possible sync interval, and lease the longest of a pool. stretch is how much longer than its clock shows a
	// batch of tokens drawn ahead was valid: its machine was suspended too briefly for the watchdog.
	interval, lease, stretch time.Duration
	steps                    []time.Duration // small ones of the store's clock, forward
	clones                   []tagClone
	budgets                  map[int64]*tagBudget // by the start of the window, on the store's clock
}

// A tagClone holds the copied tokens of a clone.
type tagClone struct {
	at     time.Duration
	tokens []int64
}

// A tagBudget is the state of one budget window.
type tagBudget struct {
	used, spent int64         // by callers, and on record after the last step that named it
	at          time.Duration // of that step
	excused     int64         // how much use above the amount is accepted
	reported    int64         // the most that a request reported that was recorded while tag buckets were held
	// over means that the store's clock has since been so far beyond the window that the tag bucket (the store's record of a tag) may have lost
	// it.
	over bool
}

// forgetTags notes that the store loses its state of the tags.
func (w *world) forgetTags() {
	for _, b := range w.tags.budgets {
		b.reported = 0
	}
}

// driverInterval is the time between two syncs, as far as a process knows.
func driverInterval(p *process) time.Duration { return wire.Interval(p.lease, 1) }

func (w *world) prepareOracle() {
	t := w.plan.tags
	if t == nil {
		return
	}
	s := &w.tags
	s.used, s.largest = make([]windows, len(t.names)), make([]int64, len(t.names))
	s.budgets = map[int64]*tagBudget{}
	// An hour of Unix time ends at 2,800 s after the store's zero.
	w.store.epoch += (2800*time.Second - t.wall).Microseconds()
	w.gush()
}

// noteCloned notes that a process's tokens, and an answer under way, exist twice.
func (w *world) noteCloned(p *process) {
	if p.hands == nil {
		return
	}
	c := tagClone{at: w.now}
	for i := 1; i < len(p.hands); i++ {
		n := w.oneDraw(i - 1)
		for _, l := range p.hands[i].batches {
			n += l.Tokens
		}
		c.tokens = append(c.tokens, n)
		w.counters.TagClones++
	}
	w.tags.clones = append(w.tags.clones, c)
	for _, b := range w.tags.budgets {
		b.excused += c.tokens[0]
	}
}

// oneDraw bounds the tokens of one draw.
func (w *world) oneDraw(i int) int64 {
	total, burst := w.total(i)
	return int64(total*w.tags.interval.Seconds()) + burst + w.tags.largest[i] + 1
}

// total returns a tag's total in tokens per second, and its burst.
func (w *world) total(i int) (total float64, burst int64) {
	q := w.plan.tags.quotas.Tags[w.plan.tags.names[i]]
	return float64(q.Total) / q.Per.Seconds(), int64(q.Burst)
}

// usedOfTag checks Q1 and Q7 when callers use tokens of a batch.
func (w *world) usedOfTag(p *process, i int, l *tagBatch, n int64) {
	s := &w.tags
	w.counters.TagUsed += uint64(n)
	s.stretch = max(s.stretch, p.lag-l.lag)
	s.used[i].add(w.now, n)
	for k := 1; k < len(windowLengths); k++ {
		w.checkTagWindow(i, k)
	}
	if l.start == 0 || i != 0 || w.plan.tags.budget == "" {
		return
	}
	b := w.budgetOf(l.start)
	b.used += n
	amount := w.plan.tags.quotas.Tags[w.plan.tags.budget].Budgets[0].Amount
	if b.used >= amount {
		w.counters.TagSpent++
	}
	if b.used > amount+b.excused {
		w.violatef(CheckTagBudget, "%d tokens of %s are used in the hour from %d, the budget is %d, and %d are excused",
			b.used, w.plan.tags.budget, l.start, amount, b.excused)
	}
}

func (w *world) budgetOf(start int64) *tagBudget {
	b := w.tags.budgets[start]
	if b == nil {
		b = &tagBudget{}
		w.tags.budgets[start] = b
	}
	return b
}

// checkTagWindow checks the window of one length that ends now: total x (W + V + h) + burst + the largest reservation. W and V are in true
// time. They are extended as far as the fastest clock of a store and the slowest of a processor allow.
func (w *world) checkTagWindow(i, k int) {
	s := &w.tags
	used := float64(s.used[i].sum(k))
	total, burst := w.total(i)
	fast, good := 1.0, 2*s.interval
	if w.plan.rates != ratesExact {
		fast, good = 1+maxDrift/1e6, slowest(good)
	}
	good += s.stretch
	since := w.now - windowLengths[k] - good
	span := fast*(windowLengths[k]+good).Seconds() + s.interval.Seconds()
	if w.store.kind == storeDeferred {
		span += wire.Clamp(s.lease).Seconds() // its logical clock is one step old
	}
	for _, at := range s.steps {
		if at >= since-2*good {
			span += wire.Clamp(s.lease).Seconds()
		}
	}
	allowed := total*span + float64(burst+s.largest[i])
	for _, c := range s.clones {
		if c.at >= since-2*good {
			allowed += float64(c.tokens[i])
		}
	}
	if r := used / allowed; r > w.counters.Tags[k].Ratio {
		w.counters.Tags[k] = Window{Ratio: r, Used: used, Allowed: allowed}
	}
	if used > allowed {
		w.violatef(CheckTagTotal, "%v tokens of %s within %v, allowed are %.6g (total %.6g per second, burst %d, largest reservation %d, interval %v)",
			used, w.plan.tags.names[i], windowLengths[k], allowed, total, burst, s.largest[i], s.interval)
	}
}

// keptWindow is how long a tag bucket keeps a window after its end, and knownWindows how many of them it keeps: see driver.TagBucket.
const (
	keptWindow   = 10 * time.Minute
	knownWindows = 2 * wire.MaxBudgets
)

// noteTags records the tokens that a step of the store granted.
func (w *world) noteTags(m *message) {
	if w.plan.tags == nil {
		return
	}
	s, r := &w.tags, &w.store.rec
	s.lease = max(s.lease, r.Lease)
	s.interval = max(s.interval, wire.Interval(r.Lease, len(r.Rows)))
	for start, b := range s.budgets {
		b.over = b.over || r.Wall >= start+(time.Hour+keptWindow).Microseconds() || len(s.budgets) >= knownWindows
	}
	for k := range m.ans.Draws {
		d := &m.ans.Draws[k]
		i := slices.IndexFunc(w.plan.tags.names, func(name string) bool { return tagname.Key(name) == d.Key })
		at := slices.IndexFunc(m.req.Draws, func(r driver.Draw) bool { return r.Key == d.Key })
		if i < 0 || at < 0 {
			continue
		}
		if d.From > 0 {
			s.largest[i] = max(s.largest[i], d.Tokens)
		}
		if req := &m.req.Draws[at]; len(req.Budgets) > 0 {
			w.noteBudget(req, d)
		}
	}
}

// noteBudget compares the recorded spending of a window with the previous one. Only a store that lost its state knows less, and then at
// least the spending reported while tag buckets were held.
func (w *world) noteBudget(req *driver.Draw, d *driver.Drawn) {
	b := w.budgetOf(req.Budgets[0].Start)
	b.excused += req.Owed
	if w.trace != nil {
		w.tracef("budget: %+v gives %+v, record wall %d, lost %v", req, d, w.store.rec.Wall, w.store.lost)
	}
	if d.Lack == driver.LackFrozen {
		if now := w.store.rec.Wall; now >= req.Budgets[0].Start && now < req.Budgets[0].End {
			b.reported = max(b.reported, req.Budgets[0].Seen)
		}
		b.spent = max(0, b.spent-req.Back)
		return
	}
	if d.Lack == driver.LackWindow {
		b.spent = max(0, b.spent-req.Back) // which may have been counted nevertheless
		return
	}
	known := d.Spent[0] - d.Tokens - req.Owed
	if b.over {
		b.reported = 0
	}
	if known < b.reported-req.Back {
		w.violatef(CheckTagBudget, "%d tokens of %s are spent on record, and %d were told after the store had forgotten", known, w.plan.tags.budget, b.reported)
	}
	if gap := b.spent - known - req.Back; gap > 0 {
		if w.store.lost < b.at && !b.over {
			w.violatef(CheckTagBudget, "%d tokens of %s were spent on record, and %d are", b.spent, w.plan.tags.budget, known)
		}
		b.excused += gap
	}
	b.spent, b.at, b.reported, b.over = d.Spent[0], w.now, 0, false
}

// noteTagStarts records the budget windows of the batches of an answer.
func (p *process) noteTagStarts(m *message) {
	for k := range m.ans.Draws {
		drawn := &m.ans.Draws[k]
		at := slices.IndexFunc(m.req.Draws, func(d driver.Draw) bool { return d.Key == drawn.Key })
		i := slices.IndexFunc(p.hands, func(h tagHand) bool { return tagname.Key(h.Tag) == drawn.Key })
		if at < 0 || i < 0 || len(m.req.Draws[at].Budgets) == 0 {
			continue
		}
		h := &p.hands[i]
		h.start, h.fresh = m.req.Draws[at].Budgets[0].Start, 0
		if drawn.From > 0 {
			h.reserved = append(h.reserved, tagReservation{drawn.Tokens, h.start})
		} else {
			h.fresh = drawn.Tokens
		}
	}
}
