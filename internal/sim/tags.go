package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// FirstTagged is the first of the seeds whose runs have tags with quotas. Those are separate seeds, because the demand of tags affects
// shares, and a seed that once broke a promise must stay the same run.
const FirstTagged = 1 << 32

// A tagPlan is the plan of a run with tags.
type tagPlan struct {
	quotas limit.Quotas  // with their defaults
	names  []string      // of those with a tag bucket (the store's record of a tag), sorted
	budget string        // the name of the tag with a budget; empty: none
	wall   time.Duration // when an hour ends on the store's clock, unless that is set
	hoard  bool          // callers hang, and continue all at once
	heads  float64       // probability of a want larger than what an interval earns
}

// drawTags gives a run tags. It excludes shares without the store's consent: Q1 and Q7 are promised with consensus.Stop, and the other runs
// check the bounds by the limit.
func (p *plan) drawTags(seed uint64, r *rand.Rand) {
	if seed < FirstTagged || seed >= FirstSlotted {
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
			q.Budgets = []limit.Budget{{Amount: 1 + int64(amount), Per: limit.PeriodHour}}
		}
		t.quotas.Tags[name] = q
	}
	if r.IntN(3) == 0 {
		t.heads = 0.3
	}
	if p.limit.Hard && !p.noted {
		p.limit.Hard = false // its windows are checked by the share alone, and a Processor receives a limit with its tags
	}
	p.noted, p.loss = true, protocol.Stop
	t.quotas = t.quotas.WithDefaults(period(p.limit))
	p.tags = t
}

// A tagHand is the callers of one tag at one process: they use the tokens it receives.
type tagHand struct {
	sharing.TagReport

	batches []tagBatch
	keeps   bool // its callers use tokens at the last moment
	// start is that of the budget window of the newest answered draw, on the store's clock, and fresh its tokens that can be used at once.
	start, fresh int64
	reserved     []tagReservation // set aside and not received, in turn
}

// A tagReservation is a number of tokens that were set aside, and the start of the budget window in which that was.
type tagReservation struct{ tokens, start int64 }

// startOf returns the start of the budget window in which a batch that comes now was granted. When it was set aside, the store's clock may have
// been in another window.
func (h *tagHand) startOf(tokens int64) int64 {
	if h.fresh == tokens {
		h.fresh = 0
		return h.start
	}
	if k := slices.IndexFunc(h.reserved, func(r tagReservation) bool { return r.tokens == tokens }); k >= 0 {
		r := h.reserved[k]
		h.reserved = h.reserved[k+1:]
		return r.start
	}
	return h.start
}

// A tagBatch is a batch of tokens drawn ahead, and the error of the machine's clock at that time: see process.lag.
type tagBatch struct {
	sharing.Batch

	lag   time.Duration
	start int64 // of the budget window in which it was granted, on the store's clock; 0: none
}

// prepareTags gives a new process its tags.
func (w *world) prepareTags(p *process) {
	t := w.plan.tags
	if t == nil {
		return
	}
	p.hands = make([]tagHand, len(t.names)+1)
	for i := range p.hands {
		if i > 0 {
			p.hands[i].Tag = t.names[i-1]
		}
		w.changeWants(p, i)
	}
}

// copyHands gives a clone copies of its original's batches.
func (p *process) copyHands() {
	p.hands = slices.Clone(p.hands)
	for i := range p.hands {
		p.hands[i].batches, p.hands[i].reserved = slices.Clone(p.hands[i].batches), slices.Clone(p.hands[i].reserved)
	}
}

// changeWants draws the demand of one tag's callers, now and from time to time.
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

// reportTags reports tags, as the Throttle of a consensus.Member does: batches that would expire before the answer are given back.
func (w *world) reportTags(p *process, local time.Duration) (reports []sharing.TagReport) {
	if p.hands == nil {
		return nil
	}
	w.useTags(p)
	keep := p.proc.TagKeep()
	at := epoch.Add(local)
	reports = make([]sharing.TagReport, len(p.hands))
	for i := range p.hands {
		h := &p.hands[i]
		if w.calm { // all ask for the same, so that all get the same share
			h.Waiting, h.Head = 1_000_000, 0
		}
		newest := int64(0)
		for k := range h.batches {
			newest = max(newest, h.batches[k].Window)
		}
		h.InHand, h.Back, h.BackSpent = 0, 0, 0
		h.batches = slices.DeleteFunc(h.batches, func(l tagBatch) bool {
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
	return reports
}

// takeTags hands the processor's grants for tags to their callers. The clock was not more ahead when it requested them than when it made
// the request that the lease rests on.
func (w *world) takeTags(p *process, grants []sharing.TagGrant) {
	if p.hands == nil {
		return
	}
	for _, g := range grants {
		i := slices.IndexFunc(p.hands, func(h tagHand) bool { return h.Tag == g.Tag })
		h := &p.hands[i]
		if g.Void {
			h.batches = nil
		}
		if g.Batch.Tokens > 0 && g.Needed {
			h.batches = append(h.batches, tagBatch{g.Batch, p.leaseLag, h.startOf(g.Batch.Tokens)})
			w.comeBack(p, g.Batch)
		}
	}
	w.useTags(p)
}

// comeBack lets the callers check again when a batch becomes valid, and at its last moment.
func (w *world) comeBack(p *process, l sharing.Batch) {
	look := func() { w.useTags(p) }
	w.at(max(w.now, p.clock.when(l.Until.Sub(epoch)-lastMoment)), look)
	if from := l.From.Sub(epoch); from > p.clock.read(w.now) {
		w.at(p.clock.when(from), look)
	}
}

// lastMoment is how long before the end of a batch its keepers use it.
const lastMoment = 2 * time.Millisecond

// gush lets all callers of the pool continue at once, now and then.
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

// useTags lets the callers of a process use its batches. On a machine that was suspended, the watchdog checks the batches first.
func (w *world) useTags(p *process) {
	if p.hands == nil || p.gone || p.left || p.halted() || p.overslept() {
		return
	}
	at := epoch.Add(p.clock.read(w.now))
	for i := 1; i < len(p.hands); i++ {
		h := &p.hands[i]
		for k := range h.batches {
			l := &h.batches[k]
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
				h.Owed += 1 + n/10 // calls cost more than estimated
			}
			w.usedOfTag(p, i-1, l, n)
		}
	}
}
