package sim

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A store keeps the record of the run's only pool, and loses it.
type store struct {
	rec      driver.Record
	kind     storeKind
	identity string
	lives    int // identities used up
	clock    clock
	epoch    int64 // the clock's zero, in microseconds since 1970
	written  int64 // own time of the newest write, in microseconds; 0: never

	down, refuses bool
	downUntil     time.Duration
	hung          bool
	capacity      capacity
	queue         []*message // messages that came while it hung
	// deaf is set after a rollback that kept the identity: only a process that has seen a newer revision gets an answer.
	deaf bool
	back time.Duration // when it was last back

	lost   time.Duration // true time at which it last lost its state; negative: never
	forgot time.Duration // the same on its own clock, without steps
}

const never = -time.Hour

func newStore(w *world) store {
	s := store{
		kind: w.plan.store, lost: never, forgot: never,
		clock: clock{rate: w.plan.rate(w.rng.proc, true)}, epoch: 1_700_000_000_000_000,
	}
	if s.kind != storeMemory {
		s.newIdentity()
	}
	return s
}

func (s *store) newIdentity() {
	s.lives++
	s.identity = fmt.Sprintf("store-%d", s.lives)
}

// wall is the store's own time in microseconds since 1970.
func (s *store) wall(w *world) int64 { return s.epoch + s.clock.read(w.now).Microseconds() }

// moment returns the store's information for a step.
func (s *store) moment(w *world) driver.At {
	at := driver.At{
		Now: s.wall(w), Identity: s.identity, Deferred: s.kind == storeDeferred, Longest: w.plan.longest,
	}
	if at.Deferred {
		at.Now = s.written
	}
	if s.rec.Revision == 0 && w.plan.knownNew {
		at.Remembers = s.clock.read(w.now) - s.forgot
		if s.lost == never {
			at.Remembers = math.MaxInt64
		}
	}
	return at
}

// arrive receives a message.
func (s *store) arrive(w *world, m *message) {
	switch {
	case s.hung:
		s.queue = append(s.queue, m)
	case s.down && s.refuses, s.deaf && !s.newer(m):
		if m.kind == messageSync {
			m.kind = messageRefused
			w.transmit(m, down)
			return
		}
		w.release(m)
	case s.down:
		w.release(m)
	case s.capacity.service > 0:
		s.capacity.queue(w, m, func() { s.serve(w, m) })
	default:
		s.serve(w, m)
	}
}

// serve carries out a message.
func (s *store) serve(w *world, m *message) {
	switch m.kind {
	case messageLeave:
		s.leave(w, m)
	case messageReserve:
		s.serveReserve(w, m)
	default:
		s.sync(w, m)
	}
}

// newer reports whether the sender has seen a newer revision than the record's.
func (s *store) newer(m *message) bool {
	return m.kind == messageSync && m.req.Revision > s.rec.Revision ||
		m.kind == messageReserve && m.reserve.Revision > s.rec.Revision
}

// sync makes one step and sends its answer.
func (s *store) sync(w *world, m *message) {
	at := s.moment(w)
	before := outline(&s.rec)
	ans, changed := s.rec.Sync(&m.req, at)
	if changed {
		s.written = s.wall(w)
		w.noteSync(m, ans.Status) // a request that comes again says nothing new
	}
	w.counters.Answers[ans.Status]++
	if len(m.req.Dead) > 0 && ans.Status == driver.Granted {
		w.counters.Deaths++
	}
	if changed && s.deaf && (ans.Status == driver.Granted || ans.Status == driver.Behind) {
		s.deaf, s.back = false, w.now
	}
	if s.rec.FrozenUntil != before.frozenUntil && s.rec.FrozenUntil > s.rec.Clock {
		w.counters.Freezes[freezeIndex(s.rec.FrozenBy)]++
	}
	if w.trace != nil {
		s.traceSync(w, m, &ans, before)
	}
	w.orders.step++
	w.notePause()
	m.kind, m.ans, m.recorded, m.step = messageAnswer, ans, w.now, w.orders.step
	w.checkStep(&m.req, before)
	w.noteTags(m)
	w.noteLimit()
	w.noteReported(m)
	w.transmit(m, down)
}

func (s *store) traceSync(w *world, m *message, ans *driver.Answer, before recordOutline) {
	w.tracef("store: %s/%s %d is %s %v; revision %d, claims %v, clock +%.3fs, frozen %v %s",
		m.req.ID, m.req.Incarnation, m.req.Seq, ans.Status, ans.Share, s.rec.Revision, s.rec.Claims(),
		time.Duration((s.rec.Clock-before.clock)*1000).Seconds(), ans.Frozen, ans.FrozenBy)
}

func (s *store) leave(w *world, m *message) {
	before := outline(&s.rec)
	if s.rec.Leave(&m.leave, s.moment(w)) {
		s.written = s.wall(w)
		w.tracef("store: %s/%s has left; claims %v", m.leave.ID, m.leave.Incarnation, s.rec.Claims())
	}
	m.kind = messageLeft
	w.checkStep(nil, before)
	w.noteLimit()
	w.transmit(m, down)
}

// takeDown makes the store unreachable for at least d.
func (s *store) takeDown(w *world, d time.Duration, refuses bool) {
	s.down, s.refuses = true, refuses
	s.downUntil = max(s.downUntil, w.now+d)
	w.at(s.downUntil, func() {
		s.down = s.down && w.now < s.downUntil
		s.back = w.now
	})
}

// hang stalls the store. Afterwards it serves the requests that came in the meantime, in the order of its sockets rather than of the
// requests.
func (s *store) hang(w *world, d time.Duration) {
	if s.hung {
		return
	}
	s.hung = true
	w.after(d, func() { s.resume(w) })
}

func (s *store) resume(w *world) {
	if !s.hung {
		return
	}
	s.hung, s.back = false, w.now
	queue := s.queue
	s.queue = nil
	if w.rng.fault.IntN(2) == 0 {
		w.rng.fault.Shuffle(len(queue), func(i, j int) { queue[i], queue[j] = queue[j], queue[i] })
	}
	for _, m := range queue {
		s.arrive(w, m)
	}
}

// restart replaces the record by another one, or none.
func (s *store) restart(w *world, rec driver.Record, written int64) {
	w.forgetClones()
	s.rec, s.written = rec, written
	s.lost, s.forgot = w.now, s.clock.read(w.now)
	s.deaf, s.back = false, w.now
	for _, m := range s.queue {
		w.release(m)
	}
	s.queue = nil
	w.forget()
	w.forgetTags()
	w.noteLimit()
	w.notePause()
}

// copied returns a copy of the record as a replica has it.
func (s *store) copied() driver.Record {
	rec := s.rec
	rec.Rows, rec.Documents = slices.Clone(s.rec.Rows), slices.Clone(s.rec.Documents)
	return rec
}

// step moves the store's wall clock.
func (s *store) step(d time.Duration) { s.epoch += d.Microseconds() }
