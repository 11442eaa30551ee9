package throttle

import (
	"hash/maphash"
	"reflect"
	"slices"
)

// sharers is the set of names that have shared a quota, by their hashes. It takes other names with the same hash for members, and forgets none.
type sharers [1024]uint64

// place returns a hash's bit, which doesn't depend on the part of the hash that tells what it shares.
func (s *sharers) place(hash uint64) (word *uint64, bit uint64) {
	hash /= sharedTags
	return &s[hash/64%uint64(len(s))], 1 << (hash % 64)
}

func (s *sharers) add(hash uint64) {
	word, bit := s.place(hash)
	*word |= bit
}

func (s *sharers) has(hash uint64) bool {
	word, bit := s.place(hash)
	return *word&bit != 0
}

// sharedPlace is where names with a hash and a quota share a tag: with another quota they could have more than their own. nil: there is
// no room. The lock mu is held.
func (s *tagSet) sharedPlace(hash uint64, q Quota) **tag {
	for i := range uint64(sharedTags) {
		if place := &s.shared[(hash+i)%sharedTags]; *place == nil || reflect.DeepEqual(*(*place).quota(), q) {
			return place
		}
	}
	return nil
}

// share returns the tag that a name shares with others of the same quota. If there is none, and no room for one, the name counts as other.
// The lock mu is held.
func (s *tagSet) share(own string, q Quota) *tag {
	hash := maphash.String(s.seed, own)
	place := s.sharedPlace(hash, q)
	if place == nil {
		return s.other.first()
	}
	s.sharers.add(hash)
	if *place == nil {
		*place = newTag(s, own, q)
		(*place).many = true
	}
	return *place
}

// sharedBy returns the tag that a name has shared, as far as known; nil: it has shared none. A pool keeps the spending of names, but not
// what they used while they shared. The lock mu is held.
func (s *tagSet) sharedBy(own string, q Quota) *tag {
	hash := maphash.String(s.seed, own)
	if s.pooled || !s.sharers.has(hash) {
		return nil
	}
	if place := s.sharedPlace(hash, q); place != nil {
		return *place
	}
	return nil
}

// begin lets a new tag begin as the one that its name has shared, as if all callers that wait there were its own: so the name gets no more
// than its quota in all. It never waits for that one's lock, and returns false if it is in use.
func (g *tag) begin(shared *tag) bool {
	if !shared.mu.TryLock() {
		return false
	}
	defer shared.mu.Unlock()
	g.tagBucket.Begin(g.t.gate.Now(), shared.tagBucket, int64(shared.queue.Tokens)+shared.promised)
	return true
}

// endSharing searches for idle tags when a tag that shares a quota is used, because no new name may come that starts the search. It takes mu.
func (s *tagSet) endSharing() {
	if s.gone.looks(s.t.gate.Now()) {
		s.mu.Lock()
		s.evict()
		s.mu.Unlock()
	}
}

// forgetViews forgets the limiters of tags that are gone, and of tags that share a quota: these can now have their own. The lock mu is held.
func (s *tagSet) forgetViews() {
	for name, l := range s.limiters {
		if l.shares {
			delete(s.limiters, name)
			if name != l.first().name {
				s.unknown--
			}
		}
	}
	for key, l := range s.joint {
		if l.shares || slices.ContainsFunc(l.tags, func(g *tag) bool { return g.gone.Load() }) {
			delete(s.joint, key)
		}
	}
}
