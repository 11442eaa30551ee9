package throttle

import (
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/engine/waitqueue"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
)

// A slotTagSource is a slotView as a child of an All.
type slotTagSource struct {
	slotSource
	view *slotView
}

var _ native = (*slotTagSource)(nil)

func (c *slotTagSource) Part() part { return part{Source: c, Gate: &c.gate} }

// Merge returns the child for the tags of both.
func (c *slotTagSource) Merge(p, with child) child {
	if w, ok := with.Seat.Source.(*slotTagSource); ok && w.view != c.view {
		both := c.tags.viewOf(append(slices.Clone(c.view.names), w.view.names...), false)
		p.Limiter, p.Seat = both, &both.own.Seat
	}
	return p
}

func (c *slotTagSource) Largest() int {
	most := c.max
	for _, g := range *c.view.tags.Load() {
		most = min(most, int(g.largest.Load()))
	}
	return most
}

// newcomerFor returns the place of a caller that comes now, for n slots.
func newcomerFor(n int) waiter {
	return waiter{N: n, Least: n, Age: waitqueue.Latest, Deadline: never}
}

func (c *slotTagSource) Peek(n int) bool {
	c.Lock()
	defer c.Unlock()
	w := newcomerFor(n)
	return c.AtHand(&w) >= n
}

func (c *slotTagSource) Draw(n int) (Permit, bool) {
	c.Lock()
	defer c.Unlock()
	w := newcomerFor(n)
	return c.Take(&w, n)
}

func (c *slotTagSource) AtHand(w *waiter) int {
	s, own := c.tags, 0
	var tags []*slotTag
	s.now = c.gate.Now()
	if w.Queued() {
		tags, own = s.places[w].tags, w.Least
	} else {
		tags = c.view.live()
		if _, barred := s.barred(c.view); barred || !s.fits(tags, w.Least) {
			return 0
		}
		if w.TagQueue = tags[0].tagQueue; !c.queue.Empty() {
			s.order()
			if tags[0].waiting == 0 { // as if it began to wait
				s.step(tags[0], s.now)
				tags[0].turn.Join(s.served)
			}
			c.queue.SetStart(w.TagQueue, s.start(tags[0], s.now))
		}
	}
	n := c.atHand(w, s.now)
	for _, g := range tags {
		if spare := s.spare(g); spare < unbound {
			n = min(n, spare+own)
		}
	}
	return max(n, 0)
}

func (c *slotTagSource) Due(w *waiter) (time.Duration, bool) {
	if p, barred := c.tags.barred(c.view); barred {
		return c.untilEnd(&p)
	}
	d, known := c.slotSource.Due(w)
	for _, g := range c.view.live() {
		if c.tags.room(g) < w.Least-g.running {
			known = false // it is not granted so many yet
		}
	}
	return d, known
}

// untilEnd returns how long a pause lasts.
func (c *slotTagSource) untilEnd(p *Paused) (time.Duration, bool) {
	if p.Until.IsZero() {
		return 0, false
	}
	return c.left(p.Until), true
}

func (c *slotTagSource) Refusal(w *waiter) sharing.Refusal {
	r := c.slotSource.Refusal(w)
	r.Reason = c.reasonOf(w)
	if p, barred := c.tags.barred(c.view); barred {
		left, _ := c.untilEnd(&p)
		r.RetryAfter = max(r.RetryAfter, left)
	}
	return r
}

// reasonOf says what holds w back. The lock is held.
func (c *slotTagSource) reasonOf(w *waiter) Reason {
	s, r := c.tags, c.reason()
	if r == ReasonClosed || r == ReasonPause {
		return r
	}
	if _, barred := s.barred(c.view); barred {
		return ReasonPause
	}
	if w.Queued() && c.queue.IsAside(w) || !w.Queued() && !s.fits(c.view.live(), w.Least) {
		return ReasonQuota
	}
	return r
}

func (c *slotTagSource) Stand(w *waiter) {
	s := c.tags
	if w.Queued() {
		if !c.queue.IsAside(w) && c.queue.Move(w) {
			c.serve()
		}
		return
	}
	tags := c.view.live()
	w.TagQueue = tags[0].tagQueue
	s.places[w] = slotPlace{view: c.view, tags: tags}
	s.enter(w, tags, 1)
	s.insert(w)
	s.admit(w)
	c.noteHeld()
	c.note()
	c.serve()
	c.pokeFor(tags, c.queue.IsAside(w))
}

// pokeFor reports a caller to the pool. For one who waits for slots of its tags that is news only if the pool does not know of so many yet.
func (c *slotTagSource) pokeFor(tags []*slotTag, short bool) {
	if !short || slices.ContainsFunc(tags, func(g *slotTag) bool { return int64(g.peak) > g.asked }) {
		c.poke()
	}
}

func (c *slotTagSource) Leave(w *waiter, _ int) {
	if !w.Queued() {
		return
	}
	s := c.tags
	at := s.places[w]
	tags := at.tags
	s.bar(w, &at, false)
	if !c.queue.IsAside(w) {
		for _, g := range tags {
			g.ready -= w.Least
		}
	}
	s.remove(w)
	s.enter(w, tags, -1)
	delete(s.places, w)
	s.promote()
	c.noteHeld()
	c.serve()
}

func (c *slotTagSource) Take(w *waiter, n int) (Permit, bool) {
	if c.AtHand(w) < n {
		return Permit{}, false
	}
	tags := c.view.live() // those of its place, if it has one: a tag with callers is not forgotten
	p := &tagSlots{slots: slots{of: c.InFlight, n: n}, tags: c.view.tags.Load(), since: c.tags.now}
	c.tags.begin(tags, n, p.since)
	tags[0].add(p)
	c.inUse += n
	c.granted += int64(n)
	if !w.Queued() { // else it was counted when it began to wait
		for _, g := range tags {
			g.note(0)
		}
		c.note()
	}
	return Permit{n: n, by: p}, true
}

func (c *slotTagSource) Untake(w *waiter, p Permit) {
	c.slotSource.Untake(w, p)
	if by, ok := p.by.(*tagSlots); ok {
		tags := *by.tags
		tags[0].drop(by)
		c.tags.end(tags, by.n, true)
	}
	if w == nil {
		c.serve()
	}
}

func (c *slotTagSource) NoteRefused(n int, waited bool) {
	c.Lock()
	defer c.Unlock()
	w, tags := newcomerFor(n), c.view.live()
	_, barred := c.tags.barred(c.view)
	lacks := barred || c.reasonOf(&w) == ReasonQuota
	for _, g := range tags {
		g.refused += int64(n)
		if !waited && !barred {
			g.note(n)
		}
	}
	c.gate.Refused.Add(int64(min(n, c.max)))
	if lacks {
		c.tags.turnedAway += int64(min(n, c.max))
	}
	c.pokeFor(tags, lacks)
}
