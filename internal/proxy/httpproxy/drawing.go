package httpproxy

import (
	"context"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/proxy"
	"github.com/numaproj-contrib/numathrottle/internal/taglevel"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// drawing returns the limiter of requests: it draws for the tags of their contexts, and bounds how many of them wait, and for how long.
func (p *handler) drawing(l throttle.Limiter) throttle.Limiter {
	if len(p.tags) > 1 {
		l = taglevel.Limiter(l)
	}
	l = withPatience(proxy.BoundTags(l, p.MaxRequests), p.MaxWait)
	if tags, ok := l.(throttle.Tagger); ok && hook.TellsTags(l) && (len(p.tags) > 1 || p.account != nil) {
		return &byCall{patient{l, p.MaxWait}, tags}
	}
	return l
}

// A byCall limiter draws for the tag of each request's call. Its own tags are those that refusals of the service concern: the first of two
// levels, or all tags of an LLM's account.
type byCall struct {
	patient

	tags throttle.Tagger
}

// of returns the limiter of a request.
func (l *byCall) of(ctx context.Context) throttle.Limiter {
	if tag := callOf(ctx).tag; tag != "" {
		return l.tags.ForTag(tag)
	}
	return l.Limiter
}

// ForTag implements throttle.Tagger.
func (l *byCall) ForTag(tag string) throttle.Limiter {
	return &byCall{patient{l.tags.ForTag(tag), l.wait}, l.tags}
}

// Acquire implements throttle.Limiter.
func (l *byCall) Acquire(ctx context.Context, n int) (throttle.Permit, error) {
	return l.of(ctx).Acquire(ctx, n)
}

// AcquireUpTo implements throttle.Limiter.
func (l *byCall) AcquireUpTo(ctx context.Context, n int) (throttle.Permit, error) {
	return l.of(ctx).AcquireUpTo(ctx, n)
}
