package throttle

import "github.com/numaproj-contrib/numathrottle/internal/hook"

func init() { //nolint:gochecknoinits // as in hooks.go
	hook.TellsTags = func(l any) bool { return tellsTags(limiterIn(l)) }
	hook.ForLevels = func(l any, first, second string) any { return forLevels(limiterIn(l), first, second) }
}

// tellsTags is hook.TellsTags.
func tellsTags(l Limiter) bool {
	if t, ok := l.(interface{ tellsTags() bool }); ok {
		return t.tellsTags()
	}
	_, ok := l.(Tagger)
	return ok
}

func (t *Throttle) tellsTags() bool { return t.tags != nil }

// ForTags returns the Limiter for draws with all of these tags. Of a *Throttle, and of an All, it is as [Throttle.ForTags]: n tokens of each
// tag's quota, and n of each limit once. Any other Tagger is drawn from once for each tag. Without tags, or if l is no Tagger, it is l
// itself.
func ForTags(l Limiter, tags ...string) Limiter {
	t, ok := l.(Tagger)
	switch {
	case !ok || len(tags) == 0:
		return l
	case len(tags) == 1:
		return t.ForTag(tags[0])
	}
	if t, ok := l.(interface{ ForTags(tags ...string) Limiter }); ok {
		return t.ForTags(tags...)
	}
	each := make([]Limiter, len(tags))
	for i, tag := range tags {
		each[i] = t.ForTag(tag)
	}
	return All(each...)
}
