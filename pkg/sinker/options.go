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

// keyless adapts a user's function to the form that gets the keys with the message.
func keyless[T any](of func(d sinksdk.Datum) T) func(keys []string, d sinksdk.Datum) T {
	if of == nil {
		return nil
	}
	return func(_ []string, d sinksdk.Datum) T { return of(d) }
}

// WithCost sets how many tokens a message draws. A message with a cost of zero or less draws none, but waits as one of one token does. It
// calls cost once for each message, in the order of the batch, and for several batches at once if the server has several streams. When cost panics,
// the stream fails as if the handler had. Defaults to 1 for every message, also if cost is nil.
func WithCost(cost func(d sinksdk.Datum) int) Option {
	return func(s *settings) { s.Cost = keyless(cost) }
}

// WithTag sets the tag of a message: the tenant, model or destination that its tokens are drawn for, if the limiter knows tags
// (throttle.Tagger). Messages of one tag reach the handler in the order of the batch. Waiting messages do not hold up those of another tag,
// unless [InOrder] is set. Any result of tag is a tag. With quotas, a tag that is empty, longer than 64 bytes or not text has the quota of
// tags without one of their own. tag is called as cost is. Defaults to no tags, also if tag is nil.
func WithTag(tag func(d sinksdk.Datum) string) Option {
	return func(s *settings) { s.Tag = keyless(tag) }
}

// InOrder keeps the order of the batch among different tags too: a message reaches the handler only after the earlier ones were handed on
// or denied. Without tags that is always so.
func InOrder() Option {
	return func(s *settings) { s.inOrder = true }
}

// WithMaxWait bounds how long one message waits for its tokens, counted from its turn: when the message before it, of the same tag, was
// handed on or denied. It is denied at once when the wait is known to be longer. [OnDenied] sets what happens then. A batch of n messages may
// wait n times as long; see [WithBatchBudget]. Time in which the pool is frozen, because its store is new or has lost state, does not count.
// Defaults to 0: no limit of its own.
func WithMaxWait(d time.Duration) Option {
	return func(s *settings) { s.MaxWait = d }
}

// WithBatchBudget bounds the total time that the messages of one batch wait for tokens. Only time in which a message waits counts, and it
// counts once however many wait; the handler's time does not. Once it is used up, messages whose tokens are at hand pass. The others are
// denied, and [OnDenied] sets what happens to them. With [WithMaxWait] too, whichever ends first counts. Defaults to 0: no limit.
func WithBatchBudget(d time.Duration) Option {
	return func(s *settings) { s.Budget = d }
}

// OnDenied sets what happens to a message whose tokens do not come within [WithMaxWait] or [WithBatchBudget]. Defaults to Wait().
func OnDenied(a Action) Option {
	return func(s *settings) { s.OnDenied = a.does }
}

// WithSettle settles a message's tokens with its real cost. It calls cost once for each message that the handler took and answered, after
// the handler has returned, with the response that goes to the platform. A cost below the tokens drawn gives tokens back; a higher one is
// debt that later messages wait for. A message that the handler took and did not answer counts as drawn. It keeps the messages in memory
// until their batch ends. When cost panics, the stream fails as if the handler had. Defaults to the tokens drawn, also if cost is nil.
func WithSettle(cost func(d sinksdk.Datum, r sinksdk.Response) int) Option {
	return func(s *settings) { s.settle = cost }
}

// WithLogger sets the logger for the answers that the wrapper gives in the handler's place. Neither keys nor values are logged. Defaults to
// slog.Default(), also for nil.
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

// Check returns an error that names every fault in the options, each with its value and the allowed values, or nil. Wrap panics with it. It
// reads the variable NUMAFLOW_UD_CONTAINER_TYPE to learn which of the three sinks this is.
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
