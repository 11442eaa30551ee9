package waitqueue

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
)

// A queuePlay plays random operations on a queue and on its model.
type queuePlay struct {
	t       *testing.T
	seed    uint64
	r       *rand.Rand
	q       *Queue[int]
	m       *modelQueue
	tags    []*TagQueue[int] // the last is nil
	units   bool             // everybody wants one token, and no two tag queues have the same weight
	ordered bool             // SetStart orders the tag queues
}

func newQueuePlay(t *testing.T, seed uint64) *queuePlay {
	p := &queuePlay{t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 7)), q: &Queue[int]{}, m: &modelQueue{}}
	p.units = seed%2 == 0
	switch seed / 2 % 6 {
	case 0:
		p.m.several = true
		p.q.SeveralFirst()
	case 1:
	case 2:
		p.m.fair, p.ordered = true, true
		p.m.now, p.m.latest = math.Inf(-1), math.Inf(-1)
		p.q.MakeOrdered()
	default:
		p.m.fair = true
		p.q.MakeFair()
	}
	for i := range 4 {
		weight := float64(int(1) << i)
		if p.units {
			weight *= 1 + p.r.Float64()
		}
		p.tags = append(p.tags, NewTagQueue[int](weight))
		p.m.weight = append(p.m.weight, weight)
	}
	p.tags, p.m.weight = append(p.tags, nil), append(p.m.weight, math.Inf(1))
	p.m.start = make([]float64, len(p.tags))
	require.Equal(t, p.m.fair, p.q.Fair())
	return p
}

// newcomer returns a waiter, and its tag queue. It may have come before all that wait.
func (p *queuePlay) newcomer() (w *Waiter[int], tag int) {
	tag = p.r.IntN(len(p.tags) - 1)
	if p.seed%5 == 0 || p.r.IntN(10) == 0 && !p.units {
		tag = p.r.IntN(len(p.tags))
	}
	w = &Waiter[int]{Least: 1, TagQueue: p.tags[tag], Deadline: sharing.Never, Many: p.r.IntN(6) == 0, Attempt: &Attempt[int]{turn: make(chan struct{}, 1)}}
	if !p.units {
		w.Least += p.r.IntN(8)
	}
	if !p.m.fair {
		w.Late = p.r.IntN(4) == 0
	}
	if p.r.IntN(3) == 0 {
		w.Deadline = 1
	}
	w.Early, w.WakeFirst = p.r.IntN(3) == 0 && !w.Many, p.r.IntN(6) == 0
	w.Age = arrivals.Add(2)
	if p.r.IntN(3) == 0 {
		w.Age -= uint64(p.r.IntN(40))*2 + 1
		for slices.ContainsFunc(p.m.list, func(o *modelPlace) bool { return o.w.Age == w.Age }) {
			w.Age = arrivals.Add(2)
		}
	}
	return w, tag
}

func (p *queuePlay) any() *Waiter[int] {
	if len(p.m.list) == 0 {
		return nil
	}
	return p.m.list[p.r.IntN(len(p.m.list))].w
}

// step plays one operation, and returns in how many steps the queue does that, as far as they tell who comes next; 0: any number.
func (p *queuePlay) step() (turns int) {
	w := p.any()
	switch op := p.r.IntN(14); {
	case op < 5 && len(p.m.list) < 25 || w == nil:
		w, tag := p.newcomer()
		p.m.insert(w, tag)
		p.q.Insert(w)
		return 1
	case op < 8:
		if p.q.First != nil && p.r.IntN(3) > 0 {
			w = p.q.First
		}
		if p.takeOut(w, op > 5); op > 5 {
			return 2
		}
		return 1
	case op == 8:
		p.move(w)
	case op == 9 && !p.m.several:
		was := p.m.at(w).aside
		require.Equal(p.t, !was, p.q.SetAside(w))
		p.m.at(w).aside = true
	case op == 10 && !p.m.several:
		if at := p.m.at(w); at.aside {
			p.m.put(at)
		}
		p.q.Recall(w)
	case op == 11 && !p.m.several && p.r.IntN(4) == 0:
		p.refit()
	case op == 12 && p.m.fair:
		p.reorder(p.r.IntN(len(p.tags) - 1))
	case op == 13 && p.m.fair && !p.ordered: // a grant to a caller that did not wait, or that is gone
		w, tag := p.newcomer()
		if len(p.m.list) > 0 {
			p.m.served(tag, 3)
		}
		p.q.Served(w, 3)
	}
	return 0
}

// takeOut takes a waiter out, and may grant it its tokens.
func (p *queuePlay) takeOut(w *Waiter[int], granted bool) {
	collected := int64(0)
	if p.q.First == w {
		collected = p.q.Collected
	}
	tag := p.m.at(w).tag
	p.m.remove(w)
	require.Equal(p.t, collected, p.q.Remove(w))
	require.False(p.t, w.Queued())
	if granted && !p.ordered {
		if p.m.fair {
			p.m.served(tag, w.Least)
		}
		p.q.Served(w, w.Least)
	}
	if p.q.First != nil && !p.m.fair {
		p.q.Collected = p.r.Int64N(9)
	}
}

// move gives w a place of another kind, or looks whether it has one.
func (p *queuePlay) move(w *Waiter[int]) {
	at := p.m.at(w)
	if at.aside {
		return
	}
	_, before := p.m.order()
	changed := p.r.IntN(2) == 0 && (p.m.fair || p.m.several) && !w.Many
	if changed {
		w.Many, w.Early = true, false
	} else if !p.m.fair {
		w.Late = p.r.IntN(2) == 0
	}
	collected := p.q.Collected
	p.m.remove(w)
	if p.m.inTag(at) != (p.m.fair && !w.Many) || !p.m.fair {
		p.m.insert(w, at.tag)
	} else {
		p.m.list = append(p.m.list, at)
	}
	_, after := p.m.order()
	require.Equal(p.t, p.m.fair && changed || !p.m.fair && !slices.Equal(before, after), p.q.Move(w), "seed %d", p.seed)
	require.Equal(p.t, collected, p.q.Collected)
}

// refit sets some aside, and gives others their places again.
func (p *queuePlay) refit() {
	fit := map[*Waiter[int]]bool{}
	for _, w := range slices.Collect(p.q.All()) {
		fit[w] = p.r.IntN(3) > 0
		if at := p.m.at(w); !fit[w] {
			at.aside = true
		} else if at.aside {
			p.m.put(at)
		}
	}
	p.q.Refit(func(w *Waiter[int]) bool { return fit[w] })
}

// reorder gives a tag queue another weight or start.
func (p *queuePlay) reorder(tag int) {
	if p.ordered {
		p.m.start[tag] = float64(p.r.IntN(5))
		p.q.SetStart(p.tags[tag], p.m.start[tag])
		return
	}
	weight := float64(int(1) << p.r.IntN(8))
	if p.units {
		weight *= 1 + p.r.Float64()
	}
	if p.r.IntN(20) == 0 {
		weight = []float64{0, -1, math.NaN(), leastWeight}[p.r.IntN(4)]
	}
	p.m.setWeight(tag, weight)
	p.q.SetWeight(p.tags[tag], weight)
	require.Equal(p.t, p.m.weight[tag], p.tags[tag].Weight()) //nolint:testifylint // it is the same number
}

// check compares everything that the queue says with the model.
func (p *queuePlay) check() {
	t, q, m := p.t, p.q, p.m
	first, order := m.order()
	require.True(t, slices.Equal(order, slices.Collect(q.All())), "seed %d", p.seed)
	require.Same(t, first, q.First, "seed %d", p.seed)
	require.True(t, slices.Equal(byAge(order), byAge(slices.Collect(q.Unordered()))))
	require.Equal(t, len(order), q.Len)
	require.Equal(t, len(order) == 0, q.Empty())
	tokens, bounded, plain := 0, 0, 0
	var aside []*Waiter[int]
	for _, w := range order {
		at := m.at(w)
		tokens += w.Least
		if w.Deadline != sharing.Never {
			bounded++
		}
		if w.TagQueue == nil && m.inTag(at) {
			plain++
		}
		if at.aside {
			aside = append(aside, w)
		}
		require.Equal(t, at.aside, q.IsAside(w))
		require.True(t, w.Queued())
		require.Equal(t, w == first, q.IsNext(w))
		require.Equal(t, m.alone(at.tag), q.Alone(w), "seed %d", p.seed)
	}
	require.Equal(t, []int{tokens, bounded}, []int{q.Tokens, q.Bounded})
	require.True(t, slices.Equal(aside, slices.Collect(q.Aside())))
	before := 0
	for _, w := range order {
		if at := m.at(w); at.aside {
			continue
		} else if p.units && m.inTag(at) {
			require.InDelta(t, before, q.Before(w), float64(plain), "seed %d", p.seed)
		} else if !m.inTag(at) {
			require.Equal(t, before, q.Before(w))
			require.Equal(t, before, q.About(w))
		}
		before += w.Least
		require.LessOrEqual(t, q.About(w), tokens-sum(aside)-w.Least)
		require.Equal(t, !m.fair && before == tokens-sum(aside), q.IsLast(w))
	}
	for i, l := range p.tags[:len(p.tags)-1] {
		require.Equal(t, !m.busy(i), l.Empty())
	}
}

func byAge(list []*Waiter[int]) []*Waiter[int] {
	return slices.SortedFunc(slices.Values(list), func(v, w *Waiter[int]) int { return cmp.Compare(v.Age, w.Age) })
}

func sum(list []*Waiter[int]) (tokens int) {
	for _, w := range list {
		tokens += w.Least
	}
	return tokens
}

// probe compares what the queue says of a caller with what becomes of it when it comes.
func (p *queuePlay) probe() {
	w, tag := p.newcomer()
	if p.r.IntN(2) == 0 {
		w.Age = Latest
	}
	next, before, last, empty := p.q.IsNext(w), p.q.Before(w), p.q.IsLast(w), p.q.Empty()
	require.False(p.t, last)
	p.m.insert(w, tag)
	p.q.Insert(w)
	require.Equal(p.t, p.q.First == w, next, "seed %d", p.seed)
	if p.ordered || !empty {
		require.Equal(p.t, p.q.Before(w), before, "seed %d", p.seed)
	}
	p.check()
	p.takeOut(w, false)
}

// checkWoken checks that an early waiter that comes first is woken as soon as others wait, that one that has asked for it is woken as soon as it
// comes first, and that nobody else is.
func (p *queuePlay) checkWoken(turns int) {
	for _, at := range p.m.list {
		w, woken := at.w, len(at.w.Attempt.turn) > 0
		wants := p.q.First == w && (w.WakeFirst || w.Early && !p.m.alone(at.tag))
		if woken {
			<-w.Attempt.turn
		}
		switch turns {
		case 1:
			require.Equal(p.t, wants, woken)
		case 2:
			require.False(p.t, wants && !woken)
		}
	}
}

// The queue does what its rules say, for any order of operations.
func TestQueueAgreesWithAModel(t *testing.T) {
	for seed := range uint64(120) {
		p := newQueuePlay(t, seed)
		for range 100 {
			p.checkWoken(p.step())
			p.check()
			p.probe()
			p.checkWoken(0)
		}
		for w := range p.q.All() {
			p.takeOut(w, false)
		}
		p.check()
	}
}

// About counts what comes before a waiter from the sum of all weights, to a waiter of each tag queue, while none of them runs out of waiters.
func TestAboutFollowsTheWeights(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 9))
		q, l := fairQueue(1, 7, 30, 200)
		for i, tag := range l {
			for range 200 * (i + 1) {
				push(q, tag, 1)
			}
		}
		common := &Waiter[int]{Least: 50, Many: true}
		q.Push(common)
		aside := push(q, l[0], 1000)
		q.SetAside(aside)
		for range 2 + int(seed) {
			push(q, nil, 1)
		}
		near := func(tag *TagQueue[int], weight float64) {
			own := slices.Collect(q.All())
			own = slices.DeleteFunc(own, func(w *Waiter[int]) bool { return w.TagQueue != tag || q.IsAside(w) || w.Many })
			for range 3 { // those before it take at most half of what waits
				w := own[r.IntN(min(len(own), 1+int(weight/2)))]
				require.InDelta(t, q.Before(w), q.About(w), 5, "seed %d", seed)
			}
		}
		weights := []float64{1, 7, 30, 200}
		for i, tag := range l {
			near(tag, weights[i])
		}
		near(nil, 10)
		last := &Waiter[int]{Least: 1, Age: Latest, TagQueue: NewTagQueue[int](1)}
		require.InDelta(t, q.Before(last), q.About(last), 5, "who comes first of its tag")
		q.Remove(common)
		for range 50 + r.IntN(100) {
			grant(q)
		}
		q.SetWeight(l[0], 100)
		q.SetWeight(l[3], 2)
		weights[0], weights[3] = 100, 2
		for range 50 {
			grant(q)
		}
		for w := range q.All() { // one of them is idle
			if w.TagQueue == l[1] && !q.IsAside(w) {
				q.Remove(w)
			}
		}
		for _, i := range []int{0, 2, 3} {
			near(l[i], weights[i])
		}
		for w := range q.All() {
			q.Remove(w)
		}
		require.Zero(t, q.About(last), "nobody waits")
		for range 100 {
			push(q, l[0], 1)
			push(q, l[2], 1)
		}
		near(l[0], 60)
	}
}
