package throttle

import (
	"hash/maphash"
	"reflect"
	"slices"
)

// sharers is the set of names that have shared a quota: one bit for each hash. Names with equal bits are taken for each other. No name is
// removed.
type sharers [1024]uint64

// place returns the bit of a hash. It uses other bits of the hash than sharedPlace, so names that share a tag have different ones.
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

// sharedPlace returns the place of the tag that names with this hash and quota share, which may be empty; nil if there is none. Names with
// other quotas never share it: one of them could use more than its own. The lock mu is held.
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

// sharedBy returns the tag that a name has shared; nil if it has shared none. In a pool it returns nil: the pool keeps what the shared tag
// used, under the name that shared it first. The lock mu is held.
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

// begin copies the state of the tag that its name has shared, less the tokens that callers wait for there. The name used no more than that
// tag, and all of these callers may be its own. So both tags together give it no more than its quota. begin returns false if the shared tag
// is locked. It can't wait, since the lock mu is held.
func (g *tag) begin(shared *tag) bool {
	if !shared.mu.TryLock() {
		return false
	}
	defer shared.mu.Unlock()
	g.tagBucket.Begin(g.t.gate.Now(), shared.tagBucket, int64(shared.queue.Tokens)+shared.promised)
	return true
}

// endSharing searches for room if a tag is shared: no new name may come that starts the search. It takes mu.
func (l *tagView) endSharing() {
	s := l.set
	if !l.shares || !s.gone.looks(s.t.gate.Now()) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.evict() && len(s.tags) < s.most { // a shared tag was locked in the last round
		s.newRound()
	}
}

// newRound makes names that share a quota look for one of their own. The lock mu is held.
func (s *tagSet) newRound() {
	s.gone.rounds.Add(1)
	s.forgetViews()
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
