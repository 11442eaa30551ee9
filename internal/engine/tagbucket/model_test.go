package tagbucket

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// grid is the step of times and rates at which nothing is rounded, and many things happen at the same moment.
const grid = second / 8

// A localModel is a Bucket without a pool: what it has is a time that is saved up, and a budget is a sum of what was drawn in its window.
type localModel struct {
	q           limit.Quota
	each        int64 // time for a token; 0: there is no total
	burst, room int64
	saved, at   int64 // below 0: debt
	longest     int64
	budgets     []*modelBudget
	turn        int // counts operations
	wall        time.Time
	shadowed    int64

	rate, level float64 // of the bound
	boundAt     int64
	largest     int64
	pressed     bool
}

type modelBudget struct {
	limit.Budget
	end   time.Time
	began int
	spent int64
}

func (b *modelBudget) left() int64 { return max(b.Amount-b.spent, 0) }

type modelDraw struct {
	d       *Draw
	n       int64
	turn    int
	counted bool
}

func (m *localModel) holds() bool {
	return (m.q.Total > 0 || m.q.Blocked || len(m.q.Budgets) > 0) && !m.q.Shadow
}

// advance lets time pass.
func (m *localModel) advance(now int64) {
	m.wall = m.wall.Add(time.Duration(now - m.at))
	m.saved = min(m.saved+now-m.at, max(m.burst, m.room)*m.each)
	m.at = now
	m.roll()
}

func (m *localModel) roll() {
	for _, b := range m.budgets {
		if !m.wall.Before(b.end) {
			_, b.end = b.Window(m.wall)
			b.spent, b.began = 0, m.turn
		}
	}
}

// settle lets the bound earn.
func (m *localModel) settle() {
	m.level = min(m.level+m.rate*float64(m.at-m.boundAt)/1e9, m.most())
	m.boundAt = m.at
}

func (m *localModel) most() float64 { return max(m.rate/10, float64(m.largest), 1) }

func (m *localModel) spend(n int64, turn int) {
	for _, b := range m.budgets {
		if turn >= b.began {
			b.spent = max(b.spent+n, 0)
		}
	}
}

// quotaHas returns how many tokens the quota lets draw now.
func (m *localModel) quotaHas() int64 {
	if m.q.Blocked {
		return 0
	}
	n := int64(math.MaxInt64)
	if m.each > 0 {
		n = max(m.saved/m.each, 0)
		if m.saved < 0 {
			n = 0
		}
	}
	for _, b := range m.budgets {
		if b.Then != limit.ThenLower {
			n = min(n, b.left())
		}
	}
	return n
}

func (m *localModel) atHand() int64 {
	n := int64(Endless)
	if m.rate > 0 {
		n = int64(max(math.Floor(m.level), 0))
	}
	if m.holds() {
		n = min(n, m.quotaHas())
	}
	return n
}

func (m *localModel) due(n int64) (d int64, why limit.Reason, known bool) {
	known = true
	if m.holds() {
		why = limit.ReasonQuota
		known = !m.q.Blocked
		if known {
			d = max(n*m.each-m.saved, 0)
			if m.each == 0 {
				d = 0
			}
			for _, b := range m.budgets {
				if wait := int64(b.end.Sub(m.wall)); b.Then != limit.ThenLower && b.left() < n && wait > d {
					d, why = wait, limit.ReasonBudget
				}
			}
		}
	}
	if m.rate > 0 {
		if wait := int64(math.Ceil((float64(n) - m.level) / m.rate * 1e9)); wait > d {
			d = wait
			if known {
				why = limit.ReasonAdaptive
			}
		}
	}
	return d, why, known
}

func (m *localModel) take(n int64) (draw modelDraw, ok bool) {
	draw = modelDraw{n: n, turn: m.turn}
	if needed := m.q.Total > 0 || m.q.Blocked || len(m.q.Budgets) > 0; needed {
		draw.counted = m.quotaHas() >= n
		if !draw.counted && !m.q.Shadow {
			return draw, false
		}
		if draw.counted {
			m.saved -= n * m.each
			m.spend(n, m.turn)
		} else {
			m.shadowed += n
		}
	}
	if m.rate > 0 {
		m.settle()
		m.level = max(m.level-float64(n), min(m.level, -m.most()))
	}
	return draw, true
}

func (m *localModel) giveBack(n int64) {
	if m.rate > 0 {
		m.settle()
		m.level += float64(n)
	}
}

func (m *localModel) owe(n int64) (dropped int64) {
	if m.rate > 0 {
		m.settle()
		m.level = max(m.level-float64(n), min(m.level, -m.rate*float64(m.longest)/1e9))
	}
	if m.q.Total == 0 && !m.q.Blocked && len(m.q.Budgets) == 0 {
		return 0
	}
	booked := n
	if m.each > 0 {
		booked = min(n, max((m.saved+m.longest)/m.each, 0))
		m.saved -= booked * m.each
	}
	m.spend(booked, m.turn)
	return n - booked
}

// A localPlay plays random operations on a Bucket and on its model.
type localPlay struct {
	t     *testing.T
	seed  uint64
	r     *rand.Rand
	s     *Bucket
	m     *localModel
	now   int64
	draws []modelDraw
}

func newLocalPlay(t *testing.T, seed uint64) *localPlay {
	p := &localPlay{t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 4))}
	q := limit.Quota{Shadow: p.r.IntN(6) == 0, Blocked: p.r.IntN(12) == 0}
	part := 1.0
	if p.r.IntN(4) > 0 {
		q.Total, q.Burst = []int{8, 16, 32}[p.r.IntN(3)], 2+2*p.r.IntN(8)
	}
	for range p.r.IntN(4) {
		then := []limit.Then{limit.ThenLower, limit.ThenFallback, ""}[p.r.IntN(3)]
		per := []limit.Period{limit.PeriodHour, limit.PeriodDay}[p.r.IntN(2)]
		q.Budgets = append(q.Budgets, limit.Budget{Amount: 5 + p.r.Int64N(30), Per: per, Zone: "UTC", Then: then})
	}
	if len(q.Budgets) == 0 && p.r.IntN(2) == 0 {
		part = 0.5
	}
	q = q.WithDefaults(0)
	terms := Terms{Quota: q, Part: part, Wall: time.Date(2026, 3, 1, 22, 59, 50, 0, time.UTC), Debt: time.Duration(p.r.IntN(3)) * time.Second}
	p.s = New(terms)
	p.m = &localModel{q: q, wall: terms.Wall, longest: int64(terms.Debt)}
	if terms.Debt == 0 {
		p.m.longest = int64(leastDebt)
	}
	if q.Total > 0 {
		p.m.each, p.m.burst = second/int64(float64(q.Total)*part), max(int64(float64(q.Burst)*part), 1)
	}
	for _, b := range q.Budgets {
		p.m.budgets = append(p.m.budgets, &modelBudget{Budget: b})
	}
	return p
}

func (p *localPlay) step() {
	s, m := p.s, p.m
	m.turn++
	if p.r.IntN(3) > 0 {
		p.now += []int64{1, 1, 2, 4, 24}[p.r.IntN(5)] * grid
	}
	if p.r.IntN(40) == 0 {
		p.now += int64(p.r.IntN(120)) * int64(time.Minute)
	}
	m.advance(p.now)
	n := p.r.Int64N(8)
	switch p.r.IntN(12) {
	case 0, 1, 2:
		n++
		d, ok := s.Take(p.now, n)
		draw, want := m.take(n)
		require.Equal(p.t, want, ok, "seed %d", p.seed)
		if draw.d = d; ok {
			p.draws = append(p.draws, draw)
		}
	case 3, 4:
		p.returnSome()
	case 5:
		n *= 3
		require.Equal(p.t, m.owe(n), s.Owe(p.now, n), "seed %d", p.seed)
	case 6:
		m.giveBack(n)
		m.saved += n * m.each
		m.spend(-n, m.turn)
		s.Repay(p.now, n)
	case 7:
		if p.r.IntN(3) == 0 {
			m.saved, m.level = max(m.saved, 0), max(m.level, 0)
			s.Forgive(p.now)
		}
	case 8:
		large := p.r.Int64N(20)
		if m.room = n * 3; m.rate > 0 {
			m.largest = max(m.largest, large)
		}
		s.Reach(p.now, large, n*3)
	case 9:
		p.bound([]float64{0, math.Inf(1), math.NaN(), -1, 8, 16, 64}[p.r.IntN(7)])
	case 10:
		s.Spent(p.now) // a window that is over before the clock moves is over
		m.wall = m.wall.Add(time.Duration(p.r.IntN(9)-4) * 300 * time.Millisecond)
		if p.r.IntN(8) == 0 {
			m.wall = m.wall.Add(time.Duration(p.r.IntN(9)-4) * 10 * time.Minute)
		}
		s.Anchor(p.now, m.wall)
		m.roll()
	case 11:
		n++
		if m.rate > 0 && (!m.holds() || m.quotaHas() >= n) { // else it is not the bound that holds it
			m.largest = max(m.largest, n)
			m.settle()
			m.pressed = m.pressed || m.level < float64(n)
		}
		require.Equal(p.t, m.atHand() >= n, s.Has(p.now, n), "seed %d", p.seed)
	}
	m.settle()
}

func (p *localPlay) returnSome() {
	if len(p.draws) == 0 {
		return
	}
	i := p.r.IntN(len(p.draws))
	d := &p.draws[i]
	n := p.r.Int64N(d.n + 1)
	d.n -= n
	p.m.giveBack(n)
	if d.counted {
		p.m.saved += n * p.m.each
		p.m.spend(-n, d.turn)
	}
	p.s.Return(p.now, d.d, n)
}

func (p *localPlay) bound(rate float64) {
	m := p.m
	m.settle()
	p.s.SetBound(p.now, rate)
	if !(rate > 0) || math.IsInf(rate, 1) {
		rate, m.level, m.largest, m.pressed = 0, 0, 0, false
	} else if m.rate == 0 {
		m.level, m.largest = 0, 0
	}
	m.rate = rate
	require.InDelta(p.t, rate, p.s.Bound(), 0)
}

// check compares everything that the bucket says with the model.
func (p *localPlay) check() {
	t, s, m, now := p.t, p.s, p.m, p.now
	m.saved = min(m.saved, max(m.burst, m.room)*m.each)
	var spent, amount int64
	var first *modelBudget
	lowered, used := false, false
	for _, b := range m.budgets {
		if first == nil || b.end.Before(first.end) {
			first = b
			spent, amount = b.spent, b.Amount
		}
		lowered = lowered || b.Then == limit.ThenLower && b.left() == 0
		used = used || b.spent > 0
	}
	gotSpent, gotAmount := s.Spent(now)
	require.Equal(t, []int64{spent, amount}, []int64{gotSpent, gotAmount}, "seed %d", p.seed)
	require.Equal(t, lowered, s.Lowered(now))
	require.Equal(t, m.shadowed, s.Shadowed())
	require.Equal(t, m.atHand(), s.AtHand(now), "seed %d", p.seed)
	require.Equal(t, m.holds() || m.rate > 0, s.Holds())
	full := m.each == 0 || m.saved >= m.burst*m.each
	require.Equal(t, full && !used, s.Idle(now), "seed %d", p.seed)
	n := p.r.Int64N(12)
	wait, why, known := m.due(n)
	d, gotWhy, gotKnown := s.Due(now, n)
	require.Equal(t, []any{time.Duration(wait), why, known}, []any{d, gotWhy, gotKnown}, "seed %d, %d tokens", p.seed, n)
	require.Equal(t, d, s.Expect(now, n))
	if why == "" && m.rate > 0 {
		why = limit.ReasonAdaptive
	} else if why == "" {
		why = limit.ReasonQuota
	}
	require.Equal(t, why, s.Lacks(now, n))
	room := int64(Endless)
	if m.holds() && m.each > 0 {
		room = max(m.burst, m.room)
	}
	if m.rate > 0 {
		room = min(room, int64(m.most()))
	}
	require.Equal(t, room, s.Room(), "seed %d", p.seed)
	if p.r.IntN(3) == 0 {
		waiting := p.r.Int64N(3)
		pressed := m.pressed || m.rate > 0 && int64(max(math.Floor(m.level), 0)) < waiting
		require.Equal(t, pressed, s.Pressed(now, waiting), "seed %d", p.seed)
		m.pressed = false
	}
}

// A bucket without a pool has what its quota, its budgets and its bound say, for any order of operations.
func TestLocalBucketAgreesWithAModel(t *testing.T) {
	for seed := range uint64(300) {
		p := newLocalPlay(t, seed)
		p.m.roll()
		for range 80 {
			p.step()
			p.check()
		}
	}
}
