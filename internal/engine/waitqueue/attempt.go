package waitqueue

import (
	"context"
	"errors"
	"slices"
	"sort"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// An Attempt is one caller's draw on several limiters, its parts. It takes from all of them in one step, under the locks of all, once
// each has enough. Until then it holds only places in queues:
//
//   - It stands in the queue of the scarcest limiter, the one with the longest wait, so that the others go on serving callers that need less.
//   - It joins the queue of another one only once the rest of its wait is no longer than that limiter takes to earn the attempt's cost
//     there. So nobody overtakes it there in the end, and its place costs the others no more time than its tokens do.
//   - Its place in every queue is by its age, the moment at which it came. So the oldest of all attempts comes first wherever it stands,
//     whatever the order of limiters, and is served: no two attempts wait for each other, and none starves. In a fair queue it is by its
//     tag queue while it stands there alone; see Queue for why that still holds.
//
// A limit and the tag buckets of its tags come one after the other. An attempt first waits at the tag bucket until there are tokens, or will be soon.
// Then, with these promised to it, it waits at the limit. So it mostly stands in the tag queue of its tag alone, and hardly more callers of a
// tag stand at the limit than the tag has tokens.
//
// A limiter without a share is the scarcest, for nobody knows how long, and while there is one the attempt has no other place. An attempt
// waits for slots in use last, when there is nothing else to wait for, since nobody knows when one comes back. It then has no other place
// either. If it gave up a place at which it could have been served for that, it keeps its place at slots from then on. It does so while it
// waits for its tokens or for other slots. Otherwise it might miss one while it waits for the other, for ever.
type Attempt[P any] struct {
	parts   []Part[P] // in the order of locks
	places  []Waiter[P]
	stands  []bool // which of the places it is to take
	permits []P    // drawn, after a win
	sizes   []int  // how many tokens each of these holds; 0: there is none

	// Fallback says that the caller has an alternative to draws that a budget refuses, so that it does not wait for the budget.
	Fallback bool
	// Waits is called when the attempt begins to wait for n tokens of a part, or of another one than before; nil: never. No lock is held.
	Waits func(at int, r limit.Reason, n int)
	// Aside says that its caller is counted where it waits, beside the queues in which it may have a place too.
	Aside atomic.Bool

	age      uint64
	deadline time.Time // when bounded
	bounded  bool

	n        int // asked for
	upTo     bool
	scarcest int
	reason   limit.Reason // why it waits there
	slots    bool         // it waits for slots in use
	many     bool         // has stood in several queues at once
	unknown  time.Time    // since when it keeps a place while nobody can tell how long another takes
	passed   bool         // gave up a place at which it could have been served
	drawn    int          // by Serve, once won
	won      atomic.Bool  // Serve has drawn
	turn     chan struct{}
	woken    func() // after a signal to turn; nil: nothing to do
	timer    sharing.Timer
}

// NewAttempt returns an attempt for a caller that comes now. The parts must stand in the order of their locks.
func NewAttempt[P any](ctx context.Context, parts []Part[P]) *Attempt[P] {
	a := &Attempt[P]{
		parts: parts, places: make([]Waiter[P], len(parts)), stands: make([]bool, len(parts)), permits: make([]P, len(parts)), sizes: make([]int, len(parts)),
		age: arrivals.Add(1), turn: make(chan struct{}, 1),
	}
	a.deadline, a.bounded = ctx.Deadline()
	a.woken = parts[0].Gate.Waker()
	return a
}

// Since backdates the attempt to the age of an earlier attempt or waiter.
func (a *Attempt[P]) Since(age uint64) { a.age = age }

// Wake makes the attempt look again. It never blocks.
func (a *Attempt[P]) Wake() {
	select {
	case a.turn <- struct{}{}:
	default:
	}
	if a.woken != nil {
		a.woken()
	}
}

// A Failure says why an attempt has failed.
type Failure struct {
	// At is the part that held it back, and Refusal why.
	At      int
	Refusal sharing.Refusal
	// Demand is how many tokens it would still take there; 0: none, because it can never have them, or does not want them any more.
	Demand int
	// Ended says that the context has ended.
	Ended bool
}

// Win waits until it has drawn n tokens from every part, or with upTo as many as all have, and returns how many.
func (a *Attempt[P]) Win(ctx context.Context, n int, upTo bool) (int, *Failure) {
	a.seat(n, upTo)
	defer a.stop()
	listened := func() {}
	defer func() { listened() }()
	for at := -1; ; {
		k, won, failed := a.look()
		if won || failed != nil {
			return k, failed
		}
		if at < 0 && len(a.parts) > 1 { // where it does not stand nobody tells it that the limiter is closed
			listened = a.listen()
		}
		if at != a.scarcest {
			at = a.scarcest
			if a.Waits != nil {
				a.Waits(at, a.reason, a.places[at].N)
			}
		}
		if !a.parts[0].Gate.Await(ctx, a.turn) {
			return a.quit(ctx)
		}
	}
}

// listen wakes the attempt when one of its limiters is closed. A limit and its tags close together.
func (a *Attempt[P]) listen() (stop func()) {
	var stops []func()
	for i, p := range a.parts {
		if !slices.ContainsFunc(a.parts[:i], func(o Part[P]) bool { return o.Gate == p.Gate }) {
			stops = append(stops, p.Gate.OnClosing(a.Wake))
		}
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// WinNow draws n tokens from every part if all have them.
func (a *Attempt[P]) WinNow(n int) bool {
	a.seat(n, false)
	a.lock()
	defer a.unlock()
	_, won := a.draw()
	return won
}

// Undo gives back the tokens won, as if they had never been drawn.
func (a *Attempt[P]) Undo() {
	for i, p := range a.permits {
		if a.sizes[i] != 0 {
			s := a.parts[i].Source
			s.Lock()
			s.Untake(nil, p)
			s.Unlock()
			a.drop(i)
		}
	}
}

// seat prepares the places for a draw of n tokens.
func (a *Attempt[P]) seat(n int, upTo bool) {
	a.n, a.upTo, a.many = n, upTo, false
	a.won.Store(false)
	least := n
	if upTo {
		least = 1
	}
	for i, p := range a.parts {
		a.places[i] = p.Place(p.asks(n), p.asks(least), a.deadline)
		a.places[i].Attempt, a.places[i].Age = a, a.age
	}
}

func (a *Attempt[P]) lock() {
	for _, p := range a.parts {
		p.Source.Lock()
	}
}

func (a *Attempt[P]) unlock() {
	for _, p := range a.parts {
		p.Source.Unlock()
	}
}

func (a *Attempt[P]) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
}

// look draws if it can, and takes the places to wait at otherwise. While the attempt has to wait it has neither won nor failed.
func (a *Attempt[P]) look() (n int, won bool, failed *Failure) {
	if a.won.Load() {
		return a.drawn, true, nil
	}
	a.lock()
	defer a.unlock()
	if a.won.Load() {
		return a.drawn, true, nil
	}
	for i, p := range a.parts {
		if r, never := p.Impossible(a.places[i].Least); never {
			a.leave()
			return 0, false, &Failure{At: i, Refusal: sharing.Refusal{Reason: r, Cost: a.places[i].Least}}
		}
	}
	if n, won = a.draw(); won {
		return n, true, nil
	}
	wait, known := a.survey()
	left := a.left()
	a.letPass(left)
	if wait > left && a.misses(left) {
		e := a.heldUp()
		wait, _ = a.parts[a.scarcest].Source.Due(&a.places[a.scarcest])
		e.RetryAfter = max(wait, e.RetryAfter)
		return 0, false, a.giveUp(e)
	}
	if a.Fallback {
		if e := a.heldUp(); e.Fallback {
			return 0, false, a.giveUp(e)
		}
	}
	a.reason = a.parts[a.scarcest].Source.Refusal(&a.places[a.scarcest]).Reason
	if !known {
		wait = 0 // where nobody can tell how long, it keeps no place by the least
	}
	if i := a.tagBucketShort(); i >= 0 {
		a.scarcest = i
		a.reason = a.parts[i].Source.Refusal(&a.places[i]).Reason
		if known {
			wait, known = a.parts[i].Source.Due(&a.places[i])
		}
	}
	a.keep(wait, known)
	return 0, false, nil
}

// left returns the time until the deadline.
func (a *Attempt[P]) left() time.Duration {
	if !a.bounded {
		return sharing.Never
	}
	return a.deadline.Sub(a.parts[a.scarcest].Gate.Present())
}

// misses reports whether a part certainly has too few tokens for that long, and makes it the scarcest: the present one if it is one of them.
func (a *Attempt[P]) misses(left time.Duration) bool {
	late := func(i int) bool { return a.parts[i].soonest(&a.places[i]) > left }
	if late(a.scarcest) {
		return true
	}
	for i := range a.parts {
		if late(i) {
			a.scarcest = i
			return true
		}
	}
	return false
}

// giveUp leaves every place, because of e at the scarcest part.
func (a *Attempt[P]) giveUp(e sharing.Refusal) *Failure {
	a.leave()
	return &Failure{At: a.scarcest, Refusal: e, Demand: a.places[a.scarcest].N}
}

// affordable returns how many tokens could be drawn now; ok is false for too few.
func (a *Attempt[P]) affordable() (n int, ok bool) {
	var room [8]int // saves most attempts an allocation
	hand := room[:0]
	for i, p := range a.parts {
		hand = append(hand, p.Source.AtHand(&a.places[i]))
	}
	lacking := func(n int) bool {
		for i, p := range a.parts {
			if p.asks(n) > hand[i] {
				return true
			}
		}
		return false
	}
	if !a.upTo || a.n == 0 {
		return a.n, !lacking(a.n)
	}
	n = sort.Search(a.n, func(i int) bool { return lacking(i + 1) })
	return n, n > 0
}

// draw draws as many tokens as it can, if that is enough.
func (a *Attempt[P]) draw() (n int, ok bool) {
	for {
		if n, ok = a.affordable(); !ok || a.drawAll(n) {
			return n, ok
		} // else a draw came between
	}
}

// drawAll draws n tokens from every part or from none. A draw without a lock may come between.
func (a *Attempt[P]) drawAll(n int) bool {
	for i, p := range a.parts {
		price, ok := p.price(n), true
		a.drop(i)
		if price != 0 {
			a.permits[i], ok = p.Source.Take(&a.places[i], price)
		}
		if ok {
			a.sizes[i] = price
			continue
		}
		a.drop(i)
		for j := range i {
			if a.sizes[j] != 0 {
				a.parts[j].Source.Untake(&a.places[j], a.permits[j])
			}
			a.drop(j)
		}
		return false
	}
	for i, p := range a.parts {
		p.Source.Leave(&a.places[i], a.sizes[i])
	}
	return true
}

// survey finds the scarcest part, and returns the attempt's wait for it. If known is false, the real wait is unknown, and wait is a lower
// bound. Slots in use count only when there is nothing else to wait for: by then they may be free.
func (a *Attempt[P]) survey() (wait time.Duration, known bool) {
	lacks := 0
	a.slots = false
	for i, p := range a.parts {
		w := &a.places[i]
		d, ok := p.Source.Due(w)
		if !ok {
			a.scarcest = i
			return d, false
		}
		if d > wait {
			wait, a.scarcest = d, i
		}
		if p.Source.AtHand(w) < w.Least {
			lacks = i
		}
	}
	if wait > 0 {
		return wait, true
	}
	a.scarcest = lacks // slots, or a place behind others
	a.slots = a.ofSlots(lacks)
	return 1, !a.slots
}

// ofSlots reports whether a part is slots, which nobody earns.
func (a *Attempt[P]) ofSlots(i int) bool {
	takes, _ := a.parts[i].Source.Earns(1)
	return takes == 0
}

// lead returns how long tokens of a part may be collected before the draw.
func (a *Attempt[P]) lead(i int) time.Duration {
	_, lead := a.parts[i].Source.Earns(a.places[i].Least)
	if lead == 0 && a.passed {
		lead, _ = a.parts[a.scarcest].Source.Earns(a.places[a.scarcest].Least)
	}
	return lead
}

// place takes the chosen places and leaves the others. many says that there are several. An attempt that has stood in several queues counts
// as such from then on, wherever it stands. If its place depended on its other places, it would go back and forth between them for ever.
func (a *Attempt[P]) place(many bool) {
	a.many = a.many || many
	for i := range a.places {
		a.places[i].Many = a.many
	}
	for i, p := range a.parts {
		w := &a.places[i]
		if p.TagBucket != nil && a.promises(i) { // before it leaves: a tag bucket keeps a large draw's tokens for who waits there, or has them promised
			p.TagBucket.Promise(w, true)
		}
		if a.stands[i] {
			p.Source.Stand(w)
		} else {
			p.Source.Leave(w, gaveUp)
		}
		if p.TagBucket != nil && !a.promises(i) {
			p.TagBucket.Promise(w, false)
		}
	}
}

// leave gives up all places for good.
func (a *Attempt[P]) leave() {
	for i, p := range a.parts {
		w := &a.places[i]
		w.Many, w.Over = false, true
		p.Source.Leave(w, gaveUp)
		if p.TagBucket != nil {
			p.TagBucket.Promise(w, false)
		}
	}
}

// heldUp returns the refusal of the scarcest part, with the longest freeze of all.
func (a *Attempt[P]) heldUp() sharing.Refusal {
	e := a.parts[a.scarcest].Source.Refusal(&a.places[a.scarcest])
	for i, p := range a.parts {
		if i != a.scarcest {
			e.Frozen = max(e.Frozen, p.Source.Refusal(&a.places[i]).Frozen)
		}
	}
	e.RetryAfter = max(e.RetryAfter, e.Frozen)
	return e
}

// quit ends an attempt whose context has ended, unless it has just won.
func (a *Attempt[P]) quit(ctx context.Context) (int, *Failure) {
	a.lock()
	defer a.unlock()
	if a.won.Load() {
		return a.drawn, nil
	}
	a.leave()
	w := &a.places[a.scarcest]
	w.Age = Latest // who comes again stands behind all
	e := a.heldUp()
	wait, _ := a.parts[a.scarcest].Source.Due(w)
	e.RetryAfter = max(e.RetryAfter, wait)
	f := &Failure{At: a.scarcest, Refusal: e, Ended: true}
	if DeadlinePassed(ctx) {
		f.Demand = w.N
	}
	return 0, f
}

// drop clears the permit of a part.
func (a *Attempt[P]) drop(i int) {
	var none P
	a.permits[i], a.sizes[i] = none, 0
}

// Permits returns the permits that Win or WinNow has drawn, one for each part; the zero P if it drew none.
func (a *Attempt[P]) Permits() []P { return a.permits }

// DeadlinePassed reports whether a call has ended because its deadline passed.
func DeadlinePassed(ctx context.Context) bool { return errors.Is(ctx.Err(), context.DeadlineExceeded) }
