package httpproxy

import (
	"context"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A patient limiter bounds the wait for tokens. The rest of a call has its own bounds.
type patient struct {
	throttle.Limiter

	wait time.Duration
}

// withPatience bounds the waits at l.
func withPatience(l throttle.Limiter, wait time.Duration) throttle.Limiter {
	if throttle.Unlimited(l) {
		return l
	}
	if t, ok := l.(throttle.Tagger); ok && hook.TellsTags(l) {
		return &patientTagger{patient{l, wait}, t}
	}
	return &patient{l, wait}
}

// A patientTagger is a patient limiter that supports tags.
type patientTagger struct {
	patient

	tags throttle.Tagger
}

// ForTag implements throttle.Tagger.
func (p *patientTagger) ForTag(tag string) throttle.Limiter {
	return withPatience(p.tags.ForTag(tag), p.wait)
}

// Acquire implements throttle.Limiter.
func (p *patient) Acquire(ctx context.Context, n int) (throttle.Permit, error) {
	ctx, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	return p.Limiter.Acquire(ctx, n)
}

// AcquireUpTo implements throttle.Limiter.
func (p *patient) AcquireUpTo(ctx context.Context, n int) (throttle.Permit, error) {
	ctx, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	return p.Limiter.AcquireUpTo(ctx, n)
}

// Unwrap exposes the limiter to package throttle.
func (p *patient) Unwrap() throttle.Limiter { return p.Limiter }

// A listener accepts a service's request to be left alone.
type listener interface {
	RetryAfter(until time.Time, reason string)
}

var _ listener = (*throttle.Throttle)(nil)

// RetryAfter passes on a service's request to be left alone.
func (p *patient) RetryAfter(until time.Time, reason string) {
	if l, ok := p.Limiter.(listener); ok {
		l.RetryAfter(until, reason)
	}
}
