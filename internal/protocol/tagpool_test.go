package protocol

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// tagStep is how often the limiters of a tagPool look whether somebody can draw.
const tagStep = 10 * time.Millisecond

// A tagPool is processors with simple limiters on a real record, in virtual time: messages take no time.
type tagPool struct {
	t       *testing.T
	limit   throttle.Limit
	quotas  limit.Quotas
	record  driver.Record
	server  string // its identity
	now     time.Duration
	nonce   uint64
	members []*tagMember
	stalled bool // callers wait, and nobody draws
	// used lists what each tag has drawn over the whole pool, step by step.
	used map[string][]float64
}

// A tagMember is one processor and its limiter.
type tagMember struct {
	p       *Processor
	lost    bool // the store does not answer it
	asks    map[string]float64
	stocks  map[string]*tagStock
	credit  float64 // of the limit
	virtual float64 // the virtual time of the lanes
	spread  float64
}

// A tagStock is what a limiter does for one tag.
type tagStock struct {
	sharing.TagReport

	batches []sharing.Batch
	needed  bool
	rate    float64 // by which it is served while the limit is short
	finish  float64 // the virtual time at which its last draw ends
	arrived float64
	used    float64 // in this step
}

func newTagPool(t *testing.T, limit int, q limit.Quotas, n int) *tagPool {
	t.Helper()
	l := throttle.Limit{Max: limit, Per: time.Second}
	require.NoError(t, q.Validate(l.Max, l.Per))
	p := &tagPool{t: t, limit: l, quotas: q.WithDefaults(l.Per), used: map[string][]float64{}}
	for range n {
		p.join()
	}
	return p
}

func (p *tagPool) join(opts ...func(*ProcessorConfig)) *tagMember {
	cfg := ProcessorConfig{Pool: "pool", ID: fmt.Sprintf("p%03d", len(p.members)), OnStoreLoss: Stop}
	for _, o := range opts {
		o(&cfg)
	}
	m := &tagMember{p: NewProcessor(cfg, "1"), asks: map[string]float64{}, stocks: map[string]*tagStock{}, spread: math.Mod(0.37*float64(len(p.members)), 1)}
	m.p.Configure(sharing.Terms{Ceiling: hook.Ceiling(limitOf(p.t, p.limit)), Quotas: &p.quotas})
	p.members = append(p.members, m)
	return m
}

// run goes on for d.
func (p *tagPool) run(d time.Duration) {
	p.t.Helper()
	for end := p.now + d; p.now < end; p.now += tagStep {
		for _, m := range p.members {
			if m.p.Next(p.now, m.spread) <= p.now {
				p.sync(m)
			}
			if m.p.RationDue(p.now) {
				reports, _ := p.reports(m)
				m.p.Ration(p.now, reports)
				m.grant(p)
			}
		}
		sum := map[string]float64{}
		for _, m := range p.members {
			m.serve(p)
			for tag, s := range m.stocks {
				sum[tag] += s.used
			}
		}
		steps := int(p.now / tagStep)
		for tag, n := range sum {
			for len(p.used[tag]) < steps {
				p.used[tag] = append(p.used[tag], 0)
			}
			p.used[tag] = append(p.used[tag], n)
		}
	}
}

var tagBase = time.Unix(1_700_000_000, 0)

// reports returns what the tags do, and how many callers wait.
func (p *tagPool) reports(m *tagMember) (reports []sharing.TagReport, waiting float64) {
	for _, s := range m.inOrder() {
		reports = append(reports, s.report(p.now, m.p.TagKeep()))
		waiting += float64(s.Waiting)
	}
	return reports, waiting
}

func (p *tagPool) sync(m *tagMember) {
	p.t.Helper()
	p.nonce++
	reports, waiting := p.reports(m)
	whole := driver.Whole
	if waiting == 0 {
		whole = driver.Whole / 2
	}
	m.p.Yield(p.now, whole, reports)
	req := m.p.Request(p.now, p.nonce, Observation{Demand: whole})
	m.grant(p)
	require.NoError(p.t, req.Validate())
	if m.lost {
		m.p.Failed(p.now, req.Seq)
		return
	}
	ans, _ := p.record.Sync(&req, driver.At{Now: tagBase.UnixMicro() + p.now.Microseconds(), Identity: p.server})
	require.NoError(p.t, m.p.Take(p.now, ans, fmt.Sprint("again", p.nonce)))
	m.grant(p)
}

func (m *tagMember) grant(p *tagPool) {
	grants := m.p.Orders(p.now, 0, tagBase).Grants
	if grants == nil {
		return
	}
	for _, s := range m.stocks {
		s.rate = 0
	}
	for _, g := range grants {
		s := m.stock(g.Tag)
		s.rate, s.needed = g.Rate, g.Needed
		if g.Void {
			s.batches = nil
		}
		if g.Batch.Tokens > 0 {
			s.batches = append(s.batches, g.Batch)
		}
		s.trim(p.now)
	}
}

func (m *tagMember) stock(tag string) *tagStock {
	s, ok := m.stocks[tag]
	if !ok {
		s = &tagStock{needed: true}
		s.Tag = tag
		m.stocks[tag] = s
	}
	return s
}

// inOrder lists the stocks by tag, so that every run is the same.
func (m *tagMember) inOrder() (list []*tagStock) {
	for _, tag := range slices.Sorted(maps.Keys(m.stocks)) {
		list = append(list, m.stocks[tag])
	}
	return list
}

func (s *tagStock) trim(now time.Duration) {
	s.batches = slices.DeleteFunc(s.batches, func(l sharing.Batch) bool { return !tagBase.Add(now).Before(l.Until) || l.Tokens == 0 })
}

// report gives up what ends within keep, as a limiter does.
func (s *tagStock) report(now, keep time.Duration) sharing.TagReport {
	s.trim(now)
	r := s.TagReport
	r.InHand, r.Back, r.BackSpent = 0, 0, 0
	newest := int64(0)
	for _, l := range s.batches {
		newest = max(newest, l.Window)
	}
	for i := range s.batches {
		l := &s.batches[i]
		if l.Until.Sub(tagBase.Add(now)) > keep {
			r.InHand += l.Tokens
			continue
		}
		r.Back += l.Tokens
		if l.Window == newest {
			r.BackSpent += l.Tokens
		}
		l.Tokens = 0
	}
	s.trim(now)
	return r
}

// serve lets the tags draw for one step, in the order of start-time fair queueing with their rates as weights.
func (m *tagMember) serve(p *tagPool) {
	span := tagStep.Seconds()
	share, _ := m.p.apply(p.now, 0)
	most := float64(share) / float64(limit.WholeShare) * float64(p.limit.Max)
	m.credit = min(m.credit+most*span, max(most*0.1, 1))
	for tag, ask := range m.asks {
		s := m.stock(tag)
		s.arrived += ask * span
		n := math.Floor(s.arrived)
		s.arrived -= n
		room := max(0, int64(2*ask)+1-s.Waiting) // whoever waits for longer gives up
		s.Refused += max(0, int64(n)-room)
		s.Waiting += min(int64(n), room)
		s.used = 0
	}
	for m.credit >= 1 && !p.stalled {
		var next *tagStock
		for _, s := range m.inOrder() {
			if s.Waiting > 0 && s.has(p.now) && (next == nil || m.before(s, next)) {
				next = s
			}
		}
		if next == nil {
			return
		}
		m.virtual = max(next.finish, m.virtual)
		next.finish = m.virtual + 1/max(next.rate, 0.1)
		next.take(p.now)
		next.Waiting--
		next.Used++
		next.used++
		m.credit--
	}
}

func (m *tagMember) before(a, b *tagStock) bool {
	return cmp.Or(cmp.Compare(max(a.finish, m.virtual), max(b.finish, m.virtual)), cmp.Compare(a.Tag, b.Tag)) < 0
}

// usable is the place of the batch that is drawn from next, -1 for none.
func (s *tagStock) usable(now time.Duration) int {
	at := tagBase.Add(now)
	return slices.IndexFunc(s.batches, func(l sharing.Batch) bool { return l.Tokens > 0 && !at.Before(l.From) && at.Before(l.Until) })
}

func (s *tagStock) has(now time.Duration) bool { return !s.needed || s.usable(now) >= 0 }

func (s *tagStock) take(now time.Duration) {
	if i := s.usable(now); i >= 0 && s.needed {
		s.batches[i].Tokens--
	}
}

// rate is what a tag used over the whole pool, per second, in the last d.
func (p *tagPool) rate(tag string, d time.Duration) float64 {
	n := 0.0
	used := p.used[tag]
	for _, u := range used[max(0, len(used)-int(d/tagStep)):] {
		n += u
	}
	return n / d.Seconds()
}

// total is what a tag has used over the whole pool.
func (p *tagPool) total(tag string) (sum float64) {
	for _, n := range p.used[tag] {
		sum += n
	}
	return sum
}

// worst is the most that a tag used in any window of w.
func (p *tagPool) worst(tag string, w time.Duration) (most float64) {
	used, n := p.used[tag], int(w/tagStep)
	sum := 0.0
	for i, u := range used {
		if sum += u; i >= n {
			sum -= used[i-n]
		}
		most = max(most, sum)
	}
	return most
}

// everywhere sets what a tag asks for at every processor, per second.
func (p *tagPool) everywhere(tag string, rate float64) {
	for _, m := range p.members {
		m.asks[tag] = rate
	}
}

const tagInterval = driver.DefaultLease / 10

// bound is Q1: what a tag may use in any window of w.
func (p *tagPool) bound(tag string, w time.Duration) float64 {
	_, q := p.quotas.Find(tag)
	total := perSecond(int64(q.Total), q.Per)
	h := wire.Interval(driver.DefaultLease, len(p.members)).Seconds()
	return total*(w.Seconds()+2*h*1.0833+h) + float64(q.Burst) + total*2*h
}

// Q1 and Q3: a tag with a total is held to it over the whole pool wherever it asks, and the others get the rest.
func TestTagsAreHeldToTheirTotals(t *testing.T) {
	for _, n := range []int{1, 4, 16} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			p := newTagPool(t, 1000, limit.Quotas{Tags: map[string]limit.Quota{"acme": {Total: 200}, "few": {Total: 10}}}, n)
			p.everywhere("acme", 2000/float64(n))
			p.everywhere("few", 100/float64(n))
			p.everywhere("", 3000/float64(n))
			p.run(20 * time.Second)
			require.InDelta(t, 200, p.rate("acme", 10*time.Second), 6)
			require.InDelta(t, 10, p.rate("few", 10*time.Second), 0.5)
			require.InDelta(t, 1000, p.rate("acme", 10*time.Second)+p.rate("few", 10*time.Second)+p.rate("", 10*time.Second), 10, "the pool is used")
			for _, w := range []time.Duration{time.Second, 3 * time.Second, 10 * time.Second} {
				require.LessOrEqual(t, p.worst("acme", w), p.bound("acme", w), w)
				require.LessOrEqual(t, p.worst("few", w), p.bound("few", w), w)
			}
		})
	}
}

// A tag that asks at one processor alone gets its whole total there: it is not divided.
func TestASkewedTagGetsItsTotal(t *testing.T) {
	p := newTagPool(t, 1000, limit.Quotas{Tags: map[string]limit.Quota{"acme": {Total: 300}}}, 10)
	p.everywhere("", 200)
	p.run(5 * time.Second)
	p.members[3].asks["acme"] = 1000
	p.run(15 * time.Second)
	require.InDelta(t, 300, p.rate("acme", 10*time.Second), 15)
}

// Q2: what is reserved comes within four intervals, wherever the demand for it jumps, and whatever the others do.
func TestReservedComesWithinFourIntervals(t *testing.T) {
	for _, at := range []int{1, 4, 16} {
		t.Run(fmt.Sprint("on ", at), func(t *testing.T) {
			p := newTagPool(t, 1000, limit.Quotas{Tags: map[string]limit.Quota{"acme": {Reserved: 400, Total: 500}}}, 16)
			p.everywhere("", 500)
			p.run(10 * time.Second)
			require.InDelta(t, 1000, p.rate("", 5*time.Second), 10)
			for i := range at {
				p.members[5*i%16].asks["acme"] = 1000 / float64(at)
			}
			p.run(4 * tagInterval)
			p.run(time.Second)
			require.GreaterOrEqual(t, p.rate("acme", time.Second), 0.99*400)
			p.run(10 * time.Second)
			require.GreaterOrEqual(t, p.rate("acme", 5*time.Second), 0.99*400)
		})
	}
}

func thousandOf(n int) throttle.Limit { return throttle.Limit{Max: n, Per: time.Second} }
