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

	"github.com/numaproj-contrib/numathrottle/internal/fairslots"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A slotPool is processors with simple limiters on calls in flight on a real record, in virtual time: messages take no time.
type slotPool struct {
	t       *testing.T
	slots   int
	quotas  limit.Quotas
	record  driver.Record
	server  string
	now     time.Duration
	nonce   uint64
	members []*slotMember
	dead    []*slotMember    // their calls go on
	most    map[string]int64 // in flight at once, by tag
	// inFlight is the most of all tags together.
	inFlight int64
}

// A slotMember is one processor, and its limiter.
type slotMember struct {
	p      *Processor
	spread float64
	lost   func() (request, answer bool) // nil: neither
	tags   map[string]*slotsOfTag
	lease  limit.Lease
	quotas limit.Quotas
	start  float64 // of the tag that was served last
}

// A slotsOfTag is what the limiter does for one tag.
type slotsOfTag struct {
	name    string
	asks    int           // callers that want a slot all the time, those with one included
	length  time.Duration // of a call
	ends    []time.Duration
	allowed int64
	free    int // answers in a row by which slots of its total are free
	grant   sharing.TagSlotGrant
	peaks   [2]int64
	served  time.Duration // slot-time
	turn    fairslots.Turn
	waited  bool
}

func (g *slotsOfTag) running() int64 { return int64(len(g.ends)) }

func (g *slotsOfTag) waiting() int64 { return max(int64(g.asks)-g.running(), 0) }

func newSlotPool(t *testing.T, slots int, q limit.Quotas, n int) *slotPool {
	t.Helper()
	p := &slotPool{t: t, slots: slots, quotas: q.WithDefaults(0), server: "one", most: map[string]int64{}}
	for range n {
		p.join("")
	}
	return p
}

func (p *slotPool) join(id string, opts ...func(*ProcessorConfig)) *slotMember {
	p.nonce++
	cfg := ProcessorConfig{Pool: "pool", ID: cmp.Or(id, fmt.Sprintf("p%03d", p.nonce)), OnStoreLoss: Stop}
	for _, o := range opts {
		o(&cfg)
	}
	m := &slotMember{
		p: NewProcessor(cfg, fmt.Sprint("life", p.nonce)), spread: math.Mod(0.37*float64(p.nonce), 1), tags: map[string]*slotsOfTag{}, quotas: p.quotas,
	}
	m.p.Configure(sharing.Terms{Slots: p.slots, Quotas: &p.quotas})
	p.members = append(p.members, m)
	return m
}

// asks sets how many callers of a tag there are at a processor, and how long their calls take.
func (m *slotMember) asks(tag string, callers int, length time.Duration) {
	g := m.tag(tag)
	g.asks, g.length = callers, length
}

func (m *slotMember) tag(name string) *slotsOfTag {
	g, ok := m.tags[name]
	if !ok {
		g = &slotsOfTag{name: name, length: time.Second}
		m.tags[name] = g
	}
	return g
}

func (m *slotMember) inOrder() (list []*slotsOfTag) {
	for _, name := range slices.Sorted(maps.Keys(m.tags)) {
		list = append(list, m.tags[name])
	}
	return list
}

func (m *slotMember) total(tag string) int64 {
	_, q := m.quotas.Find(tag)
	return int64(q.Total)
}

// run goes on for d.
func (p *slotPool) run(d time.Duration) {
	p.t.Helper()
	for end := p.now + d; p.now < end; p.now += tagStep {
		for _, m := range slices.Clone(p.members) {
			m.end(p.now)
			m.p.Tick(p.now)
			m.obey(p)
			if m.p.Next(p.now, m.spread) <= p.now {
				p.sync(m)
			}
			m.begin(p.now, p.slots)
		}
		for _, m := range p.dead {
			m.end(p.now)
		}
		sum := int64(0)
		for tag := range p.tags() {
			n := p.running(tag)
			p.most[tag] = max(p.most[tag], n)
			sum += n
		}
		p.inFlight = max(p.inFlight, sum)
	}
}

func (p *slotPool) tags() map[string]bool {
	all := map[string]bool{}
	for _, m := range slices.Concat(p.members, p.dead) {
		for tag := range m.tags {
			all[tag] = true
		}
	}
	return all
}

// running counts the calls of a tag in flight over the whole pool; those of processes that have died go on.
func (p *slotPool) running(tag string) (n int64) {
	for _, m := range slices.Concat(p.members, p.dead) {
		if g, ok := m.tags[tag]; ok {
			n += g.running()
		}
	}
	return n
}

// kill ends a process without a word. Its calls go on at the called service.
func (p *slotPool) kill(m *slotMember) {
	p.members = slices.DeleteFunc(p.members, func(o *slotMember) bool { return o == m })
	p.dead = append(p.dead, m)
}

func (p *slotPool) at() driver.At {
	return driver.At{Now: tagBase.UnixMicro() + p.now.Microseconds(), Identity: p.server, Remembers: time.Hour}
}

// sync does one sync, as Member does.
func (p *slotPool) sync(m *slotMember) {
	p.t.Helper()
	p.nonce++
	m.p.ReportSlots(p.now, m.report(m.p.SlotPlace()))
	share := func(n int64) driver.Share { return driver.Share(sharing.ShareOf(int(min(n, int64(p.slots))), p.slots)) }
	wants := int64(0)
	for _, g := range m.tags {
		wants += max(int64(g.asks), g.running())
	}
	m.p.Yield(p.now, share(wants), nil)
	m.obey(p)
	req := m.p.Request(p.now, p.nonce, Observation{Demand: share(wants), InUse: share(m.inUse())})
	m.obey(p)
	require.NoError(p.t, req.Validate())
	require.Empty(p.t, req.Draws)
	requestLost, answerLost := false, false
	if m.lost != nil {
		requestLost, answerLost = m.lost()
	}
	if requestLost {
		m.p.Failed(p.now, req.Seq)
		return
	}
	ans, _ := p.record.Sync(&req, p.at())
	if answerLost {
		m.p.Failed(p.now, req.Seq)
		return
	}
	require.NoError(p.t, m.p.Take(p.now, ans, fmt.Sprint("again", p.nonce)))
	m.obey(p)
}

// save changes the quotas of the pool.
func (p *slotPool) save(c QuotaChanges) {
	p.t.Helper()
	body, err := c.body()
	require.NoError(p.t, err)
	old, _, err := p.record.Load()
	require.NoError(p.t, err)
	p.nonce++
	base := quotaDoc.In(old).Version
	d := driver.DocumentReport{Name: quotaDocument, Version: driver.NextVersion(base, uint16(p.nonce)), Base: base, Body: body}
	_, changed, err := p.record.Save(&d, p.at())
	require.NoError(p.t, err)
	require.True(p.t, changed)
}

func (m *slotMember) inUse() (n int64) {
	for _, g := range m.tags {
		n += g.running()
	}
	return n
}

// report reports on the tags, and lowers what they may use to what it reports.
func (m *slotMember) report(turn int64, rank, live int) (out []sharing.TagSlotReport) {
	for _, g := range m.inOrder() {
		now := max(int64(g.asks), g.running())
		r := sharing.TagSlotReport{
			Tag: g.name, Running: g.running(), Waiting: g.waiting(), Demand: max(now, g.peaks[0], g.peaks[1]), Total: m.total(g.name),
		}
		g.peaks = [2]int64{now, g.peaks[0]}
		if r.Total > 0 {
			r.Wanted = fairslots.Asking{
				Here: r.Demand, Elsewhere: g.grant.Demand, Total: r.Total, Spare: g.free > 1, Turn: turn, Rank: rank, Processors: live,
			}.Ask()
			g.allowed = min(g.allowed, r.Wanted)
			r.InUse = max(r.Running, g.allowed)
		}
		if r.Demand > 0 || r.InUse > 0 {
			out = append(out, r)
		}
	}
	return out
}

// obey puts the processor's orders in force.
func (m *slotMember) obey(p *slotPool) {
	o := m.p.Orders(p.now, 0, tagBase)
	require.Nil(p.t, o.Grants)
	if o.Quotas != nil {
		m.quotas = *o.Quotas
	}
	for _, grant := range o.SlotGrants {
		g := m.tag(grant.Tag)
		if g.grant = grant; grant.Bound {
			g.allowed = grant.Granted
			if g.free++; grant.Granted+grant.Claimed >= m.total(grant.Tag) {
				g.free = 0
			}
		}
	}
	m.lease = o.Lease
}

// end ends calls that are over.
func (m *slotMember) end(now time.Duration) {
	for _, g := range m.tags {
		g.served += time.Duration(len(g.ends)) * tagStep
		g.ends = slices.DeleteFunc(g.ends, func(end time.Duration) bool { return end <= now })
	}
}

// slots is how many calls the share in force allows.
func (m *slotMember) slots(now time.Duration, most int) int64 {
	if !tagBase.Add(now).Before(m.lease.Until) {
		return 0
	}
	return int64(sharing.SlotsOf(m.lease.Share, most))
}

// begin begins calls in the order of package fairslots, as an InFlight does.
func (m *slotMember) begin(now time.Duration, most int) {
	order := func(g *slotsOfTag) float64 { return g.turn.Start(len(g.ends), g.grant.First) }
	for _, g := range m.inOrder() {
		g.turn.Step(now.Seconds(), len(g.ends), max(g.grant.Part, 0.01))
		if waits := g.waiting() > 0; waits != g.waited {
			g.turn.Join(m.start)
			g.waited = waits
		}
	}
	for m.inUse() < m.slots(now, most) {
		var next *slotsOfTag
		for _, g := range m.inOrder() {
			if g.waiting() > 0 && (m.total(g.name) == 0 || g.running() < g.allowed) && (next == nil || order(g) < order(next)) {
				next = g
			}
		}
		if next == nil {
			return
		}
		if start := order(next); !fairslots.Reserved(start) {
			m.start = max(m.start, start)
		}
		next.ends = append(next.ends, now+next.length)
	}
}

// served is the slot-time of a tag over the whole pool.
func (p *slotPool) served(tag string) (sum time.Duration) {
	for _, m := range p.members {
		if g, ok := m.tags[tag]; ok {
			sum += g.served
		}
	}
	return sum
}

// use is how many slots a tag uses on average in d from now on.
func (p *slotPool) use(tag string, d time.Duration) float64 {
	p.t.Helper()
	before := p.served(tag)
	p.run(d)
	return (p.served(tag) - before).Seconds() / d.Seconds()
}

func ofSlots(q map[string]limit.Quota) limit.Quotas { return limit.Quotas{Tags: q} }
