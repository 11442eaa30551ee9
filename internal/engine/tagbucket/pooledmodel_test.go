package tagbucket

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A pooledModel is a Bucket whose tokens come in batches, as a list of batches and what is to be reported.
type pooledModel struct {
	q       limit.Quota
	each    int64 // time in which a token is earned that is owed
	needed  bool
	batches []*modelBatch // in the order of their ends
	window  int64
	grant   sharing.TagGrant
	again   int64

	back, backSpent, owed int64
	paid                  int64 // up to when what is owed is earned
	shadowed              int64
	dry                   bool
	free                  int64
}

type modelBatch struct {
	tokens, from, until, window int64
	stale                       bool // the pool does not take it back
	over                        bool // is in the list no more
}

// A pooledDraw is of the first batch that it drew from, and of the oldest window.
type pooledDraw struct {
	d      *Draw
	n      int64
	of     *modelBatch
	window int64
}

func (m *pooledModel) holds() bool { return m.needed && !m.q.Shadow }

func (m *pooledModel) valid(b *modelBatch, now int64) bool { return b.from <= now && now < b.until }

func (m *pooledModel) usable(now int64) (sum int64) {
	for _, b := range m.batches {
		if m.valid(b, now) {
			sum += b.tokens
		}
	}
	return sum
}

// worth is how long the total takes to earn n tokens.
func (m *pooledModel) worth(n int64) int64 {
	if m.q.Total == 0 {
		return 0
	}
	total, per, _ := m.q.Enforced()
	return int64(math.Ceil(float64(n) * float64(per) / float64(total)))
}

func (m *pooledModel) giveUp(n, window int64) {
	m.back += n
	m.free -= m.worth(n)
	if window == m.window {
		m.backSpent += n
	}
}

func (m *pooledModel) take(now, n int64) (d pooledDraw, ok bool) {
	d.n = n
	switch {
	case !m.needed:
		return d, true
	case m.q.Blocked || m.usable(now) < n:
		if m.q.Shadow {
			m.shadowed += n
		}
		return d, m.q.Shadow
	}
	for _, b := range m.batches {
		k := min(n, b.tokens)
		if n == 0 || k == 0 || !m.valid(b, now) {
			continue
		}
		if d.of == nil {
			d.of, d.window = b, b.window
		}
		d.window = min(d.window, b.window)
		b.tokens -= k
		n -= k
	}
	return d, true
}

func (m *pooledModel) giveBack(now int64, d *pooledDraw, n int64) {
	switch {
	case d.of == nil:
	case !d.of.over && now < d.of.until:
		d.of.tokens += n
	case !m.q.Hard && !d.of.stale:
		m.giveUp(n, d.window)
	}
}

func (m *pooledModel) report(now, keep int64) (r sharing.TagReport) {
	var kept []*modelBatch
	for _, b := range m.batches {
		switch {
		case b.until > now+keep:
			kept = append(kept, b)
			if r.InHand += b.tokens; r.Lasts == 0 && b.tokens > 0 {
				r.Lasts = time.Duration(b.until - now)
			}
			continue
		case !b.stale && (b.until > now || !m.q.Hard):
			m.giveUp(b.tokens, b.window)
		}
		b.over = true
	}
	m.batches = kept
	r.Back, r.BackSpent, r.Owed = m.back, m.backSpent, m.owed
	m.back, m.backSpent, m.owed = 0, 0, 0
	return r
}

func (m *pooledModel) put(g sharing.TagGrant, from, until, again int64, all []*modelBatch) *modelBatch {
	m.needed, m.again, m.grant = g.Needed || m.q.Blocked, again, g
	if g.Void || g.Forgotten {
		for _, b := range all {
			b.stale, b.over = true, b.over || g.Void
		}
		m.back, m.backSpent, m.dry = 0, 0, false
		m.batches = slices.DeleteFunc(m.batches, func(b *modelBatch) bool { return b.over })
	}
	if g.Batch.Window > m.window {
		m.window, m.backSpent = g.Batch.Window, 0
	}
	if g.Lacks == limit.ReasonQuota && again > 0 && g.AgainFor == 0 && m.q.Total > 0 {
		m.free, m.dry = again-m.worth(1), true
	}
	if g.Batch.Tokens == 0 {
		return nil
	}
	b := &modelBatch{tokens: g.Batch.Tokens, from: from, until: until, window: g.Batch.Window}
	m.batches = append(m.batches, b)
	slices.SortStableFunc(m.batches, func(a, b *modelBatch) int { return int(a.until - b.until) })
	return b
}

// lacks says why there is no more.
func (m *pooledModel) lacks() limit.Reason {
	if m.grant.Lacks != "" && m.grant.Lacks != limit.ReasonQuota {
		return m.grant.Lacks
	}
	if m.q.Total == 0 {
		return limit.ReasonNoShare
	}
	return limit.ReasonQuota
}

// coming returns what is there now, or from a later time on, which is the earliest at which there are n.
func (m *pooledModel) coming(now, n int64) (have, from int64) {
	times := []int64{now}
	for _, b := range m.batches {
		times = append(times, max(b.from, now))
	}
	slices.Sort(times)
	for _, at := range times {
		have = m.usable(now)
		for _, b := range m.batches {
			if now < b.from && b.from <= at {
				have += b.tokens
			}
		}
		if have >= n {
			return have, at
		}
	}
	return have, now
}

func (m *pooledModel) due(now, n int64) (d int64, why limit.Reason, known bool) {
	switch {
	case !m.holds():
		return 0, "", true
	case m.q.Blocked:
		return 0, limit.ReasonQuota, false
	}
	have, from := m.coming(now, n)
	if have >= n && from == now {
		return 0, "", true
	} else if have >= n {
		return from - now, m.lacks(), true
	}
	again := m.again
	if m.grant.Coming > 0 && again <= now {
		again += int64(handOver)
	}
	known = again > now && n >= m.grant.AgainFor
	if known {
		d = again - now
	}
	if m.dry {
		d = max(d, m.free+m.worth(n-have)-now)
	}
	return d, m.lacks(), known
}

func (m *pooledModel) expect(now, n int64) int64 {
	d, _, known := m.due(now, n)
	have, _ := m.coming(now, n)
	if m.q.Total == 0 || have >= n || !m.holds() || known && m.grant.Lacks != limit.ReasonQuota {
		return d
	}
	d = max(d, m.worth(n-have))
	if m.grant.Rate > 0 {
		here := int64(float64(n-have) / m.grant.Rate * 1e9)
		if m.grant.Soon > 0 {
			here = min(here, m.worth(n-have)+int64(m.grant.Soon))
		}
		d = max(d, here)
	}
	return d
}

// owe books what was used beyond the draws: no more than is earned in longest. Each token takes its time by the configured total.
func (m *pooledModel) owe(now, n, longest int64) (dropped int64) {
	if !m.needed {
		return 0
	}
	booked := n
	if m.q.Total > 0 {
		m.paid = max(m.paid, now)
		booked = min(n, max((now-m.paid+longest)/m.each, 0))
		m.paid += booked * m.each
	}
	m.owed += booked
	return n - booked
}

func (m *pooledModel) repay(now, n int64) {
	if !m.needed {
		return
	}
	m.paid = max(m.paid, now) - n*m.each
	paid := min(n, m.owed)
	m.owed -= paid
	if !m.q.Hard {
		m.giveUp(n-paid, m.window)
	}
}

// A pooledPlay plays random operations on a Bucket and on its model.
type pooledPlay struct {
	t     *testing.T
	seed  uint64
	r     *rand.Rand
	s     *Bucket
	m     *pooledModel
	now   int64
	draws []pooledDraw
	all   []*modelBatch
}

func newPooledPlay(t *testing.T, seed uint64) *pooledPlay {
	p := &pooledPlay{t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 5))}
	r := p.r
	q := limit.Quota{Shadow: r.IntN(8) == 0, Blocked: r.IntN(12) == 0, Budgets: []limit.Budget{{Amount: 100, Per: limit.PeriodDay}}}
	if r.IntN(3) > 0 {
		q.Total = []int{8, 16, 32}[r.IntN(3)]
	}
	if q.Total > 0 && r.IntN(4) == 0 {
		q.Budgets, q.Hard, q.Burst = nil, r.IntN(2) == 0, 1
	}
	q = q.WithDefaults(0)
	p.s = New(Terms{Quota: q, Pooled: true, Debt: 2 * time.Second})
	p.m = &pooledModel{q: q, needed: q.Total > 0 || q.Blocked || len(q.Budgets) > 0, each: second / int64(max(q.Total, 1))}
	return p
}

// step plays one operation, for about n tokens.
func (p *pooledPlay) step(n int64) {
	s, m, now := p.s, p.m, p.now
	switch p.r.IntN(8) {
	case 0, 1:
		d, ok := s.Take(now, n)
		draw, want := m.take(now, n)
		require.Equal(p.t, want, ok, "seed %d", p.seed)
		if draw.d = d; ok {
			p.draws = append(p.draws, draw)
		}
	case 2:
		if len(p.draws) > 0 {
			d := &p.draws[p.r.IntN(len(p.draws))]
			n := p.r.Int64N(d.n + 1)
			d.n -= n
			m.giveBack(now, d, n)
			s.Return(now, d.d, n)
		}
	case 3:
		keep := p.r.Int64N(4) * grid
		var got sharing.TagReport
		s.Report(now, keep, &got)
		want := m.report(now, keep)
		if want.InHand == 0 {
			got.Lasts = 0
		}
		require.Equal(p.t, want, got, "seed %d", p.seed)
	case 4, 5:
		p.grant(n)
	case 6:
		require.Equal(p.t, m.owe(now, n, 2*second), s.Owe(now, n), "seed %d", p.seed)
	case 7:
		m.repay(now, n)
		s.Repay(now, n)
	}
}

// grant grants a batch, or none, and says something of the next one.
func (p *pooledPlay) grant(n int64) {
	r := p.r
	g := sharing.TagGrant{
		Needed: r.IntN(12) > 0, Void: r.IntN(20) == 0, Forgotten: r.IntN(20) == 0, Lowered: r.IntN(2) == 0, Spent: n, Budget: 100,
		Lacks: []limit.Reason{"", limit.ReasonQuota, limit.ReasonQuota, limit.ReasonBudget}[r.IntN(4)],
		Rate:  []float64{0, 1, 4}[r.IntN(3)], Soon: time.Duration(r.Int64N(3) * grid), Coming: r.Int64N(2),
	}
	if r.IntN(4) == 0 {
		g.AgainFor = n
	}
	from := p.now + []int64{0, 0, 1, 2, -1}[r.IntN(5)]*grid
	if r.IntN(3) > 0 {
		g.Batch = sharing.Batch{Tokens: r.Int64N(9), Window: p.m.window + max(r.Int64N(6)-3, -1)}
	}
	until, again := from+(1+r.Int64N(8))*grid, max(p.now+(r.Int64N(6)-2)*grid, 0)
	if b := p.m.put(g, from, until, again, p.all); b != nil {
		p.all = append(p.all, b)
	}
	p.s.Grant(g, from, until, again)
}

// check compares everything that the bucket says with the model.
func (p *pooledPlay) check(n int64) {
	t, s, m, now := p.t, p.s, p.m, p.now
	require.Equal(t, m.holds(), s.Holds())
	hand := int64(Endless)
	if m.holds() && m.q.Blocked {
		hand = 0
	} else if m.holds() {
		hand = m.usable(now)
	}
	require.Equal(t, hand, s.AtHand(now), "seed %d", p.seed)
	idle := m.back == 0 && m.owed == 0 && !slices.ContainsFunc(m.batches, func(b *modelBatch) bool { return b.tokens > 0 && b.until > now })
	require.Equal(t, idle, s.Idle(now), "seed %d", p.seed)
	require.Equal(t, []any{m.shadowed, m.grant.Lowered}, []any{s.Shadowed(), s.Lowered(now)})
	spent, amount := s.Spent(now)
	require.Equal(t, []int64{m.grant.Spent, m.grant.Budget}, []int64{spent, amount})
	d, why, known := m.due(now, n)
	gotD, gotWhy, gotKnown := s.Due(now, n)
	require.Equal(t, []any{time.Duration(d), why, known}, []any{gotD, gotWhy, gotKnown}, "seed %d: %d of %+v", p.seed, n, m.grant)
	require.Equal(t, time.Duration(m.expect(now, n)), s.Expect(now, n), "seed %d", p.seed)
	if why == "" {
		why = limit.ReasonQuota
	}
	require.Equal(t, why, s.Lacks(now, n))
	next := m.again
	if next <= now {
		next = 0
	}
	for _, b := range m.batches {
		if b.from > now && (next == 0 || b.from < next) {
			next = b.from
		}
	}
	require.Equal(t, next, s.NextChange(now), "seed %d", p.seed)
}

// A batch that is used, given back, given up and forgotten is counted once, for any order of operations.
func TestPooledBucketAgreesWithAModel(t *testing.T) {
	for seed := range uint64(600) {
		p := newPooledPlay(t, seed)
		for range 80 {
			p.now += []int64{0, 1, 1, 2, 4}[p.r.IntN(5)] * grid
			n := 1 + p.r.Int64N(8)
			p.step(n)
			p.check(n)
		}
	}
}
