package throttle

import (
	"reflect"
	"runtime"
	"sync/atomic"
)

// evictAfter is how long a tag that matches a pattern must be unused before another one can take its place, in nanoseconds. Nothing of it
// can be under way for that long: a wait begins at once, and tokens of a pool are void after some seconds.
const evictAfter = int64(10 * second)

// Bounds of the search for tags that can go.
const (
	second = 1_000_000_000
	// lookAgain is how soon the search is repeated after it found none: callers that make up names must not cost more than their memory.
	lookAgain = int64(1 * second)
	// freeEvery is how often other limits are made to forget the tags that they remember, so that these can go.
	freeEvery = int64(10 * second)
)

// An evicting is the record of a tagSet about tags that made way. The set's lock guards it; the atomics may be read without it.
type evicting struct {
	lookAt atomic.Int64 // when to search next
	freeAt int64
	rounds atomic.Int64 // times that room was found: after each, views that share a quota are looked up again
	count  int64        // how many have gone
	// used and refused are their totals.
	used, refused int64
}

// looks reports whether it is time for a search.
func (e *evicting) looks(now int64) bool { return now >= e.lookAt.Load() }

// evict makes room: it removes all tags that were idle for long enough, and reports whether there was one. The lock mu is held.
//
// A tag can go when a new one under its name would behave the same. Nobody may wait for it or hold its Limiter in an All. It must have
// nothing in hand, owe nothing, be full, and have spent nothing of a budget whose window lasts. Kept Limiters of it look for their tag
// again when they are used.
func (s *tagSet) evict() bool {
	now := s.t.gate.Now()
	if !s.gone.looks(now) {
		return false
	}
	dropped := false
	for name, g := range s.tags {
		if _, configured := s.quotas.Tags[name]; !configured && name != "" && s.drop(g, now) {
			dropped = true
		}
	}
	if !dropped {
		s.gone.lookAt.Store(now + lookAgain)
		if now >= s.gone.freeAt {
			s.gone.freeAt = now + freeEvery
			s.era.Add(1) // an All that remembers Limiters by tag forgets them
		}
		return false
	}
	s.newRound()
	return true
}

// forgettable reports whether a new tag would behave the same from now on. The tag's lock is held.
func (g *tag) forgettable(now int64) bool {
	return g.pins == 0 && g.waiting.Load() == 0 && g.queue.Empty() && now-g.last >= evictAfter && g.tagBucket.Idle(now)
}

// drop forgets a tag if it can go. It never waits for the tag's lock: the holder of the lock uses the tag. The lock mu is held.
func (s *tagSet) drop(g *tag, now int64) bool {
	if !g.mu.TryLock() {
		return false
	}
	defer g.mu.Unlock()
	if !g.forgettable(now) {
		return false
	}
	if g.timer != nil {
		g.timer.Stop()
	}
	g.gone.Store(true)
	s.gone.count++
	s.gone.used, s.gone.refused = s.gone.used+g.used.Load(), s.gone.refused+g.refused.Load()
	s.remove(g)
	delete(s.limiters, g.name)
	return true
}

// revive restores a tag when one of its permits is settled, and returns the tag that counts under its name now, which may be another one.
func (s *tagSet) revive(g *tag) *tag {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !g.gone.Load() {
		return g
	}
	if is := s.tags[g.name]; is != nil {
		return is
	}
	own, q := s.quotas.Find(g.name)
	switch {
	case own != g.name || len(s.tags) >= s.most && !s.evict():
		return g
	case !reflect.DeepEqual(*g.quota(), q), s.sharedBy(own, q) != nil: // they were changed, or there is spending under its name elsewhere
		is, _ := s.tagOf(own, q, g.under.Load())
		return is
	}
	s.add(g, *g.quota())
	g.gone.Store(false)
	s.gone.used, s.gone.refused = s.gone.used-g.used.Load(), s.gone.refused-g.refused.Load()
	return g
}

// live returns the limiter of the tags that now count under the same names, which counts as a use of them. It is l itself, or another one
// if a tag is gone or quotas have changed.
func (l *tagView) live() *tagView {
	l.endSharing()
	for l.outdated() || !l.touch() {
		switch len(l.asked) {
		case 0:
			l = l.set.other
		case 1:
			l = l.set.forTag(l.asked[0])
		default:
			l = l.set.forTags(l.asked, l.levels)
		}
	}
	return l
}

// outdated reports whether quotas have changed since the tags were found, or room was found while it shares a quota.
func (l *tagView) outdated() bool {
	return l.shares && l.round != l.set.gone.rounds.Load() || l.since != l.set.change.Load() && l != l.set.other
}

// touch notes that the tags are used, and reports whether all of them are there.
func (l *tagView) touch() (there bool) {
	now, there := l.t.gate.Now(), true
	for _, g := range l.tags {
		g.mu.Lock()
		g.last = now
		there = there && !g.gone.Load()
		g.mu.Unlock()
	}
	return there
}

// pin keeps the tags until unpin. They have just been touched.
func (l *tagView) pin() {
	for _, g := range l.tags {
		g.pin(1)
	}
}

func (l *tagView) unpin() {
	for _, g := range l.tags {
		g.pin(-1)
	}
}

func (g *tag) pin(n int) {
	g.mu.Lock()
	g.pins += n
	g.last = max(g.last, g.t.gate.Now())
	g.mu.Unlock()
}

// keep pins the tags among the children of an All for as long as the All exists.
func keep(j *multi) {
	var tags []*tag
	for i := range j.Children {
		if g := tagAt(j.Children[i].Seat); g != nil {
			g.pin(1)
			tags = append(tags, g)
		}
	}
	if len(tags) > 0 {
		runtime.AddCleanup(j, func(tags []*tag) {
			for _, g := range tags {
				g.mu.Lock()
				g.pins-- // which is no use of the tag
				g.mu.Unlock()
			}
		}, tags)
	}
}
