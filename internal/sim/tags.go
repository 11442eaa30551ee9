package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// FirstTagged is the first of the seeds whose runs have tags with quotas. They are other seeds than those without, for
// what tags ask for decides about shares, and a seed that once broke a promise is to stay the run that it was.
const FirstTagged = 1 << 32

// A tagPlan is what a run with tags has.
type tagPlan struct {
	quotas limit.Quotas  // with their defaults
	names  []string      // of those with a till, by rising name
	budget string        // the one that has a budget; empty: none
	wall   time.Duration // when an hour ends on the store's clock, unless that is set
	hoard  bool          // callers hang, and go on all at once
	heads  float64       // how likely a want is larger than what an interval earns
}

// drawTags gives a run tags. It has no share without the store's consent: Q1 and Q7 are promised with consensus.Stop, and the
// bounds by the limit are checked by the other runs.
func (p *plan) drawTags(seed uint64, r *rand.Rand) {
	if seed < FirstTagged {
		return
	}
	t := &tagPlan{names: []string{"a", "b", "c"}[:1+r.IntN(3)], hoard: r.IntN(2) == 0}
	t.wall = time.Duration(60+r.IntN(480)) * time.Second
	t.quotas.Tags = map[string]limit.Quota{}
	for i, name := range t.names {
		q := limit.Quota{Total: []int{3, 20, 200, 5000}[r.IntN(4)]}
		if r.IntN(3) == 0 {
			q.Burst = 1 + r.IntN(2*q.Total)
		}
		if r.IntN(4) == 0 {
			q.Per = 10 * time.Second
		}
		if i == 0 && r.IntN(3) > 0 {
			t.budget = name
			amount := float64(q.Total) * logUniform(r, 10*time.Second, 5*time.Minute).Seconds()
			if q.Per > 0 {
				amount /= q.Per.Seconds()
			}
			q.Budgets = []limit.Budget{{Amount: 1 + int64(amount), Per: limit.Hour}}
		}
		t.quotas.Tags[name] = q
	}
	if r.IntN(3) == 0 {
		t.heads = 0.3
	}
	if p.limit.Hard && !p.noted {
		p.limit.Hard = false // its windows are checked by the share alone, and a Processor is told a limit with its tags
	}
	p.noted, p.loss = true, consensus.Stop
	t.quotas = t.quotas.WithDefaults(period(p.limit))
	p.tags = t
}

// A tagHand is what callers do with one tag at one process: they use what it is given.
type tagHand struct {
	limit.TagReport

	lots  []tagLot
	keeps bool // its callers use tokens at the last moment
	start int64
}

// A tagLot is a lot in hand, and how far the machine's clock was off then: see process.lag.
type tagLot struct {
	limit.Lot

	lag   time.Duration
	start int64 // of the budget window that it was granted in, on the store's clock; 0: of none
}

// prepareTags gives a new process its tags.
func (w *world) prepareTags(p *process) {
	t := w.plan.tags
	if t == nil {
		return
	}
	p.proc.SetQuotas(&t.quotas)
	p.hands = make([]tagHand, len(t.names)+1)
	for i := range p.hands {
		if i > 0 {
			p.hands[i].Tag = t.names[i-1]
		}
		w.changeWants(p, i)
	}
}

// copyHands gives a clone what its original has in hand.
func (p *process) copyHands() {
	p.hands = slices.Clone(p.hands)
	for i := range p.hands {
		p.hands[i].lots = slices.Clone(p.hands[i].lots)
	}
}

// changeWants draws what the callers of one tag want, now and from time to time.
func (w *world) changeWants(p *process, i int) {
	if p.gone || w.calm {
		return
	}
	r := w.rng.tags
	h := &p.hands[i]
	most := int64(w.plan.limit.Max)
	if i > 0 {
		q := w.plan.tags.quotas.Tags[h.Tag]
		most = int64(2*float64(q.Total)/q.Per.Seconds()*driverInterval(p).Seconds()) + int64(q.Burst) + 1
	}
	h.Waiting, h.Head = []int64{0, 1, most, most}[r.IntN(4)], 0
	h.keeps = r.IntN(3) > 0
	if i > 0 && h.Waiting == most && r.Float64() < w.plan.tags.heads {
		h.Head = most + r.Int64N(most)
		h.Waiting = h.Head
	}
	w.after(exponential(r, 6*time.Second), func() { w.changeWants(p, i) })
}

// reportTags has the next request tell of tags, as consensus.Member does: what would be over before the answer is given back.
func (w *world) reportTags(p *process, local time.Duration) {
	if p.hands == nil {
		return
	}
	w.useTags(p)
	keep := p.proc.TagKeep()
	at := epoch.Add(local)
	reports := make([]limit.TagReport, len(p.hands))
	for i := range p.hands {
		h := &p.hands[i]
		if w.calm { // all ask for the same, so that all get the same share
			h.Waiting, h.Head = 1_000_000, 0
		}
		newest := int64(0)
		for k := range h.lots {
			newest = max(newest, h.lots[k].Window)
		}
		h.InHand, h.Back, h.BackSpent = 0, 0, 0
		h.lots = slices.DeleteFunc(h.lots, func(l tagLot) bool {
			switch left := l.Until.Sub(at); {
			case left <= 0:
				return true
			case left > keep:
				h.InHand += l.Tokens
				return false
			}
			h.Back += l.Tokens
			if l.Window == newest {
				h.BackSpent += l.Tokens
			}
			return true
		})
		reports[i] = h.TagReport
		h.Owed = 0
	}
	p.proc.ReportTags(local, reports)
}

// takeTags hands what the processor has for its tags to their callers. lag is what the clock was off when it asked for that.
func (w *world) takeTags(p *process, lag time.Duration) {
	if p.hands == nil {
		return
	}
	for _, g := range p.proc.TagGrants(epoch, p.clock.read(w.now)) {
		i := slices.IndexFunc(p.hands, func(h tagHand) bool { return h.Tag == g.Tag })
		h := &p.hands[i]
		if g.Void {
			h.lots = nil
		}
		if g.Lot.Tokens > 0 && g.Needed {
			h.lots = append(h.lots, tagLot{g.Lot, lag, h.start})
			w.comeBack(p, g.Lot)
		}
	}
	w.useTags(p)
}

// comeBack has the callers look again when a lot can be used, and at its last moment.
func (w *world) comeBack(p *process, l limit.Lot) {
	look := func() { w.useTags(p) }
	w.at(max(w.now, p.clock.when(l.Until.Sub(epoch)-lastMoment)), look)
	if from := l.From.Sub(epoch); from > p.clock.read(w.now) {
		w.at(p.clock.when(from), look)
	}
}

// lastMoment is how long before their end those use tokens who keep them.
const lastMoment = 2 * time.Millisecond

// gush has all callers of the pool go on at once, now and then.
func (w *world) gush() {
	w.after(exponential(w.rng.tags, 8*time.Second), func() {
		if w.calm {
			return
		}
		w.counters.Gushes++
		w.tags.gushing = true
		for _, p := range w.procs {
			w.useTags(p)
		}
		w.tags.gushing = false
		w.gush()
	})
}

// useTags has the callers of a process use what they have in hand. What a machine that was suspended has in hand is looked
// at by its watchdog first.
func (w *world) useTags(p *process) {
	if p.hands == nil || p.gone || p.left || p.halted() || p.overslept() {
		return
	}
	at := epoch.Add(p.clock.read(w.now))
	for i := 1; i < len(p.hands); i++ {
		h := &p.hands[i]
		for k := range h.lots {
			l := &h.lots[k]
			left := l.Until.Sub(at)
			if l.Tokens == 0 || left <= 0 || l.From.After(at) || h.Waiting == 0 {
				continue
			}
			if h.keeps && w.plan.tags.hoard && !w.tags.gushing && left > lastMoment && !w.calm {
				continue
			}
			n := l.Tokens
			l.Tokens = 0
			h.Used += n
			if w.rng.tags.IntN(50) == 0 {
				h.Owed += 1 + n/10 // calls cost more than was thought
			}
			w.usedOfTag(p, i-1, l, n)
		}
	}
}
