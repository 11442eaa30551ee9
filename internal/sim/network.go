package sim

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A messageKind is the kind of a message.
type messageKind uint8

const (
	messageSync     messageKind = iota // a request, to the store
	messageLeave                       // a leave, to the store
	messageAnswer                      // the answer to a request
	messageRefused                     // the store's error to a request
	messageLeft                        // the store has received the leave
	messageReserve                     // a request for slots, to the store
	messageReserved                    // the answer to it
)

// A message is on its way between a process and the store. A reply reuses the message of its request.
type message struct {
	kind  messageKind
	p     *process
	req   driver.Request
	leave driver.Leave
	ans   driver.Answer
	// An order for slots: its sender's ask, the life of the store that answered, and the spacing of the whole limit at that time.
	ask      *ask
	reserve  driver.Reserve
	reserved driver.Reserved
	life     int
	whole    time.Duration
	// recorded is the true time of the step that made the answer.
	recorded time.Duration
	step     uint64 // of the store, for the same step
}

func (w *world) message(p *process, kind messageKind) *message {
	if n := len(w.spare); n > 0 {
		m := w.spare[n-1]
		w.spare = w.spare[:n-1]
		m.kind, m.p = kind, p
		return m
	}
	return &message{kind: kind, p: p}
}

// release recycles a message that is no longer needed.
func (w *world) release(m *message) {
	m.p = nil
	w.spare = append(w.spare, m)
}

// transmit sends a message: it may be lost, doubled, and late.
func (w *world) transmit(m *message, dir int) {
	l := &w.plan.up
	if dir == down {
		l = &w.plan.down
	}
	if w.calm {
		l = &calmLink
	}
	r := w.rng.net
	if left := m.p.cut[dir] - w.now; left > 0 {
		// A message sent into a partition is lost, or arrives at its end.
		if left > time.Minute || r.IntN(4) > 0 {
			w.release(m)
			return
		}
		w.meet(FaultLate, m.p)
		w.arrive(m, dir, left+w.delay(l))
		return
	}
	if l.again > 0 && r.Float64() < l.again {
		w.meet(FaultAgain, m.p)
		c := w.message(m.p, m.kind)
		p := c.p
		*c = *m
		c.p = p
		w.carry(c, dir, l)
	}
	w.carry(m, dir, l)
}

// carry takes one copy of a message to the other side, unless it is lost.
func (w *world) carry(m *message, dir int, l *link) {
	r := w.rng.net
	if l.loss > 0 && r.Float64() < l.loss {
		w.meet(FaultLost, m.p)
		w.release(m)
		return
	}
	d := w.delay(l)
	if l.late > 0 && r.Float64() < l.late {
		w.meet(FaultLate, m.p)
		d += time.Duration(r.Int64N(int64(time.Minute)))
	}
	w.arrive(m, dir, d)
}

func (w *world) delay(l *link) time.Duration {
	if l.mean == 0 {
		return l.least
	}
	return l.least + exponential(w.rng.net, l.mean)
}

func (w *world) arrive(m *message, dir int, d time.Duration) {
	at := w.now + d
	if at < m.p.newest[dir] {
		w.meet(FaultOvertaken, m.p)
	}
	m.p.newest[dir] = max(m.p.newest[dir], at)
	kind := eventArrive
	if dir == down {
		kind = eventDeliver
	}
	w.queue.Push(at, event{kind: kind, m: m})
}
