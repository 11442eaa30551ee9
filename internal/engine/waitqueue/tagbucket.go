package waitqueue

import "time"

// This file is about limits and the tag buckets of tokens that are drawn together with theirs; see Attempt.

// together reports whether the part has no place of its own. Then it is a tag bucket of the limit that the attempt waits for, or the limit of a
// tag bucket that it waits for.
func (a *Attempt[P]) together(i int) bool {
	p, s := &a.parts[i], &a.parts[a.scarcest]
	return a.promises(i) || p.Position != 0 && p.Position == s.Of
}

// Serve draws for the attempt while the limit of its place w serves. That saves waking it first, and waiting until it has looked. It does
// so only for an attempt with nothing but this limit and its tag buckets, and reports whether it did. The limit's lock is held, and maybe that
// of tag buckets, in any order: so it locks those that are free.
func (a *Attempt[P]) Serve(w *Waiter[P]) bool {
	limit := uint64(0)
	for i := range a.places {
		if &a.places[i] == w {
			limit = a.parts[i].Position
		}
	}
	if limit == 0 {
		return false
	}
	locked := 0
	defer func() {
		for _, p := range a.parts[:locked] {
			if p.Of != 0 {
				p.Source.Unlock()
			}
		}
	}()
	for _, p := range a.parts {
		if p.Of == 0 && p.Position != limit || p.Of != 0 && (p.Of != limit || !p.TryLock()) {
			return false
		}
		locked++
	}
	n, ok := a.draw()
	if !ok {
		return false
	}
	a.drawn = n
	a.won.Store(true)
	a.Wake()
	return true
}

// letPass lets others of its tags pass an attempt that a limit serves only after its deadline, which comes after left, as things stand now.
// It stays, because that may change, but others can use what a tag bucket has until then. If it kept that, the tokens would lapse with it.
func (a *Attempt[P]) letPass(left time.Duration) {
	late := false
	for i, p := range a.parts {
		if p.TagBucket == nil {
			wait, known := p.Source.Due(&a.places[i])
			late = late || known && wait > left
		}
	}
	for i, p := range a.parts {
		if w := &a.places[i]; p.TagBucket != nil && w.Late != late {
			p.TagBucket.LetPass(w, late)
		}
	}
}

// promises reports whether the part is a tag bucket whose tokens are to be promised: the attempt waits for the limit that they are drawn with.
func (a *Attempt[P]) promises(i int) bool {
	of := a.parts[i].Of
	return of != 0 && of == a.parts[a.scarcest].Position
}

// early reports whether the attempt may join the queue of a limit before it has the tokens of its tag, which come after wait if that is
// known. It may join as long before as the limit takes to earn the attempt's tokens, so that both are there at once. An early attempt must
// not hold up callers with tokens. So it has one tag bucket and is first there, and either no tokens are promised to others, or only callers of
// its tag wait at the limit.
func (a *Attempt[P]) early(at int, wait time.Duration, known bool) bool {
	part, place := a.parts[at], &a.places[at]
	if _, ahead := part.Source.Earns(place.Least); !known || a.promises(at) || wait > ahead {
		return false
	}
	tagBuckets, promised := 0, false
	for i, p := range a.parts {
		if p.Of == part.Position && p.TagBucket != nil {
			tagBuckets++
			promised = p.TagBucket.Promised(&a.places[i])
			if !p.TagBucket.First(&a.places[i]) {
				return false
			}
		}
	}
	return tagBuckets == 1 && (!promised || part.Alone(place))
}

// tagBucketShort returns the tag bucket that lacks tokens and takes longest, if the attempt would otherwise wait for the limit that they are
// drawn with; -1: there is none.
func (a *Attempt[P]) tagBucketShort() int {
	short, longest := -1, time.Duration(-1)
	for i, p := range a.parts {
		w := &a.places[i]
		if !a.promises(i) || p.Source.AtHand(w) >= w.Least {
			continue
		}
		if d, _ := p.Source.Due(w); d > longest {
			short, longest = i, d
		}
	}
	return short
}
