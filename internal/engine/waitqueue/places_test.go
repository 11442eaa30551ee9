package waitqueue

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
)

const ms = time.Millisecond

// A placesPlay plays an attempt whose limiters have other numbers at each look, and judges where it stands by the rules.
type placesPlay struct {
	t     *testing.T
	seed  uint64
	r     *rand.Rand
	list  []*fakeLimiter
	parts []Part[int]
	a     *Attempt[int]

	many, passed bool          // it has stood in several queues, and has given up a place at which it could have been served
	since        time.Duration // when its patience began; below 0: it has not
}

// newPlacesPlay makes an attempt on limits, slots, and tag buckets of some limits.
func newPlacesPlay(t *testing.T, seed uint64) *placesPlay {
	p := &placesPlay{t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 3)), since: -1}
	p.list = fakes(t, make([]time.Duration, 2+p.r.IntN(3))...)
	kinds, limits := make([]int, len(p.list)), []uint64{}
	for i := range kinds {
		if kinds[i] = p.r.IntN(6); kinds[i] == 0 {
			limits = append(limits, uint64(i+1))
		}
	}
	for i, f := range p.list {
		f.each = []time.Duration{0, 10 * ms, 10 * ms, 20 * ms}[p.r.IntN(4)]
		switch {
		case kinds[i] == 0:
			f.each = max(f.each, 10*ms)
			p.parts = append(p.parts, f.limitAt(uint64(i+1), p.r.IntN(2) == 0))
		case kinds[i] == 1 || len(limits) == 0:
			p.parts = append(p.parts, f.part())
		default:
			f.each = 10 * ms
			part := f.tagBucketOf(limits[p.r.IntN(len(limits))])
			if kinds[i] == 2 { // the pause of a tag
				part.TagBucket = nil
			}
			p.parts = append(p.parts, part)
		}
	}
	p.a = NewAttempt(context.Background(), p.parts)
	return p
}

// change gives the limiters other numbers, of which many are equal. The attempt keeps its places.
func (p *placesPlay) change(least int) {
	had := make([]bool, len(p.list))
	for i := range had {
		had[i] = p.a.places[i].queued
	}
	p.a.seat(least, false)
	p.a.many = p.many
	for i, f := range p.list {
		p.a.places[i].queued = had[i]
		f.due = time.Duration(p.r.IntN(7)) * 10 * ms
		f.unknown = p.r.IntN(8) == 0
		f.hand = p.r.IntN(least + 2)
		f.first, f.others = p.r.IntN(4) > 0, p.r.IntN(3) == 0
		if f.each == 0 {
			f.due = 0
		}
		p.a.places[i].Large = p.r.IntN(4) == 0
	}
	p.list[p.r.IntN(len(p.list))].hand = least - 1 // else it would draw
	if p.r.IntN(2) == 0 {
		p.list[0].clock.advance(time.Duration(p.r.IntN(11)) * 100 * ms)
	}
}

func (p *placesPlay) slots(i int) bool { return p.list[i].each == 0 }

func (p *placesPlay) lacks(i, n int) bool { return p.list[i].hand < n }

// scarcest returns where the attempt waits, and for how long.
func (p *placesPlay) scarcest(n int) (at int, wait time.Duration, known bool) {
	for i, f := range p.list {
		if f.unknown {
			return p.shortTagBucket(i, n, 0, false)
		}
		if f.due > wait {
			at, wait = i, f.due
		}
	}
	if wait > 0 {
		return p.shortTagBucket(at, n, wait, true)
	}
	for i := range p.list {
		if p.lacks(i, n) {
			at = i
		}
	}
	if p.slots(at) {
		return p.shortTagBucket(at, n, 0, false)
	}
	return p.shortTagBucket(at, n, 1, true)
}

// shortTagBucket returns a tag bucket of the limit at i that lacks tokens in place of it: the one that takes longest.
func (p *placesPlay) shortTagBucket(i, n int, wait time.Duration, known bool) (int, time.Duration, bool) {
	short := -1
	for k := range p.list {
		if p.isOf(k, i) && p.lacks(k, n) && (short < 0 || p.list[k].due > p.list[short].due) {
			short = k
		}
	}
	if short < 0 {
		return i, wait, known
	}
	if known {
		return short, p.list[short].due, true
	}
	return short, 0, false
}

// isOf reports whether part k is a tag bucket of the limit at i.
func (p *placesPlay) isOf(k, i int) bool {
	return p.parts[k].Of != 0 && p.parts[k].Of == p.parts[i].Position
}

// stands reports whether the attempt has a place at i while it waits at another one, and whether that is an early one.
func (p *placesPlay) stands(i, at, n int, wait time.Duration, known, hadPlace, waitsForSlots bool) (stands, early bool) {
	lead := time.Duration(n) * p.list[i].each
	bucket := p.parts[at].TagBucket != nil
	switch {
	case p.isOf(i, at): // drawn together with the limit
		return false, false
	case p.isOf(at, i): // its limit
		buckets, others := 0, false
		for k := range p.list {
			if p.isOf(k, i) && p.parts[k].TagBucket != nil {
				if !p.list[k].first {
					return false, false
				}
				buckets++
				others = p.list[k].others
			}
		}
		early = known && wait <= lead && buckets == 1 && (!others || p.parts[i].Alone(nil))
		return early, early
	case waitsForSlots && p.slots(i) && p.passed:
		return true, false
	case known:
		if p.slots(i) && p.passed {
			lead = time.Duration(n) * p.list[at].each
		}
		sibling := p.parts[at].Of != 0 && p.parts[i].Of == p.parts[at].Of
		return wait <= lead && (sibling || !bucket || p.list[at].first), false
	}
	keeps := bucket && !p.passed && hadPlace && !p.slots(i) && (p.a.places[i].Large || p.lacks(i, n)) && (p.parts[i].TagBucket == nil || p.list[i].first)
	if keeps && p.since < 0 {
		p.since = p.list[0].clock.now
	}
	return keeps && p.list[0].clock.now < p.since+patience, false
}

// look lets the attempt look, and judges.
func (p *placesPlay) look(n int) {
	had := make([]bool, len(p.list))
	for i := range p.list {
		had[i] = p.a.places[i].queued
	}
	at, wait, known := p.scarcest(n)
	waitsForSlots := p.waitsForSlots(n)
	if known {
		p.since = -1
	}
	want, wantEarly, next := make([]bool, len(p.list)), make([]bool, len(p.list)), time.Duration(sharing.Never)
	several, early, behind := 0, false, false
	for i, f := range p.list {
		if i == at {
			want[i] = true
		} else {
			want[i], wantEarly[i] = p.stands(i, at, n, wait, known, had[i], waitsForSlots)
		}
		switch together := p.isOf(i, at) || p.isOf(at, i); {
		case wantEarly[i]:
			early = true
		case want[i]:
			several++
		case !together:
			lead := time.Duration(n) * f.each
			if lead == 0 && p.passed {
				lead = time.Duration(n) * p.list[at].each
			}
			if !known && had[i] && !p.lacks(i, n) {
				p.passed = true
			}
			switch {
			case known && lead > 0 && wait > lead:
				next = min(next, wait-lead)
			case known && lead > 0:
				behind = true
			}
		}
	}
	p.many = p.many || several > 1
	if early || several > 1 {
		next = min(next, wait*9/8+10*ms)
	}
	if p.since >= 0 {
		if left := p.since + patience - p.list[0].clock.now; left > 0 {
			next = min(next, left)
		}
	}
	if next < sharing.Never {
		next = max(next, shortestLook)
	}

	_, won, failed := p.a.look()
	require.False(p.t, won)
	require.Nil(p.t, failed)
	require.Equal(p.t, p.list[at].name, string(p.a.reason), "seed %d", p.seed)
	for i, f := range p.list {
		w := &p.a.places[i]
		require.Equal(p.t, want[i], w.queued, "seed %d: place %d of %d, waits at %d", p.seed, i, len(p.list), at)
		require.Equal(p.t, []bool{wantEarly[i], p.many, behind && i == at}, []bool{w.Early, w.Many, w.WakeFirst}, "seed %d: place %d", p.seed, i)
		promised := p.isOf(i, at) && p.parts[i].TagBucket != nil
		require.Equal(p.t, []bool{promised, promised}, []bool{f.promised, f.promises}, "seed %d: place %d", p.seed, i)
		require.False(p.t, f.locked)
		f.leaves, f.promises = nil, false
	}
	require.Equal(p.t, next, p.list[0].clock.next(), "seed %d", p.seed)
	require.Equal(p.t, next < sharing.Never, len(p.list[0].clock.timers) == 1)
}

// waitsForSlots reports whether there is nothing but slots to wait for.
func (p *placesPlay) waitsForSlots(n int) bool {
	last := 0
	for i, f := range p.list {
		if f.unknown || f.due > 0 {
			return false
		}
		if p.lacks(i, n) {
			last = i
		}
	}
	return p.slots(last)
}

// An attempt stands where its rules say, and looks again when that changes.
func TestAttemptStandsByItsRules(t *testing.T) {
	for seed := range uint64(3000) {
		p := newPlacesPlay(t, seed)
		for range 12 {
			n := 1 + p.r.IntN(4)
			p.change(n)
			p.look(n)
		}
	}
}
