package sim

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A slot is a permit that a process received.
type slot struct {
	at      int64         // on the store's clock, in nanoseconds
	spacing time.Duration // in force when it was reserved
	// part is the fraction of the whole limit that this spacing leaves for the slot: the issuer's claim.
	part float64
	// begins is the true time at which it begins, as far as known.
	begins time.Duration
	owner  *process
	term   int // of its owner, when it received the slot
}

// permits is the checks' view of permits.
type permits struct {
	life  int    // rises when the store loses its state
	slots []slot // of this life, by rising time
	// forgotten are the slots of all previous lives that may still be used, and latest the last one of the lives before those; never: none.
	forgotten []slot
	latest    time.Duration
	// good are the slots of this life that may still be used.
	good []slot
	held map[reservation][]slot
}

// A reservation identifies a reservation of a process.
type reservation struct {
	p    *process
	life int
	name int64
}

// An issuer is a sharing.Pool whose orders go to the world's store.
type issuer struct {
	ration

	w *world
	p *process
}

var errNoAnswer = errors.New("no answer")

// Pause, Resume and RetryAfter are not called: the world pauses by itself.
func (issuer) Pause(context.Context, time.Time, string, ...throttle.PauseOption) (throttle.PauseReceipts, error) {
	return throttle.PauseReceipts{}, errNoAnswer
}

// Resume is as Pause.
func (issuer) Resume(context.Context, ...throttle.PauseOption) error { return errNoAnswer }

// RetryAfter is as Pause.
func (issuer) RetryAfter(time.Time, string) {}

// Reserve implements sharing.Pool.
func (i issuer) Reserve(o sharing.Order, done func(sharing.Slots, error)) {
	i.w.reserve(i.p, o, done)
}

// An ask is an order under way.
type ask struct {
	order sharing.Order
	req   driver.Reserve
	sent  time.Duration // local
	done  func(sharing.Slots, error)
}

// reserve sends an order to the store. Slots returned with it are no longer used.
func (w *world) reserve(p *process, o sharing.Order, done func(sharing.Slots, error)) {
	if p.gone || p.left || p.ask != nil {
		return
	}
	local := p.clock.read(w.now)
	a := &ask{sent: local, done: done}
	a.req, a.order = p.proc.Reserve(local, o)
	p.ask = a
	w.giveBack(p, a.req.Return, max(a.req.Unused, 1))
	w.counters.Reserves++
	m := w.message(p, messageReserve)
	m.ask, m.reserve = a, a.req
	w.transmit(m, up)
	w.patience(p, a)
}

// patience ends an order that is not answered in time.
func (w *world) patience(p *process, a *ask) {
	w.at(p.clock.when(a.sent+protocol.SyncTimeout(p.lease)), func() {
		switch {
		case p.ask != a || p.gone || p.left:
		case p.halted():
			p.due = append(p.due, func() { w.answered(p, a, driver.Reserved{}, errNoAnswer) })
		default:
			w.answered(p, a, driver.Reserved{}, errNoAnswer)
		}
	})
}

// answered hands an answer, or the lack of one, to the process.
func (w *world) answered(p *process, a *ask, res driver.Reserved, err error) {
	if p.ask != a {
		return
	}
	p.ask = nil
	slots, err := p.proc.Reserved(a.order, res, p.clock.read(w.now)-a.sent, w.rng.more.Float64(), err)
	a.done(slots, err)
	w.drawAgain(p)
}

// giveBack removes returned slots of a process from the usable ones, at the end of a reservation.
func (w *world) giveBack(p *process, name int64, n int) {
	s := &w.permits
	r := reservation{p, s.life, name}
	held := s.held[r]
	if name == 0 || len(held) == 0 {
		return
	}
	n = min(n, len(held))
	gone := held[len(held)-n:]
	s.held[r] = held[:len(held)-n]
	not := func(x slot) bool { return slices.Contains(gone, x) }
	s.slots, s.good = slices.DeleteFunc(s.slots, not), slices.DeleteFunc(s.good, not)
	w.counters.Returned += uint64(n)
}

// serveReserve is one step of the store. A deferred one is read back a little later.
func (s *store) serveReserve(w *world, m *message) {
	at := s.moment(w)
	before := outline(&s.rec)
	res, changed := s.rec.Reserve(&m.reserve, at)
	if changed {
		s.written = s.wall(w)
		s.deaf = false
	}
	w.checkStep(nil, before)
	m.kind, m.life = messageReserved, w.permits.life
	m.whole = max(m.reserve.Spacing, s.rec.Permits.Spacing)
	if !at.Deferred || !changed {
		s.granted(w, m, res)
		return
	}
	identity := s.identity
	w.after(exponential(w.rng.more, 3*time.Millisecond), func() {
		if s.identity != identity || s.down || w.permits.life != m.life {
			w.release(m) // nobody learns its result
			return
		}
		s.granted(w, m, s.rec.ReadReservation(&m.reserve, res.Revision, s.moment(w)))
	})
}

// granted sends an answer on its way, and checks it.
func (s *store) granted(w *world, m *message, res driver.Reserved) {
	if w.trace != nil {
		w.tracef("store: %s reserves %d of %d, in %v, spacing %v; clock %d, frozen %v, claims %v, issuing %v",
			m.p, res.Count, m.reserve.Count, res.Wait, res.Spacing, res.Time, res.Frozen, s.rec.Claims(), res.Issuing)
	}
	for i := range res.Count {
		wait := res.Wait + time.Duration(i)*res.Spacing
		if wait < 0 || wait > time.Duration(m.reserve.Ahead)*m.reserve.Spacing {
			w.violatef(CheckPermit, "a slot of %s is %v away, with %d ahead of %v", m.p, wait, m.reserve.Ahead, m.reserve.Spacing)
		}
	}
	m.reserved, m.recorded = res, w.now
	w.transmit(m, down)
}

// receiveSlots handles the reply of the store.
func (w *world) receiveSlots(p *process, m *message) {
	if p.ask == nil || p.ask != m.ask {
		return // nobody waits for them: the slots are lost
	}
	w.book(p, m)
	p.seen = max(p.seen, m.reserved.Revision)
	w.answered(p, m.ask, m.reserved, nil)
}

// book records and checks slots that a process may use from now on.
func (w *world) book(p *process, m *message) {
	s := &w.permits
	res := &m.reserved
	if m.reserve.Return != 0 && m.reserve.Count == 0 && m.life == s.life {
		old := reservation{p, m.life, m.reserve.Return}
		s.held[reservation{p, m.life, res.Last}] = s.held[old]
		delete(s.held, old)
	}
	for i := range res.Count {
		wait := res.Wait + time.Duration(i)*res.Spacing
		x := slot{
			at: res.Time*1000 + int64(wait), spacing: res.Spacing, part: float64(m.whole) / float64(res.Spacing),
			begins: m.recorded + time.Duration(int64(wait)*million/w.store.clock.rate), owner: p, term: p.term,
		}
		w.counters.Permits++
		if m.life != s.life {
			if p.drawer.lease.Issuing { // else the Throttle refuses them
				s.forgotten = append(s.forgotten, x)
			}
			continue
		}
		w.checkSlot(p, x)
		s.good = append(s.good, x)
		if res.Last != 0 {
			r := reservation{p, s.life, res.Last}
			s.held[r] = append(s.held[r], x)
		}
	}
}

// checkSlot compares a slot with its neighbours on the store's clock, and in true time with the slots that the store lost.
func (w *world) checkSlot(p *process, x slot) {
	s := &w.permits
	k := len(s.slots)
	for k > 0 && s.slots[k-1].at > x.at {
		k--
	}
	near := func(a, b slot) {
		gap := time.Duration(b.at - a.at)
		if ratio := float64(b.spacing) / float64(max(gap, 1)); ratio > w.counters.Nearest {
			w.counters.Nearest = ratio
		}
		if gap < b.spacing {
			w.violatef(CheckPermit, "%s: two slots %v apart, the spacing is %v", p, gap, b.spacing)
		}
	}
	if k > 0 {
		near(s.slots[k-1], x)
	}
	if k < len(s.slots) {
		near(x, s.slots[k])
	}
	s.slots = slices.Insert(s.slots, k, x)
	s.forgotten = slices.DeleteFunc(s.forgotten, func(old slot) bool {
		if x.begins < old.begins+x.spacing/2 {
			w.violatef(CheckPermit, "%s: a slot %v after one of %s that the store has forgotten, the spacing is %v",
				p, x.begins-old.begins, old.owner, x.spacing)
		}
		if old.begins <= w.now {
			s.latest = max(s.latest, old.begins)
		}
		return old.begins <= w.now
	})
	if s.latest != never && x.begins < s.latest+x.spacing/2 {
		w.violatef(CheckPermit, "%s: a slot %v after one that the store has forgotten, the spacing is %v", p, x.begins-s.latest, x.spacing)
	}
}

// loseSlots removes a process's slots from those that the store lost, or will lose, and that may still be used. The process is gone, or its
// lease has ended: slots that had not come by then are lost.
func (w *world) loseSlots(p *process) {
	s := &w.permits
	p.term++ // slots that the store still knows are lost as well; see forget
	s.forgotten = slices.DeleteFunc(s.forgotten, func(x slot) bool { return x.owner == p && x.begins > w.now })
}

// forget begins another life: reserved slots stay valid, and the store has lost some of them.
func (w *world) forget() {
	if !w.plan.permits {
		return
	}
	s := &w.permits
	for _, x := range s.slots {
		if x.begins > w.now && (x.owner.gone || x.owner.left || x.term != x.owner.term) {
			continue
		}
		s.forgotten = append(s.forgotten, x)
	}
	s.life++
	s.slots, s.good = nil, nil
	clear(s.held)
}

// logical returns the time on the record's clock, in nanoseconds.
func (s *store) logical(w *world) int64 {
	r := &s.rec
	d := s.wall(w) - r.Wall
	if d < 0 || d > wire.Clamp(r.Lease).Microseconds() {
		d = 0
	}
	return (r.Clock + d) * 1000
}

// checkWhole adds up the shares in use and the issuer's claim, which determined the spacing of the permits that are still valid.
func (w *world) checkWhole(shares driver.Share) {
	s := &w.permits
	if len(s.good) == 0 || !w.strict() {
		return
	}
	now, part := w.store.logical(w), 0.0
	s.good = slices.DeleteFunc(s.good, func(x slot) bool { return now >= x.at+int64(wire.Validity(x.spacing)) })
	for _, x := range s.good {
		part = max(part, x.part)
	}
	if shares > 0 && part > 0 {
		w.counters.Mixed++
	}
	if sum := shares.Fraction() + part; sum > 1+1e-6 {
		w.violatef(CheckWhole, "shares of %v and permits of %.6f of the limit: %s", shares, part, w.shares())
	}
}

// returnLast lets a dying process give back its last reservation as far as it lies ahead. The message may be late or come twice, as any
// message.
func (w *world) returnLast(p *process) {
	if !w.plan.permits || w.calm || w.rng.more.IntN(2) == 0 {
		return
	}
	s := &w.permits
	coming := p.drawer.th.Status().Issued.Reserved
	var name int64
	for r, held := range s.held {
		if r.p == p && r.life == s.life && len(held) > 0 {
			name = max(name, r.name)
		}
	}
	if name == 0 || coming == 0 {
		return
	}
	n := 1 + w.rng.more.IntN(min(coming, len(s.held[reservation{p, s.life, name}])))
	m := w.message(p, messageReserve)
	m.ask = nil
	m.reserve, _ = p.proc.Reserve(p.clock.read(w.now), sharing.Order{
		Spacing: spacing(p.limit), Ahead: p.limit.MaxReserved, Return: name, Unused: n,
	})
	w.giveBack(p, name, n)
	w.transmit(m, up)
}

// A timer is one of a Throttle, on its process's clock.
type timer struct {
	m   machine
	f   func()
	gen int
}

// Reset implements sharing.Timer.
func (t *timer) Reset(d time.Duration) bool {
	t.gen++
	if d > time.Hour {
		return true // beyond the end of every run
	}
	gen, w, p := t.gen, t.m.w, t.m.p
	due := p.clock.read(w.now) + d
	var fire func()
	fire = func() {
		switch {
		case t.gen != gen || p.gone:
		case p.halted():
			p.due = append(p.due, fire)
		case p.clock.read(w.now) < due: // the clock has slowed down
			w.at(p.clock.when(due), fire)
		default:
			t.f()
			w.draw(p)
		}
	}
	w.at(max(p.clock.when(due), w.now), fire)
	return true
}

// Stop implements sharing.Timer.
func (t *timer) Stop() bool {
	t.gen++
	return true
}
