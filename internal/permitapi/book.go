package permitapi

import (
	"fmt"
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
	caller string
	// charge books tokens that were used and not drawn: for a permit of no tokens, and once for one that has expired. nil: it was called.
	charge func(tokens int)
	// until is the end of the lease, or, of a permit that has ended, when it is forgotten.
	until    time.Time
	state    state
	reported bool
}

// A book keeps the permits of clients. It has no lock and no clock: callers bring both.
//
// Invariant: reserved and open together are no more than most, those of one caller no more than mostEach, and of those that cost nothing
// no more than mostFree are open.
type book struct {
	most, mostEach, mostFree int

	reserved int
	open     int
	free     int
	callers  map[string]int // what is reserved and open; none is 0
	entries  map[string]*entry
	// ended are the permits that have ended, oldest first: no more of them than most.
	ended []string
}

// freePart is which part of all permits may cost nothing: a tenth.
const freePart = 10

// remember is how long a permit that has ended is known, so that a repeated call is told so.
const remember = 5 * time.Minute

// newBook makes a book. What bounds one caller is most where that is not bounded.
func newBook(most, mostEach int) *book {
	return &book{most: most, mostEach: mostEach, mostFree: max(most/freePart, 1), callers: map[string]int{}, entries: map[string]*entry{}}
}

// reserve keeps room for one permit, for a call that begins to wait. bounded tells whether the caller has a share of its own at most.
// It returns what there is no room for; "" when there is.
func (b *book) reserve(caller string, bounded bool) (full string) {
	switch {
	case b.reserved+b.open >= b.most:
		return fmt.Sprintf("as many permits are open or waited for as may be: %d", b.most)
	case bounded && b.callers[caller] >= b.mostEach:
		return fmt.Sprintf("as many permits of this caller are open or waited for as may be of one: %d", b.mostEach)
	}
	b.reserved++
	b.callers[caller]++
	return ""
}

// roomForFree tells whether one more permit may be open that costs nothing.
func (b *book) roomForFree() bool { return b.free < b.mostFree }

// release gives back the room of a call that got no permit.
func (b *book) release(caller string) {
	b.reserved--
	b.leave(caller)
}

func (b *book) leave(caller string) {
	if b.callers[caller]--; b.callers[caller] <= 0 {
		delete(b.callers, caller)
	}
}

// add enters a permit in the room that was reserved for it.
func (b *book) add(e *entry) {
	b.reserved--
	b.open++
	if e.tokens == 0 {
		b.free++
	}
	e.state = open
	b.entries[e.id] = e
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
	if e.tokens == 0 {
		b.free--
	}
	b.leave(e.caller)
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
