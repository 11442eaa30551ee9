package proxyconf

import (
	"context"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// BoundTags returns a limiter at which at most half of places callers wait for one tag, at least one. Who comes above that is refused at
// once, with what holds the tag back. So a tag that is exhausted or paused does not take all places of a proxy from the others. A
// limiter that tells no tags apart is returned as it is.
func BoundTags(l throttle.Limiter, places int) throttle.Limiter {
	tags, ok := l.(throttle.Tagger)
	if !ok || !throttle.TellsTags(l) {
		return l
	}
	w := &waiting{most: max(places/2, 1), by: map[string]int{}}
	return &boundedTagger{bounded{l, w, ""}, tags}
}

// waiting counts callers by tag.
type waiting struct {
	most int

	mu sync.Mutex
	by map[string]int // none is 0
}

// enter counts one more; false: there are as many as may be.
func (w *waiting) enter(tag string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by[tag] >= w.most {
		return false
	}
	w.by[tag]++
	return true
}

func (w *waiting) leave(tag string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by[tag]--; w.by[tag] == 0 {
		delete(w.by, tag)
	}
}

// A bounded limiter is drawn from for one tag.
type bounded struct {
	throttle.Limiter

	waiting *waiting
	tag     string
}

// Acquire implements throttle.Limiter.
func (b *bounded) Acquire(ctx context.Context, n int) (throttle.Permit, error) {
	if !b.waiting.enter(b.tag) {
		return throttle.Permit{}, b.refusal(n)
	}
	defer b.waiting.leave(b.tag)
	return b.Limiter.Acquire(ctx, n)
}

// AcquireUpTo implements throttle.Limiter.
func (b *bounded) AcquireUpTo(ctx context.Context, n int) (throttle.Permit, error) {
	if !b.waiting.enter(b.tag) {
		return throttle.Permit{}, b.refusal(n)
	}
	defer b.waiting.leave(b.tag)
	return b.Limiter.AcquireUpTo(ctx, n)
}

// refusal says what the others of the tag wait for.
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

// Unwrap shows the limiter to package throttle.
func (b *bounded) Unwrap() throttle.Limiter { return b.Limiter }

// RetryAfter hands on that a service wants to be left alone.
func (b *bounded) RetryAfter(until time.Time, reason string) {
	if l, ok := b.Limiter.(interface {
		RetryAfter(until time.Time, reason string)
	}); ok {
		l.RetryAfter(until, reason)
	}
}

// A boundedTagger is a bounded limiter that knows tags.
type boundedTagger struct {
	bounded

	tags throttle.Tagger
}

// ForTag implements throttle.Tagger.
func (b *boundedTagger) ForTag(tag string) throttle.Limiter {
	return &bounded{b.tags.ForTag(tag), b.waiting, tagname.Short(tag)}
}
