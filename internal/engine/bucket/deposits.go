package bucket

import (
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
)

// Validity is how long after its slot a token can be granted that was issued for slots so far apart. It covers the way of the answer and a
// late timer; within it, a call may follow another more closely than the slots.
func Validity(spacing time.Duration) time.Duration {
	return min(max(spacing/10, 250*time.Millisecond), 2500*time.Millisecond)
}

// A Deposit is one token that was issued for a slot: it can be granted from At on, and is void from Until on. Times are nanoseconds since
// the limiter was made.
type Deposit struct {
	At, Until int64
	Name      int64 // of the reservation, to give it back; 0: it cannot be
}

// Deposits are the tokens of a bucket that have been issued and not been granted. The limiter's lock guards them.
//
// Invariant: At rises in Pending, Until in Ripe.
type Deposits struct {
	Pending []Deposit // their slots are still to come
	Ripe    []Deposit // at hand: as many as the bucket's level
}

// Add books count slots that follow each other by spacing. The first is wait after an unknown moment between sent and now. So its token can
// be granted from now plus wait on, and is void a Validity after sent plus wait: that holds for any such moment.
func (d *Deposits) Add(sent, now int64, s sharing.Slots) {
	lasts := int64(Validity(s.Spacing))
	for i := range s.Count {
		after := int64(s.Wait) + int64(i)*int64(s.Spacing)
		p := Deposit{At: now + after, Until: sent + after + lasts, Name: s.Last}
		d.Pending = insert(d.Pending, p, func(p *Deposit) int64 { return p.At }) // answers may be late by different times
	}
}

// insert puts p behind those that come no later.
func insert(list []Deposit, p Deposit, when func(*Deposit) int64) []Deposit {
	k := len(list)
	for k > 0 && when(&list[k-1]) > when(&p) {
		k--
	}
	return slices.Insert(list, k, p)
}

// Stirs reports whether Turn would change the tokens at hand.
func (d *Deposits) Stirs(now int64) bool {
	return len(d.Pending) > 0 && d.Pending[0].At <= now || len(d.Ripe) > 0 && d.Ripe[0].Until <= now
}

// Spend removes the granted tokens: all but held, the oldest first.
func (d *Deposits) Spend(held int) {
	d.Ripe = d.Ripe[max(0, len(d.Ripe)-max(0, held)):]
}

// Turn brings the deposits up to now, when the bucket holds held tokens, below 0 for debt. It returns how many tokens come in; the bucket
// must then be cut to len(d.Ripe). Of unused tokens beyond room, the oldest are void.
func (d *Deposits) Turn(now int64, held, room int) (gained int) {
	d.Spend(held)
	for len(d.Pending) > 0 && d.Pending[0].At <= now {
		p := d.Pending[0]
		d.Pending = d.Pending[1:]
		if p.Until <= now {
			continue // its answer took too long
		}
		gained++
		d.Ripe = insert(d.Ripe, p, func(p *Deposit) int64 { return p.Until })
	}
	d.Spend(held + gained) // debt is paid first
	for len(d.Ripe) > 0 && d.Ripe[0].Until <= now {
		d.Ripe = d.Ripe[1:]
	}
	d.Spend(room)
	return gained
}

// Withdraw takes out up to n slots that are still to come, from the end of the last reservation, and returns its name. The name is 0 when
// there is none to give back.
func (d *Deposits) Withdraw(n int) (name int64, count int) {
	for ; count < n && len(d.Pending) > 0; count++ {
		last := d.Pending[len(d.Pending)-1]
		if last.Name == 0 || count > 0 && last.Name != name {
			break
		}
		name = last.Name
		d.Pending = d.Pending[:len(d.Pending)-1]
	}
	return name, count
}

// Rename gives the rest of a reservation its new name.
func (d *Deposits) Rename(old, name int64) {
	for i := range d.Pending {
		if d.Pending[i].Name == old {
			d.Pending[i].Name = name
		}
	}
}

// Clear removes everything.
func (d *Deposits) Clear() { d.Pending, d.Ripe = nil, nil }
