package sim

import "time"

// An eventKind is the kind of an event.
type eventKind uint8

const (
	eventWake    eventKind = iota // a process has something to do
	eventArrive                   // a message reaches the store
	eventDeliver                  // a message reaches its process
	eventDraw                     // a process's callers draw
	eventDo                       // anything else
)

// An event is something that happens at a moment of true time.
type event struct {
	kind eventKind
	gen  uint32 // of the process's timer, for eventWake
	p    *process
	m    *message
	do   func()
}

// A queue holds the future events in a heap with four children per node. Its nodes hold no pointers, so that moving them costs the garbage
// collector nothing.
type queue struct {
	heap  []node
	slots []event
	free  []int32
	order uint64
}

type node struct {
	at    time.Duration
	order uint64 // first pushed, first popped at the same time
	slot  int32
}

func (n *node) before(m *node) bool { return n.at < m.at || n.at == m.at && n.order < m.order }

func (q *queue) push(at time.Duration, e event) {
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

// pop removes and returns the first event. ok is false if there is none.
func (q *queue) pop() (at time.Duration, e event, ok bool) {
	if len(q.heap) == 0 {
		return 0, event{}, false
	}
	top, last := q.heap[0], q.heap[len(q.heap)-1]
	q.heap = q.heap[:len(q.heap)-1]
	if len(q.heap) > 0 {
		q.sink(last)
	}
	e = q.slots[top.slot]
	q.slots[top.slot] = event{}
	q.free = append(q.free, top.slot)
	return top.at, e, true
}

// sink moves n down from the top to its place.
func (q *queue) sink(n node) {
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

// discard drops the events that match selects, in no order.
func (q *queue) discard(match func(at time.Duration, e *event) bool) {
	kept := q.heap
	q.heap = nil
	nodes := make([]node, 0, len(kept))
	for _, n := range kept {
		if match(n.at, &q.slots[n.slot]) {
			q.slots[n.slot] = event{}
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
