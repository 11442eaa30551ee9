package sourcer

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	sourcesdk "github.com/numaproj/numaflow-go/pkg/sourcer"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
)

// An Option changes how Wrap throttles a source. A nil Option changes nothing.
type Option interface{ applyToSource(s *settings) }

type option func(s *settings)

func (f option) applyToSource(s *settings) { f(s) }

type settings struct {
	cost       func(m sourcesdk.Message) int // nil: 1
	clamp      bool
	target     time.Duration
	vertexRate *float64     // messages per second; nil: the limit's
	log        *slog.Logger // nil: slog.Default()
}

// WithReadCost sets how many tokens a message costs. The cost is known only once the message is read. So the size of a Read follows from
// the recent average cost, and the Read is settled with the real one. More than was drawn is debt that the next Read waits for. A message
// that costs more than can ever be granted counts as the largest cost that can, and is logged. The first Read asks for one message. A cost
// of zero or less is none. It calls cost once for each message, one at a time for each Read. When cost panics, the stream fails as if the
// handler had. Defaults to 1 for every message, also if cost is nil.
func WithReadCost(cost func(m sourcesdk.Message) int) Option {
	return option(func(s *settings) { s.cost = cost })
}

// ReadCostBytes is a cost for [WithReadCost] by the size of the payload: one token for every per bytes or part of them, at least one. A per
// below 1 counts as 1.
func ReadCostBytes(per int) func(m sourcesdk.Message) int {
	cost := admission.PayloadCost(per)
	return func(m sourcesdk.Message) int { return cost(m.Value()) }
}

// ReadCostFromHeader is a cost for [WithReadCost], read from a header: a number of tokens such as 5, 4.2 or 5e2, rounded up. Without the
// header the message costs one token. With anything else in it the message also costs one token, since it is read already. That is logged
// to slog.Default(), at most once a minute.
func ReadCostFromHeader(name string) func(m sourcesdk.Message) int {
	cost := admission.ReadHeaderCost(name)
	return func(m sourcesdk.Message) int { return cost(m.Headers()) }
}

// WithPendingClamp sets whether Pending is clamped while the source is throttled;
// see the package documentation. Defaults to true.
func WithPendingClamp(on bool) Option {
	return option(func(s *settings) { s.clamp = on })
}

// targetProcessing is the platform's default of targetProcessingSeconds.
const targetProcessing = 20 * time.Second

// WithTargetProcessing gives the clamp of Pending the vertex's scale.targetProcessingSeconds. A value other than the vertex's makes the
// autoscaler add or remove pods by the quotient of the two. Defaults to 20 s, as the platform does.
func WithTargetProcessing(d time.Duration) Option {
	return option(func(s *settings) { s.target = d })
}

// WithVertexRate gives the clamp of Pending the total rate of this vertex's pods, in messages per second, when the limit is used up. It is
// for pools that other vertices draw from too, and for a Limiter that does not report its limit. Without it Pending of the latter is not
// clamped. Defaults to the whole limit: Max per Per, divided by the cost of a message.
func WithVertexRate(perSecond float64) Option {
	return option(func(s *settings) { s.vertexRate = &perSecond })
}

// A LoggerOption is an option of both wrappers.
type LoggerOption interface {
	Option
	TransformerOption
}

type loggerOption struct{ log *slog.Logger }

func (o loggerOption) applyToSource(s *settings) { s.log = o.log }

func (o loggerOption) applyToTransformer(s *transformerSettings) { s.Log = o.log }

// WithLogger sets the logger for the reasons why nothing is read, or why a message is not transformed. Neither keys nor values are logged.
// Defaults to slog.Default(), also for nil.
func WithLogger(l *slog.Logger) LoggerOption { return loggerOption{l} }

func newSettings(opts []Option) settings {
	s := settings{clamp: true, target: targetProcessing}
	for _, opt := range opts {
		if opt != nil {
			opt.applyToSource(&s)
		}
	}
	return s
}

// Check returns an error that names every fault in the options, each with its value and the allowed values, or nil. Wrap panics with it.
func Check(opts ...Option) error { return newSettings(opts).check() }

func (s settings) check() error {
	var errs []error
	if s.target <= 0 {
		errs = append(errs, fmt.Errorf("sourcer: TargetProcessing is %s, allowed: above 0", s.target))
	}
	if r := s.vertexRate; r != nil && (!(*r > 0) || math.IsInf(*r, 0)) { // not above 0: NaN too
		errs = append(errs, fmt.Errorf("sourcer: VertexRate is %v, allowed: above 0, finite", *r))
	}
	return errors.Join(errs...)
}

func (s settings) logger() *slog.Logger { return cmp.Or(s.log, slog.Default()) }
