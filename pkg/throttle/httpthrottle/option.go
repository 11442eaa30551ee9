package httpthrottle

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"
)

// An Option changes what a transport does. A nil Option changes nothing. The functions of
// the user that options carry are called from any number of goroutines at once; they must
// not change the request, nor read its body other than through GetBody.
type Option func(*settings)

// settings is what the options say.
type settings struct {
	cost        func(*http.Request) int
	tag         func(*http.Request) string
	meter       func(*http.Response) Meter
	classify    Classifier
	feedback    Feedback
	key         func(*http.Request) string
	attempts    int
	maxWait     time.Duration
	maxElapsed  time.Duration
	maxPause    time.Duration
	log         *slog.Logger
	buffer      int64
	bufferAll   bool // bodies of unknown length too
	failures    bool
	asErrors    bool
	faultsFound []error
}

// WithCost sets how many tokens each attempt of a request draws. At zero or less it
// draws none and never waits for any. cost is called once for each request. Defaults
// to 1 for every request; so does nil.
func WithCost(cost func(*http.Request) int) Option {
	return func(s *settings) { s.cost = cost }
}

// WithTag sets which tag a request draws its tokens for: a tenant, a model, a
// destination. It matters for a limiter that knows tags (throttle.Tagger); and what was
// refused for one tag holds back no other. tag is called once for each request, in the goroutine
// of its RoundTrip; when it panics, nothing is drawn and the panic goes on there. The limiter gets what it
// returns as it is. For pauses, errors and Feedback a tag that is longer than 128 bytes, or is no text, is
// a short hash of it.
// Defaults to no tag; so does nil. Host is one.
func WithTag(tag func(*http.Request) string) Option {
	return func(s *settings) { s.tag = tag }
}

// Host returns the host that a request goes to, with its port if it names one; for
// WithTag.
func Host(req *http.Request) string {
	if req.URL == nil {
		return ""
	}
	return req.URL.Host
}

// WithMeter sets how it is learnt from a response what its call really cost; see Meter.
// meter is called with the response before its body is read, which it must not do itself;
// a nil Meter leaves the cost as drawn. It is not called for refusals, which cost what was
// drawn. Defaults to no meter; so does nil. UsageMeter is one for LLMs.
func WithMeter(meter func(*http.Response) Meter) Option {
	return func(s *settings) { s.meter = meter }
}

// WithClassifier sets what counts as a refusal. Defaults to Generic; so does nil.
func WithClassifier(c Classifier) Option {
	return func(s *settings) { s.classify = c }
}

// WithFeedback sets who is told of refusals and of calls that were served. It takes the
// place of the transport's own Pause: calls are held back by f if it is a Pauser, and
// else only by the limiter. Defaults to a Pause of the transport's own, with ToldOnly if the
// limiter is adaptive; so does nil.
func WithFeedback(f Feedback) Option {
	return func(s *settings) { s.feedback = f }
}

// WithMaxAttempts sets how often a request is sent at most, by whomever: 1 to 100. 1 means never
// again. Defaults to 4.
func WithMaxAttempts(n int) Option {
	return func(s *settings) {
		s.check("WithMaxAttempts", n, n >= 1 && n <= 100, "1 to 100")
		s.attempts = n
	}
}

// WithMaxWait sets the longest time that a call waits because of one refusal, its own or,
// in a pause, that of another. When a service says more, the call ends at once with the
// response, or in a pause with an error. It must be above 0. Defaults to one minute.
func WithMaxWait(d time.Duration) Option {
	return func(s *settings) {
		s.check("WithMaxWait", d, d > 0, "more than 0")
		s.maxWait = d
	}
}

// WithMaxElapsed sets the time, from its beginning, after which a call is not tried
// again; an attempt under way goes on. It must be above 0. Defaults to five minutes. A call whose
// time is over while it waits for the tokens of a further attempt ends with a *throttle.Error
// that is context.DeadlineExceeded, too; with the latter alone when its context has a deadline and
// 80 % of its time or less was spent waiting.
func WithMaxElapsed(d time.Duration) Option {
	return func(s *settings) {
		s.check("WithMaxElapsed", d, d > 0, "more than 0")
		s.maxElapsed = d
	}
}

// WithMaxPause sets how long one refusal may hold back other calls: those of this process, by the transport's own
// Pause, and those of the pool, which goes by its own bound too (throttle.WithMaxRetryAfter). A service may ask for more, or
// seem to: then the others wait for no longer than d, and a line in the log shows what it said. The refused
// call itself is not cut short: it ends with the whole of Refusal.RetryAfter, unless WithMaxWait allows for it. It must be above 0.
// Defaults to DefaultMaxPause. A Feedback of the user's own has bounds of its own.
func WithMaxPause(d time.Duration) Option {
	return func(s *settings) {
		s.check("WithMaxPause", d, d > 0, "more than 0")
		s.maxPause = d
	}
}

// WithLogger sets where the transport logs: at level warn, at most once a second, that a service asks for a longer pause than
// WithMaxPause allows. Defaults to slog.Default(); so does nil.
func WithLogger(log *slog.Logger) Option { return func(s *settings) { s.log = log } }

// WithBodyBuffer sets up to what size, in bytes, the body of a request is read into memory
// before the first attempt, so that it can be sent again: 0 or more; 0 reads none. A larger
// body is sent once. It matters only for requests without GetBody; those that
// http.NewRequest made of bytes or a string have one. By default bodies of a known length
// are read, up to 1 MiB; with this option also those of unknown length, which does not suit
// a caller that writes the body while it reads the response.
func WithBodyBuffer(size int64) Option {
	return func(s *settings) {
		s.check("WithBodyBuffer", size, size >= 0, "0 or more")
		s.buffer, s.bufferAll = size, true
	}
}

// WithIdempotencyKey sends a header Idempotency-Key, the same with every attempt, with
// requests whose method is not idempotent (POST, PATCH), unless they have one. key is
// called once for each request and returns visible ASCII, at most 255 characters; an empty
// key is not sent. nil makes a random key of 26 characters for each. A service that knows
// the header acts once however often the request comes, so such a request counts as
// idempotent. By default no key is sent.
func WithIdempotencyKey(key func(*http.Request) string) Option {
	if key == nil {
		key = func(*http.Request) string { return rand.Text() }
	}
	return func(s *settings) { s.key = key }
}

// RetryFailures also repeats, with a backoff, what failed for other reasons: an error of
// the base transport, or a status of 408, 500, 502, 503 or 504. It does so only for
// requests that are idempotent, by their method or by an Idempotency-Key. By default only
// refusals are repeated.
func RetryFailures() Option { return func(s *settings) { s.failures = true } }

// RefusalsAsErrors returns an error instead of the response to a call that was refused for
// good: a *throttle.Error with ReasonRefused, the time to retry and a *RefusedError as
// cause, so that errors.Is tells throttle.ErrThrottled; for Stop the *RefusedError alone.
// That brings class and time through client libraries which make errors of their own of a
// response. It is not quite what http.RoundTripper asks for, which is an error only
// without a response. By default the response is returned, as it came.
func RefusalsAsErrors() Option { return func(s *settings) { s.asErrors = true } }

const (
	defaultAttempts   = 4
	defaultMaxWait    = time.Minute
	defaultMaxElapsed = 5 * time.Minute
	defaultBuffer     = 1 << 20
)

func newSettings(opts []Option) settings {
	s := settings{attempts: defaultAttempts, maxWait: defaultMaxWait, maxElapsed: defaultMaxElapsed, maxPause: DefaultMaxPause, buffer: defaultBuffer}
	for _, opt := range opts {
		if opt != nil {
			opt(&s)
		}
	}
	if s.classify == nil {
		s.classify = Generic
	}
	if s.log == nil {
		s.log = slog.Default()
	}
	return s
}

// check notes a fault unless an option's value is allowed.
func (s *settings) check(option string, value any, ok bool, allowed string) {
	if !ok {
		s.faultsFound = append(s.faultsFound, fmt.Errorf("httpthrottle: %s is %v, allowed: %s", option, value, allowed))
	}
}

func (s *settings) faults() error { return errors.Join(s.faultsFound...) }

// Check returns everything that is wrong with the options, in one error, with which NewTransport would panic; nil for nothing.
func Check(opts ...Option) error {
	s := newSettings(opts)
	return s.faults()
}
