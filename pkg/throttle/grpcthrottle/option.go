package grpcthrottle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// An Option changes the behaviour of an [Interceptor]. A nil Option changes nothing. The functions in options are called from any number of
// goroutines at once, and must not change the message.
type Option func(*settings)

// settings holds the values of the options.
type settings struct {
	cost     func(ctx context.Context, method string, msg any) int
	tag      func(ctx context.Context, method string, msg any) string
	classify Classifier
	maxWait  time.Duration
	maxPause time.Duration
	faults   []error
}

// WithCost sets how many tokens a message draws: the request of a unary call, and each message that a stream sends. At zero or less it draws
// none, but waits as for one. The method is the full one, such as /helloworld.Greeter/SayHello. The default, also for nil, is 1 for each unary
// call and each stream, however many messages it sends.
func WithCost(cost func(ctx context.Context, method string, msg any) int) Option {
	return func(s *settings) { s.cost = cost }
}

// WithTag sets the tag for which a call draws its tokens: a tenant, a model, a destination. It matters for a limiter that knows tags
// (throttle.Tagger). A refusal for one tag holds back no other. msg is nil when a stream opens without [WithCost]. The default, also for nil,
// is no tag.
func WithTag(tag func(ctx context.Context, method string, msg any) string) Option {
	return func(s *settings) { s.tag = tag }
}

// WithClassifier sets which statuses count as refusals. The default, also for nil, is [Generic].
func WithClassifier(c Classifier) Option { return func(s *settings) { s.classify = c } }

// WithMaxWait sets the longest time that a call waits because another one was refused. In a longer pause it fails at once, with the time to
// retry. It must be above 0. Defaults to one minute.
func WithMaxWait(d time.Duration) Option {
	return func(s *settings) {
		s.check("WithMaxWait", d)
		s.maxWait = d
	}
}

// WithMaxPause sets how long one refusal holds back other calls at most, of this process and of the pool. The pool also obeys its own bound
// (throttle.WithMaxRetryAfter). It must be above 0. Defaults to [httpthrottle.DefaultMaxPause].
func WithMaxPause(d time.Duration) Option {
	return func(s *settings) {
		s.check("WithMaxPause", d)
		s.maxPause = d
	}
}

const defaultMaxWait = time.Minute

func newSettings(opts []Option) (settings, error) {
	s := settings{maxWait: defaultMaxWait, maxPause: httpthrottle.DefaultMaxPause}
	for _, opt := range opts {
		if opt != nil {
			opt(&s)
		}
	}
	if s.classify == nil {
		s.classify = Generic
	}
	return s, errors.Join(s.faults...)
}

// check notes a fault unless an option's time is above 0.
func (s *settings) check(option string, d time.Duration) {
	if d <= 0 {
		s.faults = append(s.faults, fmt.Errorf("grpcthrottle: %s is %v, allowed: more than 0", option, d))
	}
}
