package waitqueue

import (
	"container/heap"
	"math"
)

// leastWeight is the smallest weight of a tag queue: one with a rate of 0 is served very slowly.
const leastWeight = 1e-6

// A TagQueue holds the callers of one tag in a fair queue, the oldest first. The zero TagQueue is empty and has the least weight; see
// Queue.SetWeight. Only the first of them has a start in virtual time: so a caller that leaves costs those behind it nothing.
type TagQueue[P any] struct {
	line   line[P]
	weight float64
	start  float64 // of the next one that is served, if that is not in the past
	at     int     // index in the heap
}

// NewTagQueue returns an empty tag queue.
func NewTagQueue[P any](weight float64) *TagQueue[P] { return &TagQueue[P]{weight: weight} }

// Weight is the rate at which the tag queue is served against the others.
func (l *TagQueue[P]) Weight() float64 { return max(l.weight, leastWeight) }

// Empty reports whether nobody stands in the tag queue.
func (l *TagQueue[P]) Empty() bool { return l.line.first == nil }

// A line holds waiters in the order of their ages.
type line[P any] struct {
	first, last *Waiter[P]
	tokens      int  // sum of Least
	several     bool // those that stand in several queues come first
}

// sooner reports whether v comes before w.
func (l *line[P]) sooner(v, w *Waiter[P]) bool {
	if l.several && v.Many != w.Many {
		return v.Many
	}
	if v.Late != w.Late {
		return w.Late
	}
	return v.Age < w.Age
}

// behind returns the last waiter that comes before w; nil: none. It looks from both ends.
func (l *line[P]) behind(w *Waiter[P]) *Waiter[P] {
	head, tail := l.first, l.last
	for head != nil {
		if !l.sooner(head, w) {
			return head.prev
		}
		if l.sooner(tail, w) {
			return tail
		}
		head, tail = head.next, tail.prev
	}
	return nil
}

// before returns the sum of Least over the waiters that come before w. It looks from both ends.
func (l *line[P]) before(w *Waiter[P]) (tokens int) {
	rest := l.tokens
	for head, tail := l.first, l.last; head != nil; head, tail = head.next, tail.prev {
		if !l.sooner(head, w) {
			return tokens
		}
		if l.sooner(tail, w) {
			return rest
		}
		tokens += head.Least
		rest -= tail.Least
	}
	return 0
}

func (l *line[P]) insert(w *Waiter[P]) {
	prev, next := l.behind(w), l.first
	if prev != nil {
		next = prev.next
	}
	w.prev, w.next = prev, next
	if prev == nil {
		l.first = w
	} else {
		prev.next = w
	}
	if next == nil {
		l.last = w
	} else {
		next.prev = w
	}
	l.tokens += w.Least
}

func (l *line[P]) remove(w *Waiter[P]) {
	if w.prev == nil {
		l.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
	l.tokens -= w.Least
}

// busy is the heap of tag queues with waiters: the tag queue that is served next comes first.
type busy[P any] []*TagQueue[P]

// sooner reports whether v, with start a, comes before w, with start b: by the start, and of equal ones by age.
func sooner[P any](a float64, v *Waiter[P], b float64, w *Waiter[P]) bool {
	return a < b || a == b && v.Age < w.Age
}

func (b *busy[P]) Len() int { return len(*b) }

func (b *busy[P]) Less(i, j int) bool {
	v, w := (*b)[i], (*b)[j]
	return sooner(v.start, v.line.first, w.start, w.line.first)
}

func (b *busy[P]) Swap(i, j int) {
	s := *b
	s[i], s[j] = s[j], s[i]
	s[i].at, s[j].at = i, j
}

func (b *busy[P]) Push(x any) {
	l := x.(*TagQueue[P]) //nolint:forcetypeassert,errcheck // nothing else is pushed
	l.at = len(*b)
	*b = append(*b, l)
}

func (b *busy[P]) Pop() any {
	s := *b
	l := s[len(s)-1]
	s[len(s)-1] = nil
	*b = s[:len(s)-1]
	return l
}

// A fair is the tag queues of a queue, and its virtual time: start-time fair queueing (Goyal, Vin and Cheng, 1996). A tag queue's turn comes at its
// start, which each granted token moves by the inverse of its weight. The virtual time is the start of the waiter served last. A new tag queue
// starts there at the earliest, so that an idle one saves up nothing.
type fair[P any] struct {
	busy    busy[P]
	plain   TagQueue[P] // of waiters without a tag queue: what they are granted counts for nothing
	now     float64
	latest  float64 // the largest start of all tag queues
	weights float64 // sum over the busy tag queues
}

// tagQueue returns that of w.
func (f *fair[P]) tagQueue(w *Waiter[P]) *TagQueue[P] {
	if w.TagQueue != nil {
		return w.TagQueue
	}
	f.plain.weight = math.Inf(1)
	return &f.plain
}

// next returns the start of the next waiter of l: no waiter's start is in the past.
func (f *fair[P]) next(l *TagQueue[P]) float64 { return max(f.now, l.start) }

func (f *fair[P]) insert(w *Waiter[P]) {
	l := f.tagQueue(w)
	if l.line.insert(w); l.line.first == l.line.last {
		f.push(l)
	} else {
		heap.Fix(&f.busy, l.at) // perhaps an older one is the first now
	}
}

// push adds a tag queue to the busy ones. It starts at the virtual time at the earliest.
func (f *fair[P]) push(l *TagQueue[P]) {
	l.start = f.next(l)
	if l != &f.plain {
		f.weights += l.Weight()
	}
	heap.Push(&f.busy, l)
}

// pop removes a tag queue from the busy ones.
func (f *fair[P]) pop(l *TagQueue[P]) {
	heap.Remove(&f.busy, l.at)
	if l != &f.plain {
		f.weights -= l.Weight()
	}
	if len(f.busy) == 0 {
		f.weights = 0 // and what rounding has left of it
	}
}

func (f *fair[P]) remove(w *Waiter[P]) {
	l := f.tagQueue(w)
	if l.line.first == w && l.line.last == w {
		f.pop(l)
		l.line.remove(w)
		return
	}
	l.line.remove(w)
	heap.Fix(&f.busy, l.at)
}

// served counts n tokens that were granted to a waiter of l that has left it. A waiter that came before its tag queue's turn does not move the
// time past others.
func (f *fair[P]) served(l *TagQueue[P], n int) {
	start := f.next(l)
	l.start = start + float64(n)/l.Weight()
	f.latest = max(f.latest, l.start)
	if l.line.first != nil {
		heap.Fix(&f.busy, l.at)
	}
	if len(f.busy) > 0 {
		start = min(start, f.busy[0].start)
	}
	f.now = start
}

// weigh sets the weight of a tag queue. Its use above its part counts by the new weight.
func (f *fair[P]) weigh(l *TagQueue[P], w float64) {
	if math.IsNaN(w) {
		w = 0
	}
	was := l.Weight()
	l.weight = w
	l.start = f.now + (f.next(l)-f.now)*was/l.Weight()
	f.latest = max(f.latest, l.start)
	if l.line.first != nil {
		f.weights += l.Weight() - was
		heap.Fix(&f.busy, l.at)
	}
}

// before returns the sum of Least over the tag queues' waiters before w, to about one waiter of each other tag queue. w need not stand there.
func (f *fair[P]) before(w *Waiter[P]) (tokens int) {
	l := f.tagQueue(w)
	own := l.line.before(w)
	start := f.next(l) + float64(own)/l.Weight()
	for _, o := range f.busy {
		if head := o.line.first; o != l && sooner(o.start, head, start, w) {
			own += min(max(head.Least, ceil((start-o.start)*o.Weight())), o.line.tokens)
		}
	}
	return own
}

// about is before, but from the sum of all weights: it takes the time of one waiter however many tag queues there are. It errs only upwards,
// when the other tag queues are short.
func (f *fair[P]) about(w *Waiter[P], all int) (tokens int) {
	l := f.tagQueue(w)
	own := l.line.before(w)
	if len(f.busy) == 0 {
		return 0
	}
	ahead := f.next(l) + float64(own)/l.Weight() - f.busy[0].start
	if ahead <= 0 {
		return own
	}
	others, weights := all-l.line.tokens, f.weights
	if l != &f.plain { // those without a tag queue come first, and have no weight
		own += f.plain.line.tokens
		others -= f.plain.line.tokens
		if l.line.first != nil {
			weights -= l.Weight()
		}
	}
	return own + min(others, ceil(ahead*weights))
}

func ceil(x float64) int {
	return int(math.Ceil(min(x, 1<<53)))
}

// A place is the next waiter of a tag queue, and its start.
type place[P any] struct {
	w     *Waiter[P]
	start float64
	of    *TagQueue[P]
}

// places is a heap of them.
type places[P any] []place[P]

func (p places[P]) sooner(i, j int) bool {
	return sooner(p[i].start, p[i].w, p[j].start, p[j].w)
}

// sink restores the order of the heap after place i has become later.
func (p places[P]) sink(i int) {
	for {
		least := i
		for c := 2*i + 1; c < min(2*i+3, len(p)); c++ {
			if p.sooner(c, least) {
				least = c
			}
		}
		if least == i {
			return
		}
		p[i], p[least] = p[least], p[i]
		i = least
	}
}

// each calls yield for the waiters of all tag queues in the order in which they would be served if nobody came. yield may take its waiter out.
func (f *fair[P]) each(yield func(w *Waiter[P]) bool) {
	heads := make(places[P], len(f.busy))
	for i, l := range f.busy { // a heap by the same order already
		heads[i] = place[P]{w: l.line.first, start: l.start, of: l}
	}
	for len(heads) > 0 {
		top := &heads[0]
		w := top.w
		if top.start += float64(w.Least) / top.of.Weight(); w.next != nil {
			top.w = w.next
		} else {
			last := len(heads) - 1
			heads[0] = heads[last]
			heads = heads[:last]
		}
		heads.sink(0)
		if !yield(w) {
			return
		}
	}
}
