package lanes

// least is the smallest weight: what a policy gives nothing goes on, very slowly.
const least = 1e-6

// A Lane is one tag in one queue. The zero Lane has the least weight; see SetWeight.
type Lane struct {
	weight  float64
	finish  float64 // where the next one starts, unless the present is later
	settled float64 // finish of what was served
	waiting int
}

// SetWeight sets the lane's part of what is served, against the others: any rate will do. It counts for those who come
// from now on; see Clock.Restart for the others.
func (l *Lane) SetWeight(w float64) {
	if !(w > least) { // NaN too
		w = least
	}
	l.weight = w
}

// Weight is what SetWeight has set.
func (l *Lane) Weight() float64 { return max(l.weight, least) }

// Waiting counts those who have a start and were not served.
func (l *Lane) Waiting() int { return l.waiting }

// A Start is the place of one waiter in virtual time. The zero Start is none.
type Start struct {
	At    float64
	cost  float64
	given bool
}

// Given tells whether it is one.
func (s Start) Given() bool { return s.given }

// A Clock is the virtual time of one queue. The zero Clock is ready.
type Clock struct {
	now     float64 // start of who was served last
	latest  float64 // finish of all who were served
	waiting int
}

// Next is where a waiter of l would start now. A nil lane starts at the present.
func (c *Clock) Next(l *Lane) float64 {
	now := c.present()
	if l == nil {
		return now
	}
	return max(now, l.finish)
}

// present is the virtual time. While nobody waits it is past all that was served.
func (c *Clock) present() float64 {
	if c.waiting == 0 {
		return max(c.now, c.latest)
	}
	return c.now
}

// Enter gives a start to a waiter of l for n tokens.
func (c *Clock) Enter(l *Lane, n int) Start {
	c.now = c.present()
	c.waiting++
	s := Start{At: c.Next(l), given: true}
	if l != nil {
		s.cost = float64(n) / l.Weight()
		l.finish = s.At + s.cost
		l.waiting++
	}
	return s
}

// Serve takes a waiter out that was granted n tokens, which may be more than it entered with.
func (c *Clock) Serve(l *Lane, s Start, n int) {
	c.now = max(c.now, s.At)
	c.waiting--
	if l == nil {
		return
	}
	l.waiting--
	more := max(float64(n)/l.Weight()-s.cost, 0)
	l.finish += more
	l.settled = max(l.settled, s.At+s.cost+more)
	c.latest = max(c.latest, l.settled)
}

// Leave takes a waiter out that was granted nothing. Its tokens are not counted any more, unless others of the lane
// have their starts behind it.
func (c *Clock) Leave(l *Lane, s Start) {
	c.waiting--
	if l == nil {
		return
	}
	l.waiting--
	switch {
	case l.waiting == 0:
		l.finish = l.settled
	case l.finish == s.At+s.cost:
		l.finish = s.At
	}
}

// Restart is Leave for a waiter that is to Enter again, because weights have changed: call it for all who wait, then Enter for each, in
// the order of their starts.
func (c *Clock) Restart(l *Lane) {
	if l == nil {
		c.waiting--
		return
	}
	c.waiting--
	l.waiting--
	l.finish = l.settled
}
