package waitqueue

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
)

// This file is about the places that an attempt keeps while it waits; see Attempt.

// shortestLook is the shortest time after which an attempt looks again by itself. A wait need not become shorter as time passes: a caller
// before it may have all that it needs here, and wait elsewhere. Looking after each nanosecond would keep a processor busy until that
// caller is served. Tokens at the scarcest part wake the attempt at once, whatever the timer says.
const shortestLook = 200 * time.Microsecond

// keep takes the places to wait at, gives up the others, and sets the timer for the moment at which that changes.
func (a *Attempt[P]) keep(wait time.Duration, known bool) {
	a.stop()
	if known {
		a.unknown = time.Time{}
	}
	standing, early, behind, next := 0, false, false, time.Duration(sharing.Never)
	clear(a.stands)
	for i, p := range a.parts {
		w, lead := &a.places[i], a.lead(i)
		w.Early, w.WakeFirst = false, false
		switch {
		case a.together(i):
			w.Early = a.early(i, wait, known) // in its tag queue, as if it stood there alone
			a.stands[i], early = w.Early, early || w.Early
		case a.standsAt(i, wait, known):
			a.stands[i] = true
			standing++
		default:
			a.passed = a.passed || !known && w.queued && p.Source.AtHand(w) >= w.Least
			switch {
			case !known || lead <= 0:
			case wait > lead:
				next = min(next, wait-lead)
			default: // the turn comes with no moment that is known
				behind = true
			}
		}
	}
	a.places[a.scarcest].WakeFirst = behind
	a.place(standing > 1)
	if (early || standing > 1) && wait < sharing.Never/2 { // should the wait turn out longer, it must not hold up the others
		next = min(next, wait+wait/8+10*time.Millisecond)
	}
	if left := a.patienceLeft(); left > 0 {
		next = min(next, left)
	}
	a.lookAfter(next)
}

// standsAt reports whether the attempt has a place at a part meanwhile.
func (a *Attempt[P]) standsAt(i int, wait time.Duration, known bool) bool {
	switch {
	case i == a.scarcest, a.slots && a.passed && a.ofSlots(i):
		return true
	case known:
		return wait <= a.lead(i) && (a.ofOneLimit(i) || a.first())
	}
	return a.holds(i)
}

// ofOneLimit reports whether the attempt waits for a tag bucket of the same limit as a part. A draw for two tags of a limit has to stand at both
// tag buckets: the pool is asked only for the tokens of those that stand, and tokens of one lapse before those of the other have come.
func (a *Attempt[P]) ofOneLimit(i int) bool {
	of := a.parts[a.scarcest].Of
	return of != 0 && a.parts[i].Of == of
}

// first reports whether the attempt comes next where it waits, if that is a tag bucket. Another one does not stand at other limits ahead of its
// tokens: it would have to come before all that do not (see Queue), and so pass older callers of its tag.
func (a *Attempt[P]) first() bool {
	b := a.parts[a.scarcest].TagBucket
	return b == nil || b.First(&a.places[a.scarcest])
}

// patience is how long an attempt keeps its places at limits that earn tokens while nobody can tell when those of a tag come. Tokens that were
// collected for it beyond the burst would be lost with the place, and those of a budget lapse before they are collected again.
const patience = 3 * time.Second

// holds reports whether the attempt keeps its place at a part while the wait is unknown: until its tokens are there, so that it holds back no
// caller that has all it needs, and longer if they would be lost. The first such place begins its patience, which ends, because the pool may never answer.
func (a *Attempt[P]) holds(i int) bool {
	w := &a.places[i]
	if a.parts[a.scarcest].TagBucket == nil || a.passed || !w.queued || a.ofSlots(i) || !w.Large && a.parts[i].Source.AtHand(w) >= w.Least {
		return false
	}
	if b := a.parts[i].TagBucket; b != nil && !b.First(w) { // it would pass older callers of its tag
		return false
	}
	if a.unknown.IsZero() {
		a.unknown = a.parts[i].Gate.Present()
	}
	return a.patienceLeft() != 0
}

// patienceLeft returns how much longer the attempt keeps such places; 0: it has none, or gives them up.
func (a *Attempt[P]) patienceLeft() time.Duration {
	if a.unknown.IsZero() {
		return 0
	}
	return max(a.unknown.Add(patience).Sub(a.parts[0].Gate.Present()), 0)
}

// lookAfter lets the attempt look again after some time, unless that is for ever.
func (a *Attempt[P]) lookAfter(d time.Duration) {
	if d < sharing.Never {
		a.timer = a.parts[a.scarcest].Gate.AfterFunc(max(d, shortestLook), a.Wake)
	}
}
