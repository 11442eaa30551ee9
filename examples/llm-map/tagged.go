package main

import (
	"context"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/taglevel"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A byTag draws for the tag of each call's context. The transport cannot do so: it would limit the provider's refusals to one tag, but the
// key and its limits are common to all.
type byTag struct {
	throttle.Limiter

	tags throttle.Tagger
}

// forTags returns a limiter that draws for the tags of contexts, of one level or two, if l supports tags.
func (s *settings) forTags(l throttle.Limiter) throttle.Limiter {
	if _, two := taglevel.Messages(s.Tag); two {
		l = taglevel.Limiter(l)
	}
	if tags, ok := l.(throttle.Tagger); ok && !throttle.Unlimited(l) {
		return byTag{l, tags}
	}
	return l
}

// of returns the limiter for a call.
func (l byTag) of(ctx context.Context) throttle.Limiter {
	if tag := tagOf(ctx); tag != "" {
		return l.tags.ForTag(tag)
	}
	return l.Limiter
}

// Acquire implements throttle.Limiter.
func (l byTag) Acquire(ctx context.Context, n int) (throttle.Permit, error) {
	return l.of(ctx).Acquire(ctx, n)
}

// AcquireUpTo implements throttle.Limiter.
func (l byTag) AcquireUpTo(ctx context.Context, n int) (throttle.Permit, error) {
	return l.of(ctx).AcquireUpTo(ctx, n)
}

// Unwrap exposes the limiter to package throttle.
func (l byTag) Unwrap() throttle.Limiter { return l.Limiter }

// RetryAfter passes on the provider's request to be left alone.
func (l byTag) RetryAfter(until time.Time, reason string) {
	if reported, ok := l.Limiter.(interface {
		RetryAfter(until time.Time, reason string)
	}); ok {
		reported.RetryAfter(until, reason)
	}
}

type tagKey struct{}

// withTag returns a context whose calls draw for a tag.
func withTag(ctx context.Context, tag string) context.Context {
	if tag == "" {
		return ctx
	}
	return context.WithValue(ctx, tagKey{}, tag)
}

func tagOf(ctx context.Context) string {
	tag, _ := ctx.Value(tagKey{}).(string)
	return tag
}
