package permits

import (
	"fmt"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A state is the state of a permit.
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
	// charge books tokens that were used but not drawn: for a permit of no tokens, and once for an expired one. nil: it was called.
	charge func(tokens int)
	// until is the end of the lease or, for an ended permit, when it is dropped.
	until    time.Time
	state    state
	reported bool
}

// A book keeps the permits of clients. It has no lock and no clock: callers provide both.
//
// Invariant: reserved and open add up to at most most, and to at most mostEach for one caller. At most mostFree permits without cost are
// open.
type book struct {
	most, mostEach, mostFree int

	reserved int
	open     int
	free     int
	callers  map[string]int // reserved and open permits; never 0
	entries  map[string]*entry
	// ended are the ended permits, oldest first, no more than most of them.
	ended []string
}

// freePart divides the permits for the part that may cost nothing: a tenth.
const freePart = 10

// remember is how long an ended permit is kept, so that repeated calls are recognised.
const remember = 5 * time.Minute

// newBook returns a book. mostEach is most if callers are not bounded separately.
func newBook(most, mostEach int) *book {
	return &book{most: most, mostEach: mostEach, mostFree: max(most/freePart, 1), callers: map[string]int{}, entries: map[string]*entry{}}
}

// reserve reserves room for one permit, for a call that begins to wait. bounded reports whether mostEach applies to the caller. It returns
// the bound that is reached, or "".
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

// roomForFree reports whether one more permit without cost may be open.
func (b *book) roomForFree() bool { return b.free < b.mostFree }

// release returns the room of a call that got no permit.
func (b *book) release(caller string) {
	b.reserved--
	b.leave(caller)
}

func (b *book) leave(caller string) {
	if b.callers[caller]--; b.callers[caller] <= 0 {
		delete(b.callers, caller)
	}
}

// add enters a permit in its reserved room.
func (b *book) add(e *entry) {
	b.reserved--
	b.open++
	if e.tokens == 0 {
		b.free++
	}
	e.state = open
	b.entries[e.id] = e
}

// find returns a permit that is open or ended recently, else nil. A permit whose lease is over at now has expired, even before the next
// sweep.
func (b *book) find(id string, now time.Time) *entry {
	e := b.entries[id]
	if e != nil && e.state == open && !now.Before(e.until) {
		b.end(e, expired, now)
	}
	return e
}

// end ends an open permit, which the caller settles. It settles an expired one itself.
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

// sweep settles the permits whose lease is over, as drawn, and drops those that ended long ago. It returns the number of expired ones.
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

// settleAll settles all open permits as drawn. It returns their number.
func (b *book) settleAll(now time.Time) (n int) {
	for _, e := range b.entries {
		if e.state == open {
			b.end(e, expired, now)
			n++
		}
	}
	return n
}
