package throttle

import (
	"strings"
	"sync"
	"sync/atomic"
)

// A tagged is a multi with a limiter that tells tags apart.
type tagged struct {
	*multi
	known sync.Map // of knownTag by tag, where it does not change but with quotas
	count atomic.Int64
	seen  atomic.Int64 // the newest era that it was asked in
}

var _ Tagger = (*tagged)(nil)

// ForTag returns the same limits for what has this tag.
func (t *tagged) ForTag(tag string) Limiter {
	era := t.era()
	if t.seen.Swap(era) != era { // nothing of it counts any more, and it keeps tags from making way
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
	var children []child
	for _, p := range t.children {
		if p.attached {
			continue // comes with the tag's own
		}
		l := p.limiter
		if tags, ok := l.(Tagger); ok {
			l = tags.ForTag(tag)
			own, ok := l.(*tagView)
			_, plain := l.(*Throttle)
			fixed = fixed && (plain || ok && own.name == tag)
		}
		var cost func(int) int
		if len(p.costs) > 0 {
			cost = p.price
		}
		children = flatten(children, l, cost)
	}
	l := join(children)
	switch {
	case old:
		t.known.Store(strings.Clone(tag), knownTag{l, era})
	case fixed && t.count.Load() < maxNames:
		t.count.Add(1)
		t.known.Store(strings.Clone(tag), knownTag{l, era})
	}
	return l
}

// A knownTag is what ForTag returned in an era of quotas.
type knownTag struct {
	limiter Limiter
	era     int64
}

// era counts the changes of quotas at all children.
func (t *tagged) era() (sum int64) {
	for i := range t.children {
		if own, ok := t.children[i].limiter.(*Throttle); ok && own.tags != nil {
			sum += own.tags.era.Load()
		}
	}
	return sum
}

// ForTags returns the same limits for what has these tags.
func (t *tagged) ForTags(tags ...string) Limiter {
	var children []child
	for _, p := range t.children {
		if p.attached {
			continue // comes with the tags' own
		}
		var cost func(int) int
		if len(p.costs) > 0 {
			cost = p.price
		}
		children = flatten(children, ForTags(p.limiter, tags...), cost)
	}
	return join(children)
}
