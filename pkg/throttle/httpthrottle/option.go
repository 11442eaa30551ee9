package httpthrottle

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"
)

// An Option changes the behaviour of a transport. A nil Option changes nothing. The user's functions in options are called from any number
// of goroutines at once. They must not change the request, nor read its body other than through GetBody.
type Option func(*settings)

// settings holds the values of the options.
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

// WithCost sets how many tokens each attempt of a request draws. At zero or less it draws none, but waits as for one, and is charged
// what it is settled with. cost is called once for each request. The default, also for nil, is 1 for every request.
func WithCost(cost func(*http.Request) int) Option {
	return func(s *settings) { s.cost = cost }
}

// WithTag sets the tag for which a request draws its tokens: a tenant, a model, a destination. It matters for a limiter that knows tags
// (throttle.Tagger). A refusal for one tag holds back no other. The function tag is called once for each request, in the goroutine of its
// RoundTrip; when it panics, nothing is drawn and the panic goes on there. The limiter gets the result as it is. For pauses, errors and
// Feedback a tag that is longer than 128 bytes, or is no text, is replaced by a short hash of it. The default, also for nil, is no tag.
// Host is one such function.
func WithTag(tag func(*http.Request) string) Option {
	return func(s *settings) { s.tag = tag }
}

// Host returns the host that a request goes to, with its port if it names one; for
// [WithTag].
func Host(req *http.Request) string {
	if req.URL == nil {
		return ""
	}
	return req.URL.Host
}

// WithMeter sets how a response yields the real cost of its call; see Meter. The function meter is called with the response before its body
// is read, which it must not do itself. A nil Meter leaves the cost as drawn. meter is not called for refusals, which cost the drawn
// tokens. The default, also for nil, is no meter. Package pkg/llm has those of LLMs.
func WithMeter(meter func(*http.Response) Meter) Option {
	return func(s *settings) { s.meter = meter }
}

// WithClassifier sets which answers count as refusals. The default, also for nil, is Generic.
func WithClassifier(c Classifier) Option {
	return func(s *settings) { s.classify = c }
}

// WithFeedback sets the receiver of reports on refusals and served calls. It replaces the transport's own Pause: f holds calls back if it
// is a Pauser, and otherwise only the limiter does. The default, also for nil, is a Pause of the transport's own, with ToldOnly if the
// limiter is adaptive.
func WithFeedback(f Feedback) Option {
	return func(s *settings) { s.feedback = f }
}

// WithMaxAttempts sets how often a request is sent at most, repeats by the base included: 1 to 100. 1 means never again. Defaults to 4.
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

// WithMaxElapsed sets the time, from its beginning, after which a call is not tried again; an attempt under way goes on. It must be above
// 0. Defaults to five minutes. A call whose time ends while it waits for the tokens of a further attempt fails with a *throttle.Error that
// is also context.DeadlineExceeded. It fails with the latter alone when its context has a deadline and 80 % of its time or less was spent
// waiting.
func WithMaxElapsed(d time.Duration) Option {
	return func(s *settings) {
		s.check("WithMaxElapsed", d, d > 0, "more than 0")
		s.maxElapsed = d
	}
}

// WithMaxPause sets how long one refusal may hold back other calls. These are calls of this process, by the transport's own Pause, and of
// the pool, which obeys its own bound too (throttle.WithMaxRetryAfter). If a service asks for more, or seems to, the others wait for no
// longer than d, and a line in the log shows its words. The refused call itself is not cut short: it ends with the whole of
// [Refusal.RetryAfter], unless [WithMaxWait] allows for it. With [OpenAI] and the other
// classifiers for LLMs a longer wait for a limit is a Stop, which holds back nobody. d must be above 0. Defaults to [DefaultMaxPause]. A
// Feedback of the user's own has bounds of its own.
func WithMaxPause(d time.Duration) Option {
	return func(s *settings) {
		s.check("WithMaxPause", d, d > 0, "more than 0")
		s.maxPause = d
	}
}

// WithLogger sets where the transport logs, at level warn and at most once a second, that a service asks for a longer pause than
// [WithMaxPause] allows. The default, also for nil, is slog.Default().
func WithLogger(log *slog.Logger) Option { return func(s *settings) { s.log = log } }

// WithBodyBuffer sets up to which size, in bytes, the body of a request is read into memory before the first attempt. Then it can be sent
// again. The size is 0 or more; 0 reads none. A larger body is sent once. It matters only for requests without GetBody; http.NewRequest
// sets that for bytes and strings. By default bodies of a known length are read, up to 1 MiB. With this option bodies of unknown length are
// read too, which does not suit a caller that writes the body while it reads the response.
func WithBodyBuffer(size int64) Option {
	return func(s *settings) {
		s.check("WithBodyBuffer", size, size >= 0, "0 or more")
		s.buffer, s.bufferAll = size, true
	}
}

// WithIdempotencyKey sends a header Idempotency-Key, the same with every attempt. It does so for requests whose method is not idempotent
// (POST, PATCH), unless they have one. The function is called once for each request and returns visible ASCII, at most 255 characters; an
// empty key is not sent. A nil function makes a random key of 26 characters for each. A service that knows the header acts once however
// often the request comes, so such a request counts as idempotent. By default no key is sent.
func WithIdempotencyKey(key func(*http.Request) string) Option {
	if key == nil {
		key = func(*http.Request) string { return rand.Text() }
	}
	return func(s *settings) { s.key = key }
}

// RetryFailures also repeats, with a backoff, calls that failed for other reasons: an error of the base transport, or a status of 408, 500,
// 502, 503 or 504. It does so only for requests that are idempotent, by their method or by an Idempotency-Key. By default only refusals are
// repeated.
func RetryFailures() Option { return func(s *settings) { s.failures = true } }

// RefusalsAsErrors returns an error instead of the response to a call that was refused for good. It is a *throttle.Error with
// [ReasonRefused], the time to retry and a *RefusedError as cause, so that errors.Is finds throttle.ErrThrottled. For Stop it wraps the
// *RefusedError alone. That carries class and time through client libraries that make errors of their own of a response. It deviates from
// http.RoundTripper, which asks for an error only without a response. By default the response is returned, as it came.
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

// Check returns all faults of the options in one error, with which [NewTransport] would panic; nil: there are none.
func Check(opts ...Option) error {
	s := newSettings(opts)
	return s.faults()
}
