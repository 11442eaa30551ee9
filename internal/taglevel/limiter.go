package taglevel

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Limiter returns a limiter whose tags are those of Name: it draws for both levels of a tag, as hook.ForLevels. One that tells no tags apart
// is returned unchanged.
func Limiter(l throttle.Limiter) throttle.Limiter {
	if tags, ok := l.(throttle.Tagger); ok && hook.TellsTags(l) {
		return &levels{l, tags}
	}
	return l
}

// A levels limiter draws for tags of two levels.
type levels struct {
	throttle.Limiter

	tags throttle.Tagger
}

// ForTag implements throttle.Tagger.
func (l *levels) ForTag(tag string) throttle.Limiter {
	first := First(tag)
	if first == tag {
		return l.tags.ForTag(tag)
	}
	both, _ := hook.ForLevels(l.Limiter, first, tag).(throttle.Limiter)
	return both
}

// Unwrap exposes the limiter to package throttle.
func (l *levels) Unwrap() throttle.Limiter { return l.Limiter }

// RetryAfter passes on a service's request to be left alone.
func (l *levels) RetryAfter(until time.Time, reason string) {
	if of, ok := l.Limiter.(interface {
		RetryAfter(until time.Time, reason string)
	}); ok {
		of.RetryAfter(until, reason)
	}
}
