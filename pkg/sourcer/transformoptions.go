package sourcer

import (
	"time"

	transformsdk "github.com/numaproj/numaflow-go/pkg/sourcetransformer"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
)

// A TransformerOption changes how [WrapTransformer] throttles. A nil TransformerOption
// changes nothing.
type TransformerOption interface {
	applyToTransformer(s *transformerSettings)
}

type transformerOption func(s *transformerSettings)

func (f transformerOption) applyToTransformer(s *transformerSettings) { f(s) }

type transformerSettings struct {
	admission.Settings[transformsdk.Datum, transformsdk.Messages]
}

// WithCost sets how many tokens a message draws before it is transformed. A message with a cost of zero or less draws none, but waits as one
// of one token does. It calls cost once for each message, from many goroutines at once. When cost panics, the stream fails as if the handler had. Defaults to
// 1 for every message, also if cost is nil.
func WithCost(cost func(keys []string, d transformsdk.Datum) int) TransformerOption {
	return transformerOption(func(s *transformerSettings) { s.Cost = cost })
}

// WithTag sets the tag of a message: the tenant, model or destination that its tokens are drawn for, if the limiter knows tags
// (throttle.Tagger). The platform waits for all messages of a batch, in their order, so one throttled tag holds up the batch; with
// [WithMaxWait] and an action it does not. Any result of tag is a tag. With quotas, a tag that is empty, longer than 64 bytes or not text has
// the quota of tags without one of their own. It calls tag as [WithCost] calls cost, for messages that cost something. Defaults to no tags,
// also if tag is nil.
func WithTag(tag func(keys []string, d transformsdk.Datum) string) TransformerOption {
	return transformerOption(func(s *transformerSettings) { s.Tag = tag })
}

// WithMaxWait bounds how long a message waits for its tokens. It is denied at once when the wait is known to be longer. [OnDenied] sets what
// happens then. Defaults to 0: no limit of its own.
func WithMaxWait(d time.Duration) TransformerOption {
	return transformerOption(func(s *transformerSettings) { s.MaxWait = d })
}

// OnDenied sets what happens to a message whose tokens do not come within [WithMaxWait]. Defaults to Wait().
func OnDenied(a Action) TransformerOption {
	return transformerOption(func(s *transformerSettings) { s.OnDenied = a.does })
}

// ExemptDropped gives the tokens of a message back when the transformer's result is one or more drops (transformsdk.MessageToDrop) and
// nothing else. It is for transformers that filter, so that dropped messages do not use up the limit. By default a dropped message costs as
// much as any other. It has no effect with a strict limit and one too low to be divided among the pods, whose tokens cannot be given back;
// that is logged once.
func ExemptDropped() TransformerOption {
	return transformerOption(func(s *transformerSettings) { s.ExemptDropped = true })
}

// CostBytes is a cost for [WithCost] by the size of the payload: one token for every per bytes or part of them, at least one. A per below 1
// counts as 1.
func CostBytes(per int) func(keys []string, d transformsdk.Datum) int {
	cost := admission.PayloadCost(per)
	return func(_ []string, d transformsdk.Datum) int { return cost(d.Value()) }
}

// CostFromHeader is a cost for [WithCost], read from a header: a number of tokens such as 5, 4.2 or 5e2, rounded up. Without the header the
// message costs one token. With anything else in it the message is denied as too expensive, and logged to slog.Default(), at most once a
// minute.
func CostFromHeader(name string) func(keys []string, d transformsdk.Datum) int {
	cost := admission.HeaderCost(name)
	return func(_ []string, d transformsdk.Datum) int { return cost(d.Headers()) }
}

// TagFromHeader is a tag for [WithTag], read from a header; no tag without it.
func TagFromHeader(name string) func(keys []string, d transformsdk.Datum) string {
	tag := admission.HeaderTag(name)
	return func(_ []string, d transformsdk.Datum) string { return tag(d.Headers()) }
}

// TagFromKey is a tag for [WithTag]: the key at an index, counted from zero; no tag if there are fewer keys.
func TagFromKey(index int) func(keys []string, d transformsdk.Datum) string {
	tag := admission.KeyTag(index)
	return func(keys []string, _ transformsdk.Datum) string { return tag(keys) }
}

func newTransformerSettings(opts []TransformerOption) transformerSettings {
	var s transformerSettings
	for _, opt := range opts {
		if opt != nil {
			opt.applyToTransformer(&s)
		}
	}
	return s
}

// CheckTransformer returns an error that names every fault in the options, each with its value and the allowed values, or nil.
// [WrapTransformer] panics with it.
func CheckTransformer(opts ...TransformerOption) error { return newTransformerSettings(opts).check() }

func (s transformerSettings) check() error {
	return s.Check("sourcer", "WithMaxWait", "Nack, Drop, Forward or DenyFunc")
}
