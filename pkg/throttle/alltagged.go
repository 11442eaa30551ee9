package throttle

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// A tagged is a multi with a limiter that distinguishes tags.
type tagged struct {
	*multi
	known sync.Map // knownTag by tag, if only a change of quotas can replace it
	count atomic.Int64
	seen  atomic.Int64 // the era of the last ForTag
}

var _ Tagger = (*tagged)(nil)

// ForTag returns the same limits for this tag.
func (t *tagged) ForTag(tag string) Limiter {
	era := t.era()
	if t.seen.Swap(era) != era { // all entries are outdated, and would keep tags from eviction
		t.known.Clear()
		t.count.Store(0)
	}
	known, old := t.known.Load(tag)
	if old {
		if k := known.(knownTag); k.era == era { //nolint:forcetypeassert,errcheck // nothing else is in it
			return k.limiter
		}
	}
	fixed := true
	l := t.each(func(l Limiter) Limiter {
		tags, ok := l.(Tagger)
		if !ok {
			return l
		}
		l = tags.ForTag(tag)
		switch own := l.(type) {
		case *Throttle, *InFlight, *slotView: // each finds its tags by itself
		case *tagView:
			fixed = fixed && own.name == tag && !own.shares
		default:
			fixed = false
		}
		return l
	})
	switch {
	case old:
		t.known.Store(strings.Clone(tag), knownTag{l, era})
	case fixed && t.count.Load() < maxNames:
		t.count.Add(1)
		t.known.Store(strings.Clone(tag), knownTag{l, era})
	}
	return l
}

// QuotaTag is that of its limiters, each name once; see tagView.QuotaTag.
func (m *multi) QuotaTag() string {
	var names []string
	for _, p := range m.Children {
		if l, ok := p.Limiter.(interface{ QuotaTag() string }); ok && !p.Attached {
			names = append(names, strings.Split(l.QuotaTag(), "\x00")...)
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), "\x00")
}

// A knownTag is a result of ForTag in one era of quotas.
type knownTag struct {
	limiter Limiter
	era     int64
}

// era counts the changes of quotas at all children.
func (t *tagged) era() (sum int64) {
	for i := range t.Children {
		if own, ok := t.Children[i].Limiter.(*Throttle); ok && own.tags != nil {
			sum += own.tags.era.Load()
		}
	}
	return sum
}

// ForTags returns the same limits for these tags.
func (t *tagged) ForTags(tags ...string) Limiter {
	return t.each(func(l Limiter) Limiter { return ForTags(l, tags...) })
}

// each returns the same limits, each as a function has it.
func (t *tagged) each(of func(Limiter) Limiter) Limiter {
	var children []child
	for _, p := range t.Children {
		if p.Attached {
			continue // added with the tags' own limiter
		}
		children = flatten(children, of(p.Limiter), p.Cost())
	}
	return allOf(children)
}
