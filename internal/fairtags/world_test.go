package fairtags_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/fairtags"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A world is a pool of processors that share a limit in virtual time. The shares and the tag buckets are those of a real
// record of the store, the policy is the real Divide. What is simple is the processors: tokens are a fluid, callers do
// not wait, and everything moves ten times a second. As in package consensus, each processor syncs once a second, lowers its share as soon
// as it knows that it should, and syncs again after a tenth of a second when it has done so, or lacks what others have too much.
type world struct {
	limit      float64
	tags       []*tag
	clients    []client
	zones      []*zone
	processors []*processor
	record     driver.Record
	tick       int
	looks      int // how many seconds are over
}

// A tag is a tenant with a quota, as what comes of it.
type tag struct {
	fairtags.Terms
	on       []int            // the zones that take its calls, evenly; none: nothing is known of zones
	used     []float64        // tokens a second, by second
	refused  []float64        // the same
	present  smooth           // tokens a second
	average  fairtags.Average // of its calls
	limiting float64
}

// A client makes calls of one tag at one processor. Its tag is an index; below 0 it is one without a quota.
type client struct {
	at, tag     int
	calls, cost float64
}

// A zone is a server that can take so many tokens a second.
type zone struct {
	capacity float64
	load     smooth
}

// A smooth is a rate that forgets all but 1/e in ten seconds, as FoundationDB smooths costs. It begins with the first look.
type smooth float64

func (s *smooth) look(rate float64) {
	if *s == 0 {
		*s = smooth(rate)
		return
	}
	*s += smooth(-math.Expm1(-0.1) * (rate - float64(*s)))
}

// A processor is one that takes part in the pool.
type processor struct {
	id       string
	dead     bool
	share    driver.Share
	carry    float64
	own      map[uint64]float64
	held     []fairtags.Busy
	plan     fairtags.Plan
	batches  map[uint64][]batch
	asked    []map[uint64]float64 // tokens asked for in each of the last ticks, by tag
	used     map[int]float64      // in this second, by tag
	busy     []fairtags.Busy      // what it told of itself
	others   []fairtags.Row       // the roster of the last answer, in which self is the processor itself
	ids      []*processor
	self     int
	seq      uint64
	synced   int // the tick of the last sync
	next     int // and of the next one
	lastTime int64
	lastSeq  uint64
	revision uint64
}

// A batch is what was drawn from a tag bucket and can be used until a tick.
type batch struct {
	tokens float64
	until  int
}

const (
	ticks = 10 // in a second
	lease = 10 * time.Second
	// validity is for how many ticks a draw is good.
	validity = 2 * ticks
)

func newWorld(limit float64, processors int, tags []fairtags.Terms) *world {
	w := &world{limit: limit}
	for i, t := range tags {
		t.Key, t.Weight = uint64(1+i), max(t.Weight, 1)
		w.tags = append(w.tags, &tag{Terms: t, limiting: inf})
	}
	for i := range processors {
		w.processors = append(w.processors, &processor{
			id: fmt.Sprintf("p%03d", i), own: map[uint64]float64{}, batches: map[uint64][]batch{}, used: map[int]float64{}, next: i % ticks,
		})
	}
	return w
}

// second lets one second pass.
func (w *world) second() {
	for _, t := range w.tags {
		t.used, t.refused = append(t.used, 0), append(t.refused, 0)
	}
	for _, p := range w.processors {
		clear(p.used)
	}
	for range ticks {
		for _, p := range w.processors {
			if !p.dead && w.tick >= p.next {
				w.sync(p)
			}
		}
		for i, p := range w.processors {
			if !p.dead {
				w.serve(i, p)
			}
		}
		w.tick++
	}
	w.looks++
	w.watch()
}

// key is that under which a client's tag is known: 99 is not known.
func (w *world) key(c client) uint64 {
	if c.tag < 0 {
		return uint64(99 - c.tag)
	}
	return w.tags[c.tag].Key
}

// serve lets the clients of one processor use what there is: by the rates that the policy gives their tags.
func (w *world) serve(index int, p *processor) {
	type lane struct {
		client
		asks, gets, weight float64
	}
	var lanes []*lane
	now := map[uint64]float64{}
	p.asked = append(p.asked[max(len(p.asked)-2*ticks+1, 0):], now)
	unknown := 0.0
	for _, c := range w.clients {
		if c.at != index || c.calls == 0 {
			continue
		}
		l := &lane{client: c, asks: c.calls * c.cost / ticks, weight: max(p.own[w.known(w.key(c))], 1e-3)}
		if c.tag < 0 {
			unknown++
		}
		now[w.key(c)] += l.asks
		lanes = append(lanes, l)
	}
	for _, l := range lanes {
		if l.tag < 0 {
			l.weight /= unknown // they stand in one lane
		}
	}
	left := p.carry + p.share.Fraction()*w.limit/ticks
	for rest := left + 1; left > 1e-9 && left < rest; { // each round fills a lane, or uses all
		rest = left
		sum := 0.0
		for _, l := range lanes {
			if l.gets < w.most(p, l.client, l.asks) {
				sum += l.weight
			}
		}
		for _, l := range lanes {
			if more := w.most(p, l.client, l.asks) - l.gets; more > 0 {
				more = min(more, rest*l.weight/sum)
				l.gets += more
				left -= more
			}
		}
	}
	p.carry = min(max(left, 0), p.share.Fraction()*w.limit/ticks)
	for _, l := range lanes {
		w.take(p, w.key(l.client), l.gets)
		p.used[l.tag] += l.gets
		if l.tag >= 0 {
			t := w.tags[l.tag]
			t.used[w.looks] += l.gets
			t.refused[w.looks] += l.asks - l.gets
		}
	}
}

// known is the key of a tag for the policy, which is 0 for those without a quota.
func (w *world) known(key uint64) uint64 {
	if key > uint64(len(w.tags)) {
		return 0
	}
	return key
}

// needs tells whether a tag draws from a tag bucket.
func (w *world) needs(key uint64) bool {
	return w.known(key) != 0 && !math.IsInf(may(w.tags[key-1].now()), 1)
}

// now are the terms that the tag has at present.
func (t *tag) now() fairtags.Terms {
	now := t.Terms
	now.Limiting = t.limiting
	return now
}

// may is the most that a tag may use over the whole pool: what its tag bucket gives out.
func may(t fairtags.Terms) float64 { return max(t.Reserved, min(t.Total, t.Limiting)) }

// most is what a client can get of what it asks for, by what its tag has in hand.
func (w *world) most(p *processor, c client, asks float64) float64 {
	if !w.needs(w.key(c)) {
		return asks
	}
	return min(asks, w.inHand(p, w.key(c)))
}

func (w *world) inHand(p *processor, key uint64) (tokens float64) {
	for _, l := range p.batches[key] {
		if l.until > w.tick {
			tokens += l.tokens
		}
	}
	return tokens
}

// take uses what is in hand, the oldest first.
func (w *world) take(p *processor, key uint64, tokens float64) {
	batches := p.batches[key]
	for i := range batches {
		if batches[i].until > w.tick {
			used := min(batches[i].tokens, tokens)
			batches[i].tokens -= used
			tokens -= used
		}
	}
	p.batches[key] = slices.DeleteFunc(batches, func(l batch) bool { return l.tokens < 1e-9 || l.until <= w.tick })
}

// terms are those that a processor goes by, with all other tags as one that is not named.
func (w *world) terms() []fairtags.Terms {
	terms := make([]fairtags.Terms, 0, len(w.tags)+1)
	for _, t := range w.tags {
		terms = append(terms, t.now())
	}
	return append(terms, fairtags.Terms{Total: inf, Limiting: inf, Weight: 1})
}

// divide is the policy at one processor, by what it knew of the others after its last sync, and of itself now.
func (w *world) divide(p *processor) fairtags.Plan {
	rows := slices.Clone(p.others)
	if len(rows) == 0 {
		rows = make([]fairtags.Row, 1)
	}
	for i, of := range p.ids {
		rows[i].Silent = of.dead && w.tick > of.synced+5*ticks/2
	}
	rows[p.self].Held, rows[p.self].Busy, rows[p.self].Claim = p.held, p.busy, p.share.Fraction()*w.limit
	return fairtags.Divide(w.limit, w.terms(), rows, p.self)
}

// meet takes over the roster of an answer.
func (w *world) meet(p *processor, roster []driver.RosterRow) {
	p.others, p.ids = nil, nil
	for i, r := range roster {
		of := w.processors[slices.IndexFunc(w.processors, func(p *processor) bool { return p.id == r.ID })]
		p.others, p.ids = append(p.others, fairtags.Row{Claim: r.Claim.Fraction() * w.limit, Busy: of.busy}), append(p.ids, of)
		if of == p {
			p.self = i
		}
	}
}

// demand is what the tags ask for: the larger of the last second and of the last two.
func (p *processor) demand() (busy []fairtags.Busy) {
	one, two := map[uint64]float64{}, map[uint64]float64{}
	for i, asked := range p.asked {
		for key, tokens := range asked {
			two[key] += tokens / 2
			if i >= len(p.asked)-ticks {
				one[key] += tokens
			}
		}
	}
	for key := range two {
		busy = append(busy, fairtags.Busy{Key: key, Rate: max(one[key], two[key])})
	}
	slices.SortFunc(busy, func(a, b fairtags.Busy) int { return cmp.Compare(a.Key, b.Key) })
	return busy
}

// sync is one exchange of a processor with the store.
func (w *world) sync(p *processor) {
	p.busy = p.demand()
	plan := w.divide(p)
	p.yield(w, plan)
	want := plan.Wants[p.self] / w.limit
	p.seq++
	req := driver.Request{
		Pool: "world", ID: p.id, Incarnation: "1", Seq: p.seq, Nonce: p.seq, LastSeq: p.lastSeq, LastNonce: p.lastSeq, LastTime: p.lastTime,
		Revision: p.revision, Lease: lease,
		Report: driver.Report{InUse: p.share, Wanted: driver.Share(want * float64(driver.Whole)), PoolSize: len(p.ids)},
		Draws:  w.draws(p, plan),
	}
	ans, _ := w.record.Sync(&req, driver.At{Now: 1e15 + int64(w.tick)*1e6/ticks})
	p.lastSeq, p.lastTime, p.revision = p.seq, ans.Time, ans.Revision
	p.share, p.synced, p.next = ans.Share, w.tick, w.tick+ticks
	w.meet(p, ans.Roster)
	for _, d := range ans.Draws {
		p.batches[d.Key] = append(p.batches[d.Key], batch{float64(d.Tokens), w.tick + validity})
	}
	p.plan = w.divide(p)
	if p.yield(w, p.plan) || w.hope(p) {
		p.next = w.tick + 1
	}
	p.plan = w.divide(p)
	p.held = p.plan.Held
	for i, t := range w.terms() {
		p.own[t.Key] = p.plan.Own[i]
	}
}

// yield lowers the share to what it should be, but for a little.
func (p *processor) yield(w *world, plan fairtags.Plan) bool {
	want := driver.Share(plan.Wants[p.self] / w.limit * float64(driver.Whole))
	if (p.share-want)*20 <= want {
		return false
	}
	p.share = want
	return true
}

// hope tells whether a processor lacks what another one has too much.
func (w *world) hope(p *processor) bool {
	if p.share.Fraction()*w.limit >= p.plan.Wants[p.self]*0.99 {
		return false
	}
	for i, row := range p.others {
		if i != p.self && row.Claim > p.plan.Wants[i]*1.05 {
			return true
		}
	}
	return false
}

// draws asks the tag buckets for what the tags of a processor will use until a bit after the next sync.
func (w *world) draws(p *processor, plan fairtags.Plan) (draws []driver.Draw) {
	for i, t := range w.terms() {
		total := may(t)
		at := slices.IndexFunc(p.busy, func(b fairtags.Busy) bool { return b.Key == t.Key })
		if math.IsInf(total, 1) || at < 0 {
			continue
		}
		ask := 1.25*p.busy[at].Rate - w.inHand(p, t.Key)
		if p.busy[at].Rate > plan.Own[i] { // more would be the others'
			ask = plan.Own[i]*float64(min(w.tick-p.synced, ticks))/ticks - max(w.inHand(p, t.Key)-plan.Own[i], 0)
		}
		draws = append(draws, driver.Draw{
			Key: t.Key, Total: int64(max(math.Round(1000*total), 1)), Per: 1000 * time.Second, Burst: int64(math.Ceil(total / 10)),
			Ask: int64(math.Ceil(max(ask, 0))),
		})
	}
	return draws
}

// watch looks at the servers once a second, and works out what limits each tag, with the health that FoundationDB's tests have: a queue
// that is as long as the load, a target that is the capacity, and a spring of a quarter of it.
func (w *world) watch() {
	load := make([]float64, len(w.zones))
	for i, t := range w.tags {
		calls := 0.0
		for _, c := range w.clients {
			if c.tag == i {
				calls += c.calls * min(1, t.used[w.looks-1]/max(w.asked(i), 1e-9))
			}
		}
		t.average = t.average.Next(time.Second, t.used[w.looks-1], calls)
		t.present.look(t.used[w.looks-1])
		for _, z := range t.on {
			load[z] += t.used[w.looks-1] / float64(len(t.on))
		}
	}
	for i, z := range w.zones {
		z.load.look(load[i])
	}
	for _, t := range w.tags {
		var zones []serverHealth
		for _, z := range t.on {
			zones = append(zones, serverHealth{Calls: float64(t.present) / float64(len(t.on)), Ratio: w.zones[z].ratio()})
		}
		t.limiting = limitingOf(float64(t.present), zones)
	}
}

func (z *zone) ratio() float64 {
	const spring = 0.25
	over := (float64(z.load)/z.capacity - 1 + spring) / spring
	if over <= 0 {
		return inf
	}
	return 1 / min(2, over)
}

// asked is what the clients of a tag ask for, in tokens a second.
func (w *world) asked(tag int) (tokens float64) {
	for _, c := range w.clients {
		if c.tag == tag && !w.processors[c.at].dead {
			tokens += c.calls * c.cost
		}
	}
	return tokens
}
