package permitapi

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A state is how a permit stands.
type state string

const (
	open      state = "open"
	settled   state = "settled"
	cancelled state = "cancelled"
	expired   state = "expired"
)

// An entry is a permit that a client holds, or held.
type entry struct {
	id     string
	permit throttle.Permit
	tokens int
	// until is the end of the lease, or, of a permit that has ended, when it is forgotten.
	until    time.Time
	state    state
	reported bool
}

// A book keeps the permits of clients. It has no lock and no clock: callers bring both.
//
// Invariant: reserved and open together are no more than most.
type book struct {
	most     int
	reserved int
	open     int
	entries  map[string]*entry
	// ended are the permits that have ended, oldest first: no more of them than most.
	ended []string
}

// remember is how long a permit that has ended is known, so that a repeated call is told so.
const remember = 5 * time.Minute

func newBook(most int) *book { return &book{most: most, entries: map[string]*entry{}} }

// reserve keeps room for one permit, for a call that begins to wait. It returns false when
// there is none.
func (b *book) reserve() bool {
	if b.reserved+b.open >= b.most {
		return false
	}
	b.reserved++
	return true
}

// release gives back the room of a call that got no permit.
func (b *book) release() { b.reserved-- }

// add enters a permit in the room that was reserved for it.
func (b *book) add(id string, p throttle.Permit, tokens int, until time.Time) {
	b.reserved--
	b.open++
	b.entries[id] = &entry{id: id, permit: p, tokens: tokens, until: until, state: open}
}

// find returns a permit that is open or has ended not long ago; nil for none. A permit whose
// lease is over at now has expired, though sweep has not been called since.
func (b *book) find(id string, now time.Time) *entry {
	e := b.entries[id]
	if e != nil && e.state == open && !now.Before(e.until) {
		b.end(e, expired, now)
	}
	return e
}

// end ends an open permit, which the caller settles. Of one that has expired, end itself does.
func (b *book) end(e *entry, as state, now time.Time) {
	if as == expired {
		e.permit.Settle(e.tokens)
	}
	e.state, e.until = as, now.Add(remember)
	b.open--
	b.ended = append(b.ended, e.id)
	for len(b.ended) > b.most {
		b.forget()
	}
}

func (b *book) forget() {
	delete(b.entries, b.ended[0])
	b.ended = b.ended[1:]
}

// sweep settles, as drawn, the permits whose lease is over, and forgets those that ended long
// ago. It returns how many have expired.
func (b *book) sweep(now time.Time) (n int) {
	for _, e := range b.entries {
		if e.state == open && !now.Before(e.until) {
			b.end(e, expired, now)
			n++
		}
	}
	for len(b.ended) > 0 && !now.Before(b.entries[b.ended[0]].until) {
		b.forget()
	}
	return n
}

// settleAll settles, as drawn, whatever is still open. It returns how many were.
func (b *book) settleAll(now time.Time) (n int) {
	for _, e := range b.entries {
		if e.state == open {
			b.end(e, expired, now)
			n++
		}
	}
	return n
}
