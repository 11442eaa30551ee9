package otelthrottle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Scope is the name of the instrumentation scope.
const Scope = "github.com/numaproj-contrib/numathrottle"

// A Telemetry records what limiters do. It is a [throttle.Observer]. All methods may be
// called from any goroutine.
type Telemetry struct {
	meter    metric.Meter
	tracer   trace.Tracer
	observed []metric.Float64Observable // as the tables observed and tagged, one after the other, and buildInfo
	wait     metric.Float64Histogram
	sync     metric.Float64Histogram
	targets  sync.Map // *targetBook by the name of a limiter that is watched
}

var _ throttle.Observer = (*Telemetry)(nil)

// An Option sets one thing of a Telemetry.
type Option func(*options)

type options struct {
	meters  metric.MeterProvider
	tracers trace.TracerProvider
}

// WithMeterProvider sets where metrics go. Defaults to the global one.
func WithMeterProvider(p metric.MeterProvider) Option { return func(o *options) { o.meters = p } }

// WithTracerProvider sets where spans go. Defaults to the global one.
func WithTracerProvider(p trace.TracerProvider) Option { return func(o *options) { o.tracers = p } }

// New returns a Telemetry. The error is that of the meter provider.
func New(opts ...Option) (*Telemetry, error) {
	o := options{meters: otel.GetMeterProvider(), tracers: otel.GetTracerProvider()}
	for _, opt := range opts {
		opt(&o)
	}
	t := &Telemetry{meter: o.meters.Meter(Scope), tracer: o.tracers.Tracer(Scope)}
	var errs []error
	for _, in := range slices.Concat(observed, tagged, []Instrument{buildInfo}) {
		var at metric.Float64Observable
		var err error
		if in.Kind == counter {
			at, err = t.meter.Float64ObservableCounter(in.Name, metric.WithUnit(in.Unit), metric.WithDescription(in.Doc))
		} else {
			at, err = t.meter.Float64ObservableGauge(in.Name, metric.WithUnit(in.Unit), metric.WithDescription(in.Doc))
		}
		t.observed = append(t.observed, at)
		errs = append(errs, err)
	}
	histogram := func(in Instrument) metric.Float64Histogram {
		h, err := t.meter.Float64Histogram(in.Name, metric.WithUnit(in.Unit), metric.WithDescription(in.Doc),
			metric.WithExplicitBucketBoundaries(in.buckets...))
		errs = append(errs, err)
		return h
	}
	t.wait, t.sync = histogram(waitDuration), histogram(syncDuration)
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("otelthrottle: %w", err)
	}
	return t, nil
}

// Watched is what Watch reads: one of Throttle and InFlight, and the Member that shares
// it out, or nil.
type Watched struct {
	Throttle *throttle.Throttle
	InFlight *throttle.InFlight
	Member   *consensus.Member
	// Tags are those that have a quota by name in the configuration: metrics tell the first MaxTags of them apart.
	Tags []string
}

// Watch reports on a limiter whenever metrics are collected, until stop is called.
// A limiter without a limit has nothing to report. The error is that of the meter
// provider.
func (t *Telemetry) Watch(w Watched) (stop func() error, err error) {
	if w.unlimited() {
		return func() error { return nil }, nil
	}
	limit := attribute.String(keyLimit, w.name())
	plain := metric.WithAttributeSet(attribute.NewSet(limit))
	reasons := map[throttle.Reason]metric.MeasurementOption{}
	for _, r := range throttle.Reasons() {
		reasons[r] = metric.WithAttributeSet(attribute.NewSet(limit, attribute.String(keyReason, string(r))))
	}
	var mu sync.Mutex // several readers may collect at once
	highest := make([]float64, len(observed))
	tags, build := w.tagObserver(limit), built()
	registration, err := t.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		mu.Lock()
		defer mu.Unlock()
		s := w.snapshot()
		for i, in := range observed {
			in.read(&s, func(value float64, r throttle.Reason) {
				with := plain
				switch {
				case r != "":
					with = reasons[r]
				case in.Kind == counter:
					// A draw from several limits that does not come off is taken back. A
					// counter that falls would look like a restart.
					highest[i] = max(highest[i], value)
					value = highest[i]
				}
				o.ObserveFloat64(t.observed[i], value, with)
			})
		}
		tags.observe(&s, o, t.observed[len(observed):])
		o.ObserveFloat64(t.observed[len(observed)+len(tagged)], 1, build) // once, however many limits there are
		return nil
	}, instruments(t.observed)...)
	if err != nil {
		return nil, fmt.Errorf("otelthrottle: %w", err)
	}
	book := newTargetBook(w)
	if book != nil {
		t.targets.Store(w.name(), book)
	}
	return func() error {
		t.targets.CompareAndDelete(w.name(), book)
		return registration.Unregister()
	}, nil
}

func instruments(in []metric.Float64Observable) []metric.Observable {
	out := make([]metric.Observable, len(in))
	for i := range in {
		out[i] = in[i]
	}
	return out
}

func (w Watched) unlimited() bool {
	return (w.Throttle == nil || w.Throttle.Unlimited()) && (w.InFlight == nil || w.InFlight.Unlimited())
}

func (w Watched) name() string {
	if w.Throttle != nil {
		return w.Throttle.Status().Name
	}
	return w.InFlight.Status().Name
}

func (w Watched) snapshot() (s snapshot) {
	if w.Throttle != nil {
		st := w.Throttle.Status()
		s.throttle, s.held, s.lease, s.waiting = &st, w.Throttle.WaitStats(), st.Lease, st.Waiting
		s.tagsHeld = w.Throttle.TagWaitStats()
		s.pods, s.measured = hook.PodsWanted(w.Throttle)
	} else {
		st := w.InFlight.Status()
		s.inFlight, s.held, s.lease, s.waiting = &st, w.InFlight.WaitStats(), st.Lease, st.Waiting
		s.pods, s.measured = hook.PodsWanted(w.InFlight)
	}
	if w.Member != nil {
		v := w.Member.View()
		s.view = &v
	}
	return s
}

// OnSync returns what records the syncs of a member, for [consensus.WithOnSync]. limit is the
// limiter's name, store the kind of store, such as "redis".
func (t *Telemetry) OnSync(limit, store string) func(consensus.Synced) {
	of := func(outcome string) metric.MeasurementOption {
		return metric.WithAttributeSet(attribute.NewSet(
			attribute.String(keyLimit, limit), attribute.String(keyStore, store), attribute.String(keyOutcome, outcome)))
	}
	ok, late, contended, failed := of("ok"), of("timeout"), of("contention"), of("error")
	return func(s consensus.Synced) {
		outcome := ok
		switch {
		case errors.Is(s.Err, context.DeadlineExceeded), errors.Is(s.Err, driver.ErrOverdue):
			outcome = late
		case errors.Is(s.Err, driver.ErrContention):
			outcome = contended
		case s.Err != nil:
			outcome = failed
		}
		t.sync.Record(context.Background(), s.Took.Seconds(), outcome)
	}
}

// Waits records a wait, and a span for it that is part of the caller's trace, if ctx has
// one. It implements [throttle.Observer].
func (t *Telemetry) Waits(ctx context.Context, w throttle.Wait) func(throttle.Waited) {
	reason := w.Reason
	if !reason.Listed() {
		reason = throttle.ReasonOther
	}
	var span trace.Span
	if trace.SpanContextFromContext(ctx).IsValid() {
		ctx, span = t.tracer.Start(ctx, "numathrottle.wait", trace.WithAttributes(
			attribute.String("numathrottle.limit", w.Limit), attribute.String("numathrottle.tag", w.Tag),
			attribute.String("numathrottle.reason", string(w.Reason)), attribute.Int("numathrottle.cost", w.Cost)))
		t.tellTarget(span, w)
	}
	return func(end throttle.Waited) {
		outcome := outcomeOf(end)
		// A context that has ended must not keep the wait from being counted.
		t.wait.Record(context.WithoutCancel(ctx), end.For.Seconds(), metric.WithAttributeSet(attribute.NewSet(
			attribute.String(keyLimit, w.Limit), attribute.String(keyReason, string(reason)), attribute.String(keyOutcome, outcome))))
		if span == nil {
			return
		}
		span.SetAttributes(attribute.String("numathrottle.outcome", outcome), attribute.Int("numathrottle.granted", end.N))
		if end.Err != nil {
			if e, ok := errors.AsType[*throttle.Error](end.Err); ok {
				outcome += ": " + string(e.Reason)
			}
			span.SetStatus(codes.Error, outcome)
		}
		span.End()
	}
}

// tellTarget adds to the span of a wait what the target of its tag is worked out from, every few seconds.
func (t *Telemetry) tellTarget(span trace.Span, w throttle.Wait) {
	if !span.IsRecording() {
		return
	}
	watched, _ := t.targets.Load(w.Limit)
	book, _ := watched.(*targetBook)
	if attributes := book.tell(w.Tag, time.Now()); attributes != nil {
		span.AddEvent(targetEvent, trace.WithAttributes(attributes...))
	}
}

// outcomeOf tells in one word how a wait ended.
func outcomeOf(end throttle.Waited) string {
	switch {
	case end.Err == nil && end.N > 0:
		return "granted"
	case end.Err == nil:
		return "moved"
	case errors.Is(end.Err, throttle.ErrThrottled), errors.Is(end.Err, throttle.ErrClosed), errors.Is(end.Err, context.DeadlineExceeded):
		return "refused"
	default:
		return "cancelled"
	}
}
