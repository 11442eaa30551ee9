package sinker

import (
	"fmt"
	"log/slog"
	"os"
	"time"

	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
)

// An Option changes how Wrap throttles. A nil Option changes nothing.
type Option func(*settings)

type settings struct {
	admission.Settings[sinksdk.Datum, sinksdk.Response]

	settle  func(d sinksdk.Datum, r sinksdk.Response) int // nil: used as drawn
	inOrder bool
}

// keyless is a function of the user, which gets the keys with the message.
func keyless[T any](of func(d sinksdk.Datum) T) func(keys []string, d sinksdk.Datum) T {
	if of == nil {
		return nil
	}
	return func(_ []string, d sinksdk.Datum) T { return of(d) }
}

// WithCost sets how many tokens a message draws. A message with a cost of zero or
// less draws none and never waits for tokens. cost is called once for each message,
// in the order of the batch, and for several batches at once where the server has
// several streams; when it panics, the stream fails as if the handler had.
// Defaults to 1 for every message; so does nil.
func WithCost(cost func(d sinksdk.Datum) int) Option {
	return func(s *settings) { s.Cost = keyless(cost) }
}

// WithTag sets the tag of a message: the tenant, model or destination that its
// tokens are drawn for, if the limiter tells tags apart (throttle.Tagger). Messages
// of one tag reach the handler in the order of the batch; messages that wait for
// tokens do not hold up those of another tag, unless InOrder says so. Whatever tag
// returns is a tag: with quotas one that is empty, longer than 64 bytes or no text has
// the quota of tags without one of their own. tag is called as cost is. Defaults to no tags; so does nil.
func WithTag(tag func(d sinksdk.Datum) string) Option {
	return func(s *settings) { s.Tag = keyless(tag) }
}

// InOrder keeps the order of the batch among different tags too: a message reaches
// the handler only after those that came before it, or were denied. Without tags
// that is always so.
func InOrder() Option {
	return func(s *settings) { s.inOrder = true }
}

// WithMaxWait bounds how long one message waits for its tokens, counted from its
// turn: when the message before it, of the same tag, was handed on or denied. It is
// denied at once when the wait is known to be longer. What happens then is
// OnDenied's matter. A batch of n messages may wait n times as long; see
// WithBatchBudget. Time in which the pool is frozen, because its store is new or has
// forgotten something, does not count. Defaults to 0: no limit of its own.
func WithMaxWait(d time.Duration) Option {
	return func(s *settings) { s.MaxWait = d }
}

// WithBatchBudget bounds how long the messages of one batch wait for tokens, all
// together. Only time in which a message waits counts, and it counts once however
// many they are; the time that the handler takes does not. Once it is used up,
// messages whose tokens are at hand pass and the others are denied: what happens to
// them is OnDenied's matter. With WithMaxWait too, whichever ends first counts.
// Defaults to 0: no limit.
func WithBatchBudget(d time.Duration) Option {
	return func(s *settings) { s.Budget = d }
}

// OnDenied sets what becomes of a message whose tokens do not come within
// WithMaxWait or WithBatchBudget. Defaults to Wait().
func OnDenied(a Action) Option {
	return func(s *settings) { s.OnDenied = a.does }
}

// WithSettle settles what a message drew with what it really cost. cost is called
// once for each message that the handler took and answered, with the response that
// goes to the platform, after the handler has returned; less than drawn gives tokens
// back, more is debt that later messages wait for. A message that the handler took
// and did not answer counts as drawn. It keeps the messages in memory until their
// batch ends. When it panics, the stream fails as if the handler had. Defaults to
// what was drawn; so does nil.
func WithSettle(cost func(d sinksdk.Datum, r sinksdk.Response) int) Option {
	return func(s *settings) { s.settle = cost }
}

// WithLogger sets where it is logged what the wrapper answered in the handler's
// place. Neither keys nor values are logged. Defaults to slog.Default(); so does
// nil.
func WithLogger(l *slog.Logger) Option {
	return func(s *settings) { s.Log = l }
}

func newSettings(opts []Option) settings {
	var s settings
	for _, opt := range opts {
		if opt != nil {
			opt(&s)
		}
	}
	return s
}

// Check returns an error that names every fault in the options, each with its value
// and what is allowed, or nil. Wrap panics with it. It reads the variable
// NUMAFLOW_UD_CONTAINER_TYPE to learn which of the three sinks this is.
func Check(opts ...Option) error { return newSettings(opts).check() }

// containerType is set by the platform in every container that it starts.
const containerType = "NUMAFLOW_UD_CONTAINER_TYPE"

func (s settings) check() error {
	var faults []string
	switch which := os.Getenv(containerType); which {
	case sinksdk.UDContainerFallbackSink, sinksdk.UDContainerOnSuccessSink:
		if s.OnDenied.Name == actionFallback {
			faults = append(faults, fmt.Sprintf("OnDenied is Fallback, allowed in a container of type %s: Wait, Nack, Fail, Drop or DenyFunc", which))
		}
	}
	return s.Check("sinker", "WithMaxWait or WithBatchBudget", "Nack, Fallback, Fail, Drop or DenyFunc", faults...)
}
