package throttle

import (
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/numaproj-contrib/numathrottle/internal/engine/gate"
	"github.com/numaproj-contrib/numathrottle/internal/tagname"
)

// Bounds of the memory for tags in a Throttle.
const (
	// maxTags is how many tags have quotas of their own here. A further one takes the place of an idle one (see evict). If there is none,
	// further names share sharedTags tags, by hash.
	maxTags    = 12_288
	sharedTags = 64
	// maxNames is how many names of other tags are remembered, and how many combinations of tags.
	maxNames = 1024
	// maxTagsOfDraw is how many tags of one draw are found without an allocation.
	maxTagsOfDraw = 4
)

// A tagSet is the state of a Throttle for tags. Of its locks only mu and held are taken while another lock is held, and under these two no
// other lock is waited for.
type tagSet struct {
	t      *rateLimiter
	quotas *Quotas
	pooled bool    // tokens come in batches from a pool
	part   float64 // of the quotas, without a pool
	seed   maphash.Seed

	other         *tagView
	named         map[string]Quota // those of the configuration
	configuration *Quotas
	others        *gate.WaitLog            // of all tags that have no quota by name there
	logs          map[string]*gate.WaitLog // of those that have, as far as they were in use; guarded by mu
	pauses        atomic.Pointer[[]Paused] // of tags; nil: there are none
	short         shortages[tag]
	blame         tagBlame
	plan          tagPlan
	waits         atomic.Int64 // see coming

	mu       sync.RWMutex
	tags     map[string]*tag
	weights  int // the sum of their weights
	most     int // of them: maxTags, fewer in tests
	shared   [sharedTags]*tag
	sharers  sharers
	limiters map[string]*tagView
	unknown  int // of these, names without a quota of their own
	joint    map[[maxTagsOfDraw]string]*tagView
	gone     evicting

	held   pausedQueue
	paused atomic.Int64 // pauses of tags that have begun
	// limited is how many calls the limit itself refused between the last two looks of the plan.
	limited, limitedAll atomic.Int64
	era                 atomic.Int64 // counts the changes of quotas, and the requests to other limits to forget the tags that they remember
	change              atomic.Int64 // counts the changes of quotas
}

// newTagSet returns the tagSet of a Throttle with quotas, and makes its queue fair.
func newTagSet(t *rateLimiter, q *Quotas) *tagSet {
	s := &tagSet{
		t: t, quotas: q, part: 1, seed: maphash.MakeSeed(), tags: map[string]*tag{}, most: maxTags,
		limiters: map[string]*tagView{}, joint: map[[maxTagsOfDraw]string]*tagView{},
	}
	switch by := t.sharer.(type) {
	case nil:
	case *static:
		s.part = float64(by.share) / float64(wholeShare)
	default:
		s.pooled = true
	}
	s.plan.gate, s.plan.renew = &t.gate, s.renewPlan
	s.configuration = q
	s.named, s.others, s.logs = q.Tags, &gate.WaitLog{}, map[string]*gate.WaitLog{}
	t.queue.MakeFair()
	other, _ := s.tagOf("", q.Other, false)
	s.other = newTagView(s, "", []*tag{other})
	return s
}

func (s *tagSet) forTag(name string) *tagView {
	l := s.view(name, false)
	s.lead(l.first())
	return l
}

// view returns the limiter of a name. If its tag is new, it is under others, or not.
func (s *tagSet) view(name string, under bool) *tagView {
	s.mu.RLock()
	l := s.limiters[name]
	s.mu.RUnlock()
	if l != nil {
		return l
	}
	return s.find(name, under)
}

// find is view for a name that is not known yet.
func (s *tagSet) find(name string, under bool) *tagView {
	name, own := bounded(name)
	if !own {
		return s.other
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.limiters[name]; l != nil {
		return l
	}
	g, shares := s.resolve(name, under)
	l := newTagView(s, name, []*tag{g})
	l.since, l.shares, l.round = s.change.Load(), shares, s.gone.rounds.Load()
	switch {
	case g.name == name:
		s.limiters[name] = l
	case s.unknown < maxNames:
		s.unknown++
		s.limiters[name] = l
	case !s.pausedName(name):
		return s.asOther(g)
	}
	return l
}

// viewOf returns the limiter of one tag.
func (s *tagSet) viewOf(g *tag) *tagView {
	if g.name == "" {
		return s.other
	}
	return s.view(g.name, true)
}

// bounded reports whether a name can be that of a tag. It returns a copy, for the name may be part of a message.
func bounded(name string) (string, bool) {
	if !tagname.Valid(name) {
		return "", false
	}
	return string([]byte(name)), true
}

// asOther returns the limiter of a tag that has many names.
func (s *tagSet) asOther(g *tag) *tagView {
	if l := s.limiters[g.name]; l != nil {
		return l
	}
	return s.other
}

// pausedName reports whether a pause of this name is known.
func (s *tagSet) pausedName(name string) bool {
	list := s.pauses.Load()
	return list != nil && slices.ContainsFunc(*list, func(p Paused) bool { return p.Tag == name })
}

// resolve returns the tag that draws of a name count for; shares means that there is no room for one of its own. The lock mu is held.
func (s *tagSet) resolve(name string, under bool) (g *tag, shares bool) {
	own, q := s.quotas.Find(name)
	if own == "" {
		return s.other.first(), false
	}
	if g := s.tags[own]; g != nil {
		return g, false
	}
	if _, configured := s.quotas.Tags[own]; configured || len(s.tags) < s.most || s.evict() {
		return s.tagOf(own, q, under)
	}
	return s.share(own, q), true
}

// logOf returns the log for waits of a tag. The lock mu is held, or s is not shared yet.
func (s *tagSet) logOf(name string) *gate.WaitLog {
	if _, named := s.named[name]; !named || name == "" {
		return s.others
	}
	if s.logs[name] == nil {
		s.logs[name] = &gate.WaitLog{}
	}
	return s.logs[name]
}

// tagOf makes a tag. It takes over the state of the tag that the name has shared. If the lock of that one is held, the name goes on sharing
// it until the next search.
func (s *tagSet) tagOf(name string, q Quota, under bool) (g *tag, shares bool) {
	g = newTag(s, name, q)
	if shared := s.sharedBy(name, q); shared != nil && !g.begin(shared) {
		return shared, true
	}
	g.under.Store(under)
	g.again = s.gone.count > 0
	s.add(g, q)
	return g, false
}

// add makes g one of the tags, with the weight of q. The lock mu is held.
func (s *tagSet) add(g *tag, q Quota) {
	s.tags[g.name] = g
	if g.weight = q.Weight; g.under.Load() {
		g.weight = 0
	}
	s.weights += g.weight
}

// remove reverts add.
func (s *tagSet) remove(g *tag) {
	delete(s.tags, g.name)
	s.weights -= g.weight
}

// forTags returns the limiter of several tags: each counts by itself, or they are two levels.
func (s *tagSet) forTags(names []string, levels bool) *tagView {
	var key [maxTagsOfDraw]string
	if len(names) <= maxTagsOfDraw {
		copy(key[:], names)
		if levels {
			key[maxTagsOfDraw-1] = asLevels
		}
		s.mu.RLock()
		l := s.joint[key]
		s.mu.RUnlock()
		if l != nil {
			return l
		}
	}
	clean, era, change := [maxTagsOfDraw]string{maxTagsOfDraw - 1: key[maxTagsOfDraw-1]}, s.era.Load(), s.change.Load()
	round, shares := s.gone.rounds.Load(), false
	var tags []*tag
	asked := make([]string, len(names))
	for i, name := range names {
		second := levels && i > 0
		l := s.view(name, second)
		if !second {
			s.lead(l.first())
		}
		shares = shares || l.shares
		if i < maxTagsOfDraw {
			clean[i] = l.name
		}
		for _, g := range l.tags {
			if !slices.Contains(tags, g) && (!second || g != s.other.first()) {
				tags = append(tags, g)
			}
		}
	}
	l := newTagView(s, clean[0], tags)
	l.since, l.levels, l.shares, l.round = change, levels, shares, round
	for i, name := range names {
		name, ok := bounded(name)
		asked[i] = name
		if ok && !slices.Contains(l.names, name) {
			l.names = append(l.names, name)
		}
	}
	l.asked = asked
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case era != s.era.Load(), round != s.gone.rounds.Load(), len(names) > maxTagsOfDraw, len(s.joint) >= maxNames, !slices.Equal(clean[:], key[:]):
	case slices.ContainsFunc(tags, func(g *tag) bool { return g.gone.Load() }): // a view with a replaced tag would be looked up again without end
	default:
		s.joint[clean] = l
	}
	return l
}

// all returns the known tags: "" first, then by name, then those that several names share.
func (s *tagSet) all() []*tag {
	s.mu.RLock()
	defer s.mu.RUnlock()
	list := make([]*tag, 0, len(s.tags)+sharedTags)
	for _, name := range slices.Sorted(maps.Keys(s.tags)) {
		list = append(list, s.tags[name])
	}
	for _, g := range s.shared {
		if g != nil {
			list = append(list, g)
		}
	}
	return list
}

// forgive ends the debt of the quotas, where a pool does not keep it. The nil tagSet has none.
func (s *tagSet) forgive() {
	if s == nil {
		return
	}
	now := s.t.gate.Now()
	for _, g := range s.all() {
		g.mu.Lock()
		g.tagBucket.Forgive(now)
		g.changed(now)
		g.mu.Unlock()
	}
}

// stop ends the work in the background. The nil tagSet has none.
func (s *tagSet) stop() {
	if s != nil {
		s.plan.stop()
	}
}
