package virtual

import "time"

// A Queue holds future events in a heap with four children per node. Its nodes hold no pointers, so that moving them costs the garbage
// collector nothing. Of events at one moment the one that was pushed first comes first. The zero Queue is empty.
type Queue[E any] struct {
	heap  []node
	slots []E
	free  []int32
	order uint64
}

type node struct {
	at    time.Duration
	order uint64 // first pushed, first popped at the same time
	slot  int32
}

func (n *node) before(m *node) bool { return n.at < m.at || n.at == m.at && n.order < m.order }

// Push adds an event.
func (q *Queue[E]) Push(at time.Duration, e E) {
	var slot int32
	if n := len(q.free); n > 0 {
		slot, q.free = q.free[n-1], q.free[:n-1]
		q.slots[slot] = e
	} else {
		slot = int32(len(q.slots))
		q.slots = append(q.slots, e)
	}
	q.order++
	q.heap = append(q.heap, node{at, q.order, slot})
	i := len(q.heap) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if !q.heap[i].before(&q.heap[parent]) {
			return
		}
		q.heap[i], q.heap[parent] = q.heap[parent], q.heap[i]
		i = parent
	}
}

// Len returns how many events there are.
func (q *Queue[E]) Len() int { return len(q.heap) }

// Next returns the moment of the first event. ok is false if there is none.
func (q *Queue[E]) Next() (at time.Duration, ok bool) {
	if len(q.heap) == 0 {
		return 0, false
	}
	return q.heap[0].at, true
}

// Pop removes and returns the first event. ok is false if there is none.
func (q *Queue[E]) Pop() (at time.Duration, e E, ok bool) {
	if len(q.heap) == 0 {
		return 0, e, false
	}
	top, last := q.heap[0], q.heap[len(q.heap)-1]
	q.heap = q.heap[:len(q.heap)-1]
	if len(q.heap) > 0 {
		q.sink(last)
	}
	e = q.slots[top.slot]
	q.slots[top.slot] = *new(E)
	q.free = append(q.free, top.slot)
	return top.at, e, true
}

// sink moves n down from the top to its place.
func (q *Queue[E]) sink(n node) {
	i := 0
	for {
		first := 4*i + 1
		if first >= len(q.heap) {
			break
		}
		least := first
		for c := first + 1; c < min(first+4, len(q.heap)); c++ {
			if q.heap[c].before(&q.heap[least]) {
				least = c
			}
		}
		if !q.heap[least].before(&n) {
			break
		}
		q.heap[i] = q.heap[least]
		i = least
	}
	q.heap[i] = n
}

// Discard drops the events that match selects, in no order.
func (q *Queue[E]) Discard(match func(at time.Duration, e *E) bool) {
	kept := q.heap
	q.heap = nil
	nodes := make([]node, 0, len(kept))
	for _, n := range kept {
		if match(n.at, &q.slots[n.slot]) {
			q.slots[n.slot] = *new(E)
			q.free = append(q.free, n.slot)
			continue
		}
		nodes = append(nodes, n)
	}
	for _, n := range nodes {
		q.heap = append(q.heap, n)
		for i := len(q.heap) - 1; i > 0 && q.heap[i].before(&q.heap[(i-1)/4]); i = (i - 1) / 4 {
			q.heap[i], q.heap[(i-1)/4] = q.heap[(i-1)/4], q.heap[i]
		}
	}
}
