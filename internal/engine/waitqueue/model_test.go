package waitqueue

import (
	"cmp"
	"slices"
)

// A modelQueue is a Queue without lines, heaps and sums: a list of waiters, and the rules of the order.
type modelQueue struct {
	fair, several bool
	list          []*modelPlace
	now, latest   float64
	start, weight []float64 // by tag queue; the last one is that of waiters without a tag queue
}

type modelPlace struct {
	w       *Waiter[int]
	tag     int
	several bool // stands in several queues, as far as the queue knows
	aside   bool
}

func (m *modelQueue) at(w *Waiter[int]) *modelPlace {
	return m.list[slices.IndexFunc(m.list, func(p *modelPlace) bool { return p.w == w })]
}

// inTag reports whether a waiter is in a tag queue's line.
func (m *modelQueue) inTag(p *modelPlace) bool { return m.fair && !p.several && !p.aside }

func (m *modelQueue) busy(tag int) bool {
	return slices.ContainsFunc(m.list, func(p *modelPlace) bool { return m.inTag(p) && p.tag == tag })
}

// put gives p its place: a tag queue that was idle does not start in the past.
func (m *modelQueue) put(p *modelPlace) {
	p.aside, p.several = true, p.w.Many
	if m.fair && !p.several && !m.busy(p.tag) {
		m.start[p.tag] = max(m.start[p.tag], m.now)
	}
	p.aside = false
}

func (m *modelQueue) insert(w *Waiter[int], tag int) {
	if len(m.list) == 0 && !w.Many {
		m.now = m.latest
	}
	p := &modelPlace{w: w, tag: tag}
	m.put(p)
	m.list = append(m.list, p)
}

func (m *modelQueue) remove(w *Waiter[int]) {
	m.list = slices.DeleteFunc(m.list, func(p *modelPlace) bool { return p.w == w })
}

// served counts a grant. The time is the start of who was served, or an earlier one of those that wait.
func (m *modelQueue) served(tag int, n int) {
	start := max(m.start[tag], m.now)
	m.start[tag] = start + float64(n)/m.weight[tag]
	m.latest = max(m.latest, m.start[tag])
	for i, s := range m.start {
		if m.busy(i) {
			start = min(start, s)
		}
	}
	m.now = start
}

func (m *modelQueue) setWeight(tag int, weight float64) {
	if !(weight >= leastWeight) {
		weight = leastWeight
	}
	if m.start[tag] > m.now {
		m.start[tag] = m.now + (m.start[tag]-m.now)*m.weight[tag]/weight
		m.latest = max(m.latest, m.start[tag])
	}
	m.weight[tag] = weight
}

// compare orders the waiters of one line.
func (m *modelQueue) compare(a, b *modelPlace) int {
	rank := func(v *Waiter[int]) (n int) {
		if m.several && !v.Many {
			n = 2
		}
		if v.Late {
			n++
		}
		return n
	}
	return cmp.Or(rank(a.w)-rank(b.w), cmp.Compare(a.w.Age, b.w.Age))
}

// order returns all waiters: those of the common line, those set aside, and those of the tag queues as they would be served.
func (m *modelQueue) order() (first *Waiter[int], all []*Waiter[int]) {
	var line, aside []*modelPlace
	tags := make([][]*modelPlace, len(m.start))
	sorted := slices.SortedFunc(slices.Values(m.list), m.compare)
	for _, p := range sorted {
		switch {
		case p.aside:
			aside = append(aside, p)
		case m.inTag(p):
			tags[p.tag] = append(tags[p.tag], p)
		default:
			line = append(line, p)
		}
	}
	var turns []*modelPlace
	start := slices.Clone(m.start)
	for {
		next := -1
		for i, l := range tags {
			if len(l) > 0 && (next < 0 || start[i] < start[next] || start[i] == start[next] && l[0].w.Age < tags[next][0].w.Age) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		turns = append(turns, tags[next][0])
		start[next] += float64(tags[next][0].w.Least) / m.weight[next]
		tags[next] = tags[next][1:]
	}
	if served := slices.Concat(line, turns); len(served) > 0 {
		first = served[0].w
	}
	for _, p := range slices.Concat(line, aside, turns) {
		all = append(all, p.w)
	}
	return first, all
}

// alone reports whether only waiters of one tag queue wait.
func (m *modelQueue) alone(tag int) bool {
	waits := slices.DeleteFunc(slices.Clone(m.list), func(p *modelPlace) bool { return p.aside })
	others := slices.ContainsFunc(waits, func(p *modelPlace) bool { return p.several || p.tag != tag })
	return len(waits) == 0 || m.fair && !others
}
