package mapper

import (
	"log/slog"
	"time"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
)

// An Option changes how Wrap, [WrapBatch] and [WrapStream] throttle. A nil Option changes nothing.
//
// Functions given to options receive the datum of a unary map. In batch and stream map it stands for the message as well, with everything
// but metadata, which numaflow-go does not hand to these handlers. In a batch it also has a method Id() string. The functions are called
// from many goroutines at once. When one panics, the stream fails as if the handler had.
type Option func(*settings)

// A StreamOption changes how [WrapStream] throttles. Every Option is one.
type StreamOption interface {
	applyStream(s *settings)
}

func (o Option) applyStream(s *settings) {
	if o != nil {
		o(s)
	}
}

type streamOption func(*settings)

func (o streamOption) applyStream(s *settings) { o(s) }

// WithCost sets how many tokens a message draws. A message with a cost of zero or less draws none, but waits as one of one token does. cost
// is called once for each message. Defaults to 1 for every message, also if cost is nil.
func WithCost(cost func(keys []string, d mapsdk.Datum) int) Option {
	return func(s *settings) { s.Cost = cost }
}

// WithTag sets which tag a message draws its tokens for: its tenant, model or destination. It matters for a limiter that knows tags
// (throttle.Tagger); any other has one limit for all. tag is called at most once for each message. Any result is a tag. With quotas, a tag
// that is empty, longer than 64 bytes or not text has the quota of tags without one of their own. When tag panics, nothing is drawn.
// Defaults to no tag, also if tag is nil.
func WithTag(tag func(keys []string, d mapsdk.Datum) string) Option {
	return func(s *settings) { s.Tag = tag }
}

// WithMaxWait bounds how long a message waits for its tokens, and in [WrapBatch] also how long the messages of a batch wait together.
// [OnDenied] sets what happens then and is required. WithMaxWait may not be used with [PerOutput]. A message whose tokens are known to come
// later does not wait at all. Time in which the pool is frozen, because its store is new or has lost state, does not count.
//
// Take at most 8 s, and less in a batch map. At shutdown the platform gives the messages in flight 20 s to be answered; see the package
// documentation. Defaults to 0, no bound: a wait ends with the tokens or with the context.
func WithMaxWait(d time.Duration) Option {
	return func(s *settings) { s.MaxWait = d }
}

// OnDenied sets what happens to a message whose tokens did not come within [WithMaxWait], which every Action but Wait needs. Defaults to
// Wait.
func OnDenied(a Action) Option {
	return func(s *settings) { s.OnDenied = a.does }
}

// ExemptDropped gives the tokens of a message back when the handler's result is one or more drops (mapsdk.MessageToDrop) and nothing else.
// An empty result is not a drop. It is for handlers that decide by themselves whether to make the limited call. With [PerOutput] an output
// that is a drop draws nothing. By default a dropped message costs as much as any other. It has no effect with a strict limit and one too
// low to be divided among the pods, whose tokens cannot be given back; that is logged once.
func ExemptDropped() Option {
	return func(s *settings) { s.ExemptDropped = true }
}

// WithLogger sets the logger for the reasons why messages are not handled. Neither keys nor values are logged. Defaults to slog.Default(),
// also for nil.
func WithLogger(l *slog.Logger) Option {
	return func(s *settings) { s.Log = l }
}

// PerOutput lets a message into the handler freely, and makes each of its outputs draw tokens instead: [WithCost] of the message sets how
// many, [WithTag] the tag. The handler is held back while an output waits for them. An output waits without a time limit, since an answer
// that has begun can no longer be nacked or dropped. So [WithMaxWait] and [OnDenied] may not be used with it.
func PerOutput() StreamOption {
	return streamOption(func(s *settings) { s.perOutput = true })
}

// Direct gives the handler numaflow-go's own channel, instead of one from which the outputs are passed on. That saves a goroutine and some
// microseconds for each message. The handler's use of its channel then has the same effect as without the wrapper. In particular,
// numaflow-go takes a close for the end of the answer even while the handler panics or gives up. So a handler that closes its channel in a
// deferred function may lose the message. Direct may not be used with [PerOutput] or [ExemptDropped], which have to see the outputs.
func Direct() StreamOption {
	return streamOption(func(s *settings) { s.direct = true })
}

// CostBytes returns a function for [WithCost]: one token for every per bytes of the
// payload or part of them, at least one. per below 1 counts as 1.
func CostBytes(per int) func(keys []string, d mapsdk.Datum) int {
	cost := admission.PayloadCost(per)
	return func(_ []string, d mapsdk.Datum) int { return cost(d.Value()) }
}

// CostFromHeader returns a function for [WithCost]: the number of tokens in a header of the message, such as 5, 4.2 or 5e2, rounded up. A
// message without the header costs one token. One with anything else in it is denied as too expensive, and logged to slog.Default(), at
// most once a minute.
func CostFromHeader(name string) func(keys []string, d mapsdk.Datum) int {
	cost := admission.HeaderCost(name)
	return func(_ []string, d mapsdk.Datum) int { return cost(d.Headers()) }
}

// TagFromHeader returns a function for [WithTag]: the value of a header. A message
// without the header has no tag.
func TagFromHeader(name string) func(keys []string, d mapsdk.Datum) string {
	tag := admission.HeaderTag(name)
	return func(_ []string, d mapsdk.Datum) string { return tag(d.Headers()) }
}

// TagFromKey returns a function for [WithTag]: the message's key at an index, counted
// from zero. A message with fewer keys has no tag.
func TagFromKey(index int) func(keys []string, d mapsdk.Datum) string {
	tag := admission.KeyTag(index)
	return func(keys []string, _ mapsdk.Datum) string { return tag(keys) }
}
