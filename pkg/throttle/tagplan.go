package throttle

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/engine/gate"
	"github.com/numaproj-contrib/numathrottle/internal/fairtags"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
)

// planEvery is how often the limit is divided among the tags while it is in use. The demand of a tag is the larger of the last two such
// periods.
const planEvery = time.Second

// A tagPlan divides the limit of a Throttle without a pool among its tags, about once a second while they are in use. With a pool the pool
// does that; then the plan only looks at the tags.
type tagPlan struct {
	on      atomic.Bool // the timer runs
	gate    *gate.Gate
	renew   func() (active bool) // makes the next plan
	stopped atomic.Bool

	mu    sync.Mutex // taken before the locks of the Throttle and the tags
	timer sharing.Timer
	held  []fairtags.Busy // of the last plan
}

// A sample is the state of a tag when it was last looked at.
type sample struct {
	at            int64
	used, refused int64
	rate, before  float64 // of demand since the last look, and since the look before that
	use           float64 // since the last look
	idle          int     // looks since it did anything
}

// tick makes sure that there is a plan while draws come.
func (p *tagPlan) tick() {
	if !p.on.Load() && !p.on.Swap(true) {
		p.begin()
	}
}

func (p *tagPlan) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.stopped.Load() {
		p.timer = p.gate.AfterFunc(planEvery, p.turn)
	}
}

// stop ends the plan.
func (p *tagPlan) stop() {
	p.stopped.Store(true)
	p.on.Store(true)
}

// turn makes a plan, and goes on while there is something to plan for.
func (p *tagPlan) turn() {
	if p.stopped.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.renew() {
		p.timer = p.gate.AfterFunc(planEvery, p.turn)
		return
	}
	p.on.Store(false)
}

// renewPlan puts a new plan in force, and reports whether one of the tags is in use. The plan's lock is held.
func (s *tagSet) renewPlan() (active bool) {
	now, tags := s.t.gate.Now(), s.all()
	active = s.look(now, tags)
	if !s.pooled {
		s.divide(now, tags)
	}
	return active
}

// look samples the tags, and reports whether one of them is in use.
func (s *tagSet) look(now int64, tags []*tag) (active bool) {
	wall := s.t.gate.Present()
	r := s.lookLimited(now)
	for _, g := range tags {
		last := &g.sampled
		used := g.used.Load()
		refused, waiting := g.lacked()
		since, spent := time.Duration(now-last.at), used-last.used
		last.idle++
		if used != last.used || refused != last.refused || waiting > 0 {
			last.idle = 0
		}
		active = active || last.idle < 3
		last.turn(now, used, refused)
		g.mu.Lock()
		g.tagBucket.Anchor(now, wall)
		g.stepSlow(now)
		g.average = g.average.Next(since, float64(spent), float64(g.calls-g.averaged))
		g.averaged = g.calls
		g.demand, g.use = last.demand(waiting), last.use
		g.review(now)
		g.lookHeld(now, r)
		g.mu.Unlock()
	}
	return active
}

// demand returns how many tokens per second were asked for, given how many are waited for.
func (s *sample) demand(waiting int64) float64 {
	return max(s.rate, s.before) + float64(waiting)/planEvery.Seconds()
}

// turn brings the sample up to now.
func (s *sample) turn(now, used, refused int64) {
	if d := time.Duration(now - s.at).Seconds(); d > 0 {
		s.before = s.rate
		s.use = float64(max(used-s.used, 0)) / d
		s.rate = s.use + float64(max(refused-s.refused, 0))/d
	}
	s.at, s.used, s.refused = now, used, refused
}

// divide puts a new plan in force.
func (s *tagSet) divide(now int64, tags []*tag) {
	limit := s.t.perSecond(now)
	terms, row := make([]fairtags.Terms, len(tags)), fairtags.Row{Claim: limit, Held: s.plan.held}
	demands := make([]float64, len(tags))
	for i, g := range tags {
		g.mu.Lock()
		batch, limiting := g.batch(now), g.limiting(now, 0)
		g.mu.Unlock()
		terms[i] = s.terms(g, batch)
		if limiting > 0 {
			terms[i].Limiting = limiting
		}
		_, waiting := g.lacked()
		demands[i] = g.sampled.demand(waiting)
		if g.under.Load() {
			continue // its demand is that of the first level
		}
		row.Busy = append(row.Busy, fairtags.Busy{Key: terms[i].Key, Rate: demands[i]})
	}
	plan := fairtags.Divide(limit, terms, []fairtags.Row{row}, 0)
	s.plan.held = plan.Held
	grants := make([]sharing.TagGrant, len(tags))
	for i, g := range tags {
		grants[i] = sharing.TagGrant{Tag: g.name, Rate: plan.Own[i], Target: plan.Targets[i].Rate, By: plan.Targets[i].By}
		if g.under.Load() {
			grants[i].Rate = demands[i]
		}
	}
	s.putRates(now, limit, tags, grants)
}

// terms returns this processor's part of a tag's quota, as terms for the policy.
func (s *tagSet) terms(g *tag, batch bool) fairtags.Terms {
	q, per := g.quota(), g.quota().Per.Seconds()
	t := fairtags.Terms{Key: g.key, Reserved: float64(q.Reserved) / per * s.part, Total: math.Inf(1), Limiting: math.Inf(1), Weight: float64(q.Weight)}
	if g.name == "" {
		t.Key = 0
	}
	if (q.Total > 0 || q.Blocked) && !q.Shadow {
		total, per, _ := q.Enforced()
		t.Total = float64(total) / per.Seconds() * s.part
	}
	if batch {
		t.Class = 1
	}
	return t
}

// fairPart returns the weight of a tag that no plan has seen. It is the tag's part of the limit by weight among the known tags, and at
// least its reservation. The lock s.mu is held, or s is not shared yet.
func (s *tagSet) fairPart(q Quota) float64 {
	sum := float64(q.Weight + s.weights)
	w := s.t.limit.Rate() * s.part * float64(q.Weight) / sum
	if q.Class == ClassBatch {
		w *= 0.05
	}
	return max(w, float64(q.Reserved)/q.Per.Seconds()*s.part)
}

// putRates puts rates in force, as weights of the tag queues and as paces. here is the rate of the limit here. Of a tag that grants does not
// name only the rate changes.
//
// A tag whose demand is met in full is known to want little, and may want more in a moment. So it counts for no less than its part by
// weight; as long as it wants little this takes nothing from the others.
func (s *tagSet) putRates(now int64, here float64, tags []*tag, grants []sharing.TagGrant) {
	sum := 0.0
	for _, g := range tags {
		if g.sampled.idle < 10 && !g.under.Load() {
			sum += float64(g.quota().Weight)
		}
	}
	weights, tagQueues, shares, coming := make([]float64, len(tags)), make([]*tagQueue, len(tags)), make([]float64, len(tags)), int64(0)
	for i, g := range tags {
		grant := grants[i]
		weights[i] = grant.Rate
		if grant.Rate <= 0 || grant.By == fairtags.ByDemand {
			fair := here * float64(g.quota().Weight) / max(sum, float64(g.quota().Weight))
			if g.quota().Class == ClassBatch || grant.Lowered {
				fair *= 0.05
			}
			weights[i] = max(weights[i], fair)
		}
		tagQueues[i], shares[i] = g.tagQueue, weights[i]
		if grant.By == fairtags.ByTotal {
			shares[i] *= 2 // its tokens bound it: at its rate alone each would wait until the last moment, and some run out
		}
		g.outranked.Store(grant.By == fairtags.ByClass)
		g.mu.Lock()
		if w := g.queue.First; w != nil {
			coming += min(int64(g.queue.Tokens), max(grant.Coming, int64(math.Ceil(grant.Rate)), int64(w.Least)))
		}
		batch := g.grant.Batch
		g.grant = grant
		g.grant.Batch = batch
		g.pace.turn(now)
		g.pace.rate = weights[i]
		g.mu.Unlock()
	}
	s.waits.Store(coming)
	s.t.weigh(now, tagQueues, shares)
}
