package throttle

import "time"

// validity is how long after its slot a token can be granted that was issued for slots
// so far apart. It covers the way of the answer and a late timer; in it, a call may
// come nearer to the next than the slots are.
func validity(spacing time.Duration) time.Duration {
	return min(max(spacing/10, 250*time.Millisecond), 2500*time.Millisecond)
}

// A deposit is one token that was issued for a slot: it can be granted from at on, and
// is void from until on. Times are nanoseconds since the Throttle was made.
type deposit struct {
	at, until int64
	name      int64 // of the reservation, to give it back; 0: it cannot be
}

// deposits are the tokens of a Throttle that have been issued and not been granted. It
// is guarded by the Throttle's lock.
//
// Invariant: at rises in pending, until in ripe.
type deposits struct {
	pending []deposit // their slots are still to come
	ripe    []deposit // at hand: as many as the bucket's level
}

// add books count slots that follow each other by spacing. The first is wait after some
// moment between sent and now: its token cannot be granted before it, and is void a
// validity after it, whichever moment it was.
func (d *deposits) add(sent, now int64, s Slots) {
	lasts := int64(validity(s.Spacing))
	for i := range s.Count {
		after := int64(s.Wait) + int64(i)*int64(s.Spacing)
		p := deposit{at: now + after, until: sent + after + lasts, name: s.Last}
		k := len(d.pending) // answers may be late by different times
		for k > 0 && d.pending[k-1].at > p.at {
			k--
		}
		d.pending = append(d.pending, deposit{})
		copy(d.pending[k+1:], d.pending[k:])
		d.pending[k] = p
	}
}

// stirs tells whether turn would change what is at hand.
func (d *deposits) stirs(now int64) bool {
	return len(d.pending) > 0 && d.pending[0].at <= now || len(d.ripe) > 0 && d.ripe[0].until <= now
}

// spent forgets the tokens that were granted: all but held, the oldest first.
func (d *deposits) spent(held int) {
	if n := len(d.ripe) - max(held, 0); n > 0 {
		d.ripe = d.ripe[n:]
	}
}

// turn brings the deposits up to now, when the bucket holds held tokens, below 0 for
// debt. It returns how many tokens come in; the bucket must then be cut to len(d.ripe).
// Of those that nobody has a use for, beyond room, the oldest are void.
func (d *deposits) turn(now int64, held, room int) (gained int) {
	d.spent(held)
	for len(d.pending) > 0 && d.pending[0].at <= now {
		p := d.pending[0]
		d.pending = d.pending[1:]
		if p.until <= now {
			continue // its answer took too long
		}
		gained++
		k := len(d.ripe)
		for k > 0 && d.ripe[k-1].until > p.until {
			k--
		}
		d.ripe = append(d.ripe, deposit{})
		copy(d.ripe[k+1:], d.ripe[k:])
		d.ripe[k] = p
	}
	d.spent(held + gained) // debt is paid first
	for len(d.ripe) > 0 && d.ripe[0].until <= now {
		d.ripe = d.ripe[1:]
	}
	d.spent(room)
	return gained
}

// withdraw takes out up to n slots that are still to come, from the end of the last
// reservation, and returns its name; 0 when there is none to give back.
func (d *deposits) withdraw(n int) (name int64, count int) {
	for ; count < n && len(d.pending) > 0; count++ {
		last := d.pending[len(d.pending)-1]
		if last.name == 0 || count > 0 && last.name != name {
			break
		}
		name = last.name
		d.pending = d.pending[:len(d.pending)-1]
	}
	return name, count
}

// rename gives what is left of a reservation its new name.
func (d *deposits) rename(old, name int64) {
	for i := range d.pending {
		if d.pending[i].name == old {
			d.pending[i].name = name
		}
	}
}

// clear forgets everything.
func (d *deposits) clear() { d.pending, d.ripe = nil, nil }
