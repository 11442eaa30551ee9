package proxy

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// BoundTags returns a limiter at which at most half of places callers, but at least one, wait for one tag; with two levels, for one tag of
// either. All tags without a quota of their own are one, so that callers cannot take more places by inventing names. Further callers are
// refused at once, with the reason that holds the tag back. So an exhausted or paused tag does not take all places of a proxy. A limiter
// without tags is returned unchanged.
func BoundTags(l throttle.Limiter, places int) throttle.Limiter {
	tags, ok := l.(throttle.Tagger)
	if !ok || !hook.TellsTags(l) {
		return l
	}
	w := &waiting{most: max(places/2, 1), by: map[string]int{}}
	return &bounded{l, tags, w, "", []string{""}}
}

// waiting counts waiting callers by tag.
type waiting struct {
	most int

	mu sync.Mutex
	by map[string]int // never 0
}

// enter counts one more for each of some tags; it returns false if the maximum of one is reached.
func (w *waiting) enter(tags []string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.ContainsFunc(tags, func(tag string) bool { return w.by[tag] >= w.most }) {
		return false
	}
	for _, tag := range tags {
		w.by[tag]++
	}
	return true
}

func (w *waiting) leave(tags []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, tag := range tags {
		if w.by[tag]--; w.by[tag] == 0 {
			delete(w.by, tag)
		}
	}
}

// A bounded limiter serves one tag, and finds those of other tags.
type bounded struct {
	throttle.Limiter

	tags    throttle.Tagger
	waiting *waiting
	tag     string   // in errors
	quotas  []string // the tags whose callers are counted
}

// Acquire implements throttle.Limiter.
func (b *bounded) Acquire(ctx context.Context, n int) (throttle.Permit, error) {
	if !b.waiting.enter(b.quotas) {
		return throttle.Permit{}, b.refusal(n)
	}
	defer b.waiting.leave(b.quotas)
	return b.Limiter.Acquire(ctx, n)
}

// AcquireUpTo implements throttle.Limiter.
func (b *bounded) AcquireUpTo(ctx context.Context, n int) (throttle.Permit, error) {
	if !b.waiting.enter(b.quotas) {
		return throttle.Permit{}, b.refusal(n)
	}
	defer b.waiting.leave(b.quotas)
	return b.Limiter.AcquireUpTo(ctx, n)
}

// refusal returns the reason why the other callers of the tag wait.
func (b *bounded) refusal(n int) error {
	e := throttle.Error{Reason: throttle.ReasonLimit, Tag: b.tag, Cost: n}
	if t, ok := b.Limiter.(interface {
		Throttled() (throttle.Throttling, bool)
	}); ok {
		if held, ok := t.Throttled(); ok {
			e.Reason, e.Limit, e.Tag, e.RetryAfter, e.Frozen = held.Reason, held.Limit, held.Tag, held.RetryAfter, held.Frozen
		}
	}
	return &e
}

// Unwrap exposes the limiter to package throttle.
func (b *bounded) Unwrap() throttle.Limiter { return b.Limiter }

// RetryAfter passes on a service's request to be left alone.
func (b *bounded) RetryAfter(until time.Time, reason string) {
	if l, ok := b.Limiter.(interface {
		RetryAfter(until time.Time, reason string)
	}); ok {
		l.RetryAfter(until, reason)
	}
}

// ForTag implements throttle.Tagger.
func (b *bounded) ForTag(tag string) throttle.Limiter {
	name := tagname.Short(tag)
	one := &bounded{b.tags.ForTag(tag), b.tags, b.waiting, name, []string{name}}
	if of, ok := one.Limiter.(interface{ QuotaTag() string }); ok {
		one.quotas = strings.Split(of.QuotaTag(), "\x00") // of each level
	}
	return one
}
