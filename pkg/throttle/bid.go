package throttle

import (
	"context"
	"sort"
	"time"
)

// A bid is one caller's draw on several members. It takes from all of them in one
// step, under the locks of all, when all have what it asks for, and holds nothing
// before that but places in queues:
//
//   - It stands in the queue of the scarcest member, the one that it has to wait for
//     longest, so that the others go on serving whoever needs less.
//   - In the queue of another member it stands only once the rest of its wait is no
//     longer than that member takes to earn what the bid costs there. So nobody
//     overtakes it there in the end, and its place costs the others no more time
//     than its tokens do.
//   - Its place in every queue is by its age, the moment at which it came. The oldest
//     of all bids therefore comes first wherever it stands, whatever the order of
//     members, and is served: no two bids wait for each other, and none starves.
//
// A member without a share is the scarcest, for nobody knows how long, and while there is
// one the bid has no other place. Slots in use are waited for last, when there is
// nothing else to wait for, for nobody knows when one comes back; then, too, the bid
// has no other place. One that gave up a place at which it could have been served for
// that keeps its place at slots from then on, while it waits for its tokens or for other
// slots: otherwise it might miss the one while it waits for the other for ever.
type bid struct {
	parts   []part // in the order of locks
	places  []waiter
	permits []Permit // what was drawn, after a win

	age      uint64
	deadline time.Time // when bounded
	bounded  bool

	n        int // asked for
	upTo     bool
	scarcest int
	reason   Reason // why it waits there
	slots    bool   // what it waits for are slots in use
	passed   bool   // gave up a place at which it could have been served
	turn     chan struct{}
	timer    Timer
}

// newBid returns a bid for a caller that comes now.
func newBid(ctx context.Context, parts []part) *bid {
	b := &bid{
		parts: parts, places: make([]waiter, len(parts)), permits: make([]Permit, len(parts)),
		age: arrivals.Add(1), turn: make(chan struct{}, 1),
	}
	b.deadline, b.bounded = ctx.Deadline()
	return b
}

// wake makes the bid look again. It never blocks.
func (b *bid) wake() {
	select {
	case b.turn <- struct{}{}:
	default:
	}
}

// win waits until it has drawn n tokens from every member, or with upTo as many as
// all have, and returns how many.
func (b *bid) win(ctx context.Context, n int, upTo bool) (k int, err error) {
	b.seat(n, upTo)
	defer b.stop()
	var v vigil
	defer func() { v.end(k, err) }()
	listened := func() {}
	defer func() { listened() }()
	for at := -1; ; {
		k, err = b.look()
		if k > 0 || err != nil {
			return k, err
		}
		if at < 0 && len(b.parts) > 1 { // where it does not stand nobody tells it that the limiter is closed
			listened = b.listen()
		}
		if at != b.scarcest {
			v.end(0, nil)
			at = b.scarcest
			m := b.parts[at].member
			m.counts().wait(b.reason)
			v = m.watch(ctx, b.reason, b.places[at].n)
		}
		select {
		case <-b.turn:
		case <-ctx.Done():
			return 0, b.quit(ctx)
		}
	}
}

// listen wakes the bid when one of its members is closed.
func (b *bid) listen() (stop func()) {
	stops := make([]func(), len(b.parts))
	for i, p := range b.parts {
		stops[i] = p.member.onClosing(b.wake)
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// winNow draws n tokens from every member if all have them.
func (b *bid) winNow(n int) bool {
	b.seat(n, false)
	b.lock()
	defer b.unlock()
	for b.affordable() > 0 {
		if b.drawAll(n) {
			return true
		}
	}
	return false
}

// undo gives back what was won, as if it had never been drawn.
func (b *bid) undo() {
	for i, p := range b.permits {
		if p.n > 0 {
			b.parts[i].member.undo(p)
			b.permits[i] = Permit{}
		}
	}
}

// seat prepares the places for a draw of n tokens. There is none where the least costs
// nothing.
func (b *bid) seat(n int, upTo bool) {
	b.n, b.upTo = n, upTo
	least := n
	if upTo {
		least = 1
	}
	for i, p := range b.parts {
		b.places[i] = p.member.seat(b, p.price(n), p.price(least))
	}
}

func (b *bid) lock() {
	for _, p := range b.parts {
		p.member.mutex().Lock()
	}
}

func (b *bid) unlock() {
	for _, p := range b.parts {
		p.member.mutex().Unlock()
	}
}

func (b *bid) stop() {
	if b.timer != nil {
		b.timer.Stop()
	}
}

// look draws if it can, and takes the places to wait at otherwise. It returns 0
// while the bid has to wait.
func (b *bid) look() (n int, err error) {
	b.lock()
	defer b.unlock()
	for i, p := range b.parts {
		if e := p.member.impossible(b.places[i].least); e != nil {
			b.leave()
			p.member.counts().refusal(e.Reason)
			return 0, e
		}
	}
	for n = b.affordable(); n > 0; n = b.affordable() { // until no draw comes between
		if b.drawAll(n) {
			return n, nil
		}
	}
	wait, known := b.survey()
	if m := b.parts[b.scarcest].member; known && b.bounded && wait > m.left(b.deadline) {
		w := &b.places[b.scarcest]
		e := b.heldUp()
		e.RetryAfter = max(wait, e.Frozen)
		b.leave()
		m.noteRefused(w.n)
		m.counts().refusal(e.Reason)
		return 0, e
	}
	b.reason = b.parts[b.scarcest].member.refusalOf(&b.places[b.scarcest]).Reason
	b.keep(wait, known)
	return 0, nil
}

// affordable returns how many tokens could be drawn now; 0 for too few.
func (b *bid) affordable() int {
	hand := make([]int, len(b.parts))
	for i, p := range b.parts {
		hand[i] = p.member.atHand(&b.places[i])
	}
	lacking := func(n int) bool {
		for i, p := range b.parts {
			if p.price(n) > hand[i] {
				return true
			}
		}
		return false
	}
	if !b.upTo {
		if lacking(b.n) {
			return 0
		}
		return b.n
	}
	return sort.Search(b.n, func(i int) bool { return lacking(i + 1) })
}

// drawAll draws n tokens from every member or from none. A draw without a lock may
// come between.
func (b *bid) drawAll(n int) bool {
	for i, p := range b.parts {
		price, ok := p.price(n), true
		b.permits[i] = Permit{}
		if price > 0 {
			b.permits[i], ok = p.member.drawFor(&b.places[i], price)
		}
		if ok {
			continue
		}
		for j := range i {
			if q := b.permits[j]; q.n > 0 {
				b.parts[j].member.undrawFor(&b.places[j], q)
			}
			b.permits[j] = Permit{}
		}
		return false
	}
	for i, p := range b.parts {
		p.member.drawn(&b.places[i])
	}
	return true
}

// survey finds the scarcest member, and returns how long the bid waits for it; known
// is false when nobody can tell. Slots in use count only when there is nothing else to
// wait for: by then they may be free.
func (b *bid) survey() (wait time.Duration, known bool) {
	lacks := 0
	b.slots = false
	for i, p := range b.parts {
		w := &b.places[i]
		if w.least == 0 {
			continue
		}
		d, ok := p.member.dueFor(w)
		if !ok {
			b.scarcest = i
			return 0, false
		}
		if d > wait {
			wait, b.scarcest = d, i
		}
		if p.member.atHand(w) < w.least {
			lacks = i
		}
	}
	if wait > 0 {
		return wait, true
	}
	b.scarcest = lacks // slots, or a place behind others
	b.slots = b.parts[lacks].member.earns(1) == 0
	return 1, !b.slots
}

// keep takes the places to wait at, gives up the others, and sets the timer for
// the moment at which that changes.
func (b *bid) keep(wait time.Duration, known bool) {
	b.stop()
	standing, next := 0, time.Duration(never)
	for i, p := range b.parts {
		m, w := p.member, &b.places[i]
		lead := m.lead(w.least)
		if lead == 0 && b.passed {
			lead = b.parts[b.scarcest].member.earns(b.places[b.scarcest].least)
		}
		switch {
		case w.least == 0:
		case i == b.scarcest || known && wait <= lead, b.slots && b.passed && m.earns(1) == 0:
			m.stand(w)
			standing++
		default:
			b.passed = b.passed || !known && w.queued && m.atHand(w) >= w.least
			m.leave(w)
			if known && lead > 0 {
				next = min(next, wait-lead)
			}
		}
	}
	if standing > 1 && wait < never/2 { // should the wait turn out longer, it must not hold up the others
		next = min(next, wait+wait/8+10*time.Millisecond)
	}
	if next < never {
		b.timer = b.parts[b.scarcest].member.afterFunc(next, b.wake)
	}
}

// leave gives up all places.
func (b *bid) leave() {
	for i, p := range b.parts {
		p.member.leave(&b.places[i])
	}
}

// heldUp is the error of the scarcest member, with the freeze of the one that is frozen longest.
func (b *bid) heldUp() *Error {
	e := b.parts[b.scarcest].member.refusalOf(&b.places[b.scarcest])
	for i, p := range b.parts {
		if b.places[i].least > 0 {
			e.Frozen = max(e.Frozen, p.member.thawing())
		}
	}
	e.RetryAfter = max(e.RetryAfter, e.Frozen)
	return e
}

// quit ends a bid whose context has ended.
func (b *bid) quit(ctx context.Context) error {
	b.lock()
	defer b.unlock()
	b.leave()
	m, w := b.parts[b.scarcest].member, &b.places[b.scarcest]
	w.age = latest // who comes again stands behind all
	e := b.heldUp()
	if wait, _ := m.dueFor(w); wait > e.RetryAfter {
		e.RetryAfter = wait
	}
	if missed(ctx) {
		m.noteRefused(w.n)
		m.counts().refusal(e.Reason)
	}
	return ended(ctx, e)
}
