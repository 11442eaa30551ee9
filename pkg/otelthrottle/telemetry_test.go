package otelthrottle_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/world"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/otelthrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// A collector is a Telemetry and what it has told.
type collector struct {
	*otelthrottle.Telemetry

	t      testing.TB
	reader *sdkmetric.ManualReader
	spans  *tracetest.SpanRecorder
	traces *sdktrace.TracerProvider
}

func newCollector(t testing.TB) *collector {
	t.Helper()
	c := &collector{t: t, reader: sdkmetric.NewManualReader(), spans: tracetest.NewSpanRecorder()}
	c.traces = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(c.spans))
	var err error
	c.Telemetry, err = otelthrottle.New(otelthrottle.WithTracerProvider(c.traces),
		otelthrottle.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(c.reader))))
	require.NoError(t, err)
	return c
}

// collect returns every value by the metric's name and its attributes; a histogram's
// is its count, and its sum under NAME.sum.
func (c *collector) collect() map[string]float64 {
	c.t.Helper()
	var got metricdata.ResourceMetrics
	require.NoError(c.t, c.reader.Collect(context.Background(), &got))
	values := map[string]float64{}
	key := func(name string, set attribute.Set) string {
		for _, kv := range set.ToSlice() {
			name += fmt.Sprintf(" %s=%s", kv.Key, kv.Value.String())
		}
		return name
	}
	for _, scope := range got.ScopeMetrics {
		require.Equal(c.t, otelthrottle.Scope, scope.Scope.Name)
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[float64]:
				require.True(c.t, data.IsMonotonic, m.Name)
				for _, p := range data.DataPoints {
					values[key(m.Name, p.Attributes)] = p.Value
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					values[key(m.Name, p.Attributes)] = p.Value
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					values[key(m.Name, p.Attributes)] = float64(p.Count)
					values[key(m.Name+".sum", p.Attributes)] = p.Sum
				}
			default:
				c.t.Fatalf("%s is a %T", m.Name, data)
			}
		}
	}
	return values
}

// requireValues fails unless metrics of the limit "llm" have these values; their names are without
// the prefix.
func (c *collector) requireValues(want map[string]float64) {
	c.t.Helper()
	got := c.collect()
	for name, value := range want {
		name = "numathrottle." + name + " limit=llm"
		require.Contains(c.t, got, name)
		require.InDelta(c.t, value, got[name], 1e-9, name)
	}
}

// nonZero leaves out what did not happen, and the build.
func nonZero(values map[string]float64) map[string]float64 {
	maps.DeleteFunc(values, func(name string, v float64) bool {
		return v == 0 || strings.HasPrefix(name, "numathrottle.build.info ")
	})
	return values
}

func (c *collector) watch(w otelthrottle.Watched) (stop func()) {
	c.t.Helper()
	end, err := c.Watch(w)
	require.NoError(c.t, err)
	return func() { require.NoError(c.t, end()) }
}

// a Sharer that gives what it is told to.
type given struct{ h sharing.Holder }

func (g *given) Attach(h sharing.Holder) { g.h = h; h.Lease(limit.Lease{}) }
func (g *given) Poke()                   {}

func newThrottle(t testing.TB, l throttle.Limit, opts ...throttle.Option) *throttle.Throttle {
	t.Helper()
	th, err := throttle.New(l, append(opts, throttle.WithName("llm"), throttle.WithTag("gold"))...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = th.Close() })
	return th
}

func timeout(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestMetricsOfAThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, share := newCollector(t), &given{}
		th := newThrottle(t, throttle.Limit{Max: 10, Burst: 10}, throttle.WithSharer(share), throttle.WithObserver(c))
		stop := c.watch(otelthrottle.Watched{Throttle: th})

		_, err := th.Acquire(timeout(t, 3*time.Second), 2) // no share: three seconds
		require.Error(t, err)
		share.h.Lease(limit.Lease{Share: limit.WholeShare / 2, Degraded: true, Reason: "a sharer's own"})
		p, err := th.Acquire(t.Context(), 4) // 800 ms at five per second
		require.NoError(t, err)
		p.Settle(3)
		_, ok := th.TryAcquire(5)
		require.False(t, ok)
		_, ok = th.TryAcquire(11)
		require.False(t, ok)

		got := c.collect()
		near := map[string]float64{
			"numathrottle.wait.duration.sum limit=llm outcome=granted reason=limit": 0.8,
			"numathrottle.throttled.time limit=llm reason=limit":                    0.8,
			"numathrottle.tokens.available limit=llm":                               1,
			"numathrottle.rate limit=llm":                                           5,
		}
		for name, want := range near {
			require.InDelta(t, want, got[name], 1e-6, name)
			delete(got, name)
		}
		require.Equal(t, map[string]float64{
			"numathrottle.tokens.granted limit=llm":                                    4,
			"numathrottle.tokens.returned limit=llm":                                   1,
			"numathrottle.tokens.refused limit=llm":                                    2 + 5, // the draw of 11 is too large
			"numathrottle.ceiling limit=llm":                                           10,
			"numathrottle.share limit=llm":                                             0.5,
			"numathrottle.degraded limit=llm":                                          1,
			"numathrottle.throttled.waits limit=llm reason=no_share":                   1,
			"numathrottle.throttled.waits limit=llm reason=limit":                      1,
			"numathrottle.throttled.refusals limit=llm reason=no_share":                1,
			"numathrottle.throttled.refusals limit=llm reason=limit":                   1,
			"numathrottle.throttled.refusals limit=llm reason=too_large":               1,
			"numathrottle.throttled.time limit=llm reason=no_share":                    3,
			"numathrottle.wait.duration limit=llm outcome=refused reason=no_share":     1,
			"numathrottle.wait.duration limit=llm outcome=granted reason=limit":        1,
			"numathrottle.wait.duration.sum limit=llm outcome=refused reason=no_share": 3,
		}, nonZero(got))

		c.requirePauses(t, th)

		stop()
		for name := range c.collect() {
			require.Contains(t, name, "duration", "nothing is read any more")
		}
	})
}

func TestMetricsOfSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCollector(t)
		share := &given{}
		f, err := throttle.NewInFlight(10, throttle.WithName("llm"), throttle.WithObserver(c), throttle.WithSharer(share))
		require.NoError(t, err)
		share.h.Lease(limit.Lease{Share: limit.WholeShare / 2})
		c.watch(otelthrottle.Watched{InFlight: f})
		held, ok := f.TryAcquire(3)
		require.True(t, ok)
		_, ok = f.TryAcquire(3)
		require.False(t, ok)
		require.Equal(t, map[string]float64{
			"numathrottle.tokens.granted limit=llm":                      3,
			"numathrottle.tokens.refused limit=llm":                      3,
			"numathrottle.slots.allowed limit=llm":                       5,
			"numathrottle.slots.used limit=llm":                          3,
			"numathrottle.share limit=llm":                               0.5,
			"numathrottle.throttled.refusals limit=llm reason=in_flight": 1,
		}, nonZero(c.collect()))

		held.Cancel()
		c.requireValues(map[string]float64{"slots.used": 0})
		c.requirePauses(t, f)
		c.requireValues(map[string]float64{"slots.used": 2})
	})
}

// requirePauses pauses a limiter for a minute, while two callers wait, and then again.
func (c *collector) requirePauses(t *testing.T, l interface {
	throttle.Limiter
	Pause(ctx context.Context, until time.Time, reason string, opts ...throttle.PauseOption) (throttle.PauseReceipts, error)
},
) {
	t.Helper()
	pause := func() {
		_, err := l.Pause(t.Context(), time.Now().Add(time.Minute), "")
		require.NoError(t, err)
	}
	pause()
	for range 2 {
		go func() { _, _ = l.Acquire(t.Context(), 1) }()
	}
	synctest.Wait()
	c.requireValues(map[string]float64{"waiting": 2, "paused": 1, "pauses": 1})
	time.Sleep(2 * time.Minute)
	c.requireValues(map[string]float64{"waiting": 0, "paused": 0, "pauses": 1})
	pause()
	c.requireValues(map[string]float64{"paused": 1, "pauses": 2})
}

// What the called service says of an adaptive limit, the pool's cuts, and the part that is left.
func TestMetricsOfAnAdaptiveLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, share := newCollector(t), &given{}
		th := newThrottle(t, throttle.Limit{Max: 100, Adaptive: true}, throttle.WithSharer(share))
		c.watch(otelthrottle.Watched{Throttle: th})
		share.h.Lease(limit.Lease{Share: limit.WholeShare, Ceiling: 70, Adapted: true, Cuts: 7})
		time.Sleep(time.Second)
		c.requireValues(map[string]float64{
			"ceiling": 70, "ceiling.cuts": 7, "adaptive.part": 1, "service.accepted": 0, "service.refused": 0, "service.overloaded": 0,
		})
		th.Report(30, time.Time{}, throttle.OutcomeAccepted)
		th.Report(20, time.Time{}, throttle.OutcomeRefused)
		th.Report(5, time.Time{}, throttle.OutcomeOverloaded)
		part := th.Status().Backoff.Part
		require.Positive(t, part)
		require.Less(t, part, 1.0)
		c.requireValues(map[string]float64{
			"ceiling": 70, "ceiling.cuts": 7, "adaptive.part": part, "service.accepted": 30, "service.refused": 20, "service.overloaded": 5,
		})
	})
}

func TestMetricsOfAPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, store := newCollector(t), world.NewLink(memstore.New())
		member, err := consensus.Join(t.Context(), store, "p", consensus.WithID("a"), consensus.WithOnSync(c.OnSync("llm", "memory")))
		require.NoError(t, err)
		th := newThrottle(t, throttle.Limit{Max: 10}, throttle.WithSharer(member), throttle.OnClose(member.Leave))
		c.watch(otelthrottle.Watched{Throttle: th, Member: member})
		time.Sleep(5*time.Second + 500*time.Millisecond)
		got := c.collect()
		for name, want := range map[string]float64{
			"numathrottle.share":         1,
			"numathrottle.wanted":        1,
			"numathrottle.demand":        0,
			"numathrottle.pool.pods":     1,
			"numathrottle.pool.size":     1,
			"numathrottle.pool.agreed":   1,
			"numathrottle.frozen":        0,
			"numathrottle.sync.failures": 0,
			"numathrottle.sync.stretch":  1,
		} {
			require.InDelta(t, want, got[name+" limit=llm"], 0, name)
			require.Contains(t, got, name+" limit=llm")
		}
		require.InDelta(t, 9.5, got["numathrottle.lease.left limit=llm"], 0.51)
		syncs := got["numathrottle.sync.duration limit=llm outcome=ok store=memory"]
		require.Greater(t, syncs, 4.0)

		gone, slow := errors.New("gone"), fmt.Errorf("late: %w", context.DeadlineExceeded)
		store.CutWith(gone)
		time.Sleep(2 * time.Second)
		store.CutWith(slow)
		time.Sleep(2 * time.Second)
		got = c.collect()
		require.InDelta(t, syncs, got["numathrottle.sync.duration limit=llm outcome=ok store=memory"], 1)
		failed := got["numathrottle.sync.duration limit=llm outcome=error store=memory"]
		late := got["numathrottle.sync.duration limit=llm outcome=timeout store=memory"]
		require.Positive(t, failed)
		require.Positive(t, late)
		require.InDelta(t, failed+late, got["numathrottle.sync.failures limit=llm"], 0)
		store.CutWith(nil)
	})
}

// One of three processors is cut off: it knows neither how many there are nor that they are paused.
func TestMetricsOfAPoolThatDisagrees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, store := newCollector(t), memstore.New()
		join := func(id string) (*throttle.Throttle, *consensus.Member, *world.Link) {
			link := world.NewLink(store) // has no channel for news
			m, err := consensus.Join(t.Context(), link, "p", consensus.WithID(id), consensus.WithLogger(slog.New(slog.DiscardHandler)))
			require.NoError(t, err)
			quotas := throttle.WithQuotas(throttle.Quotas{Tags: map[string]throttle.Quota{"acme": {}}})
			return newThrottle(t, throttle.Limit{Max: 10}, throttle.WithSharer(m), throttle.OnClose(m.Leave), quotas), m, link
		}
		th, member, _ := join("a")
		c.watch(otelthrottle.Watched{Throttle: th, Member: member})
		_, _, link := join("b")
		time.Sleep(5 * time.Second)
		c.requireValues(map[string]float64{"pool.pods": 2, "pool.size": 2, "pool.agreed": 1, "pause.receipts.missing": 0, "paused": 0, "paused.tags": 0})

		gone := errors.New("gone")
		link.CutWith(gone)
		join("c")
		_, err := th.Pause(t.Context(), time.Time{}, "")
		require.NoError(t, err)
		time.Sleep(2 * time.Second) // b, which may have synced a second before the cut, is not silent yet
		c.requireValues(map[string]float64{"pool.silent": 0})
		time.Sleep(time.Second)
		c.requireValues(map[string]float64{
			"pool.pods": 3, "pool.size": 3, "pool.agreed": 0, "paused": 1, "paused.tags": 0, "pauses": 1, "pause.receipts.missing": 1,
		})
		time.Sleep(5 * time.Second)
		c.requireValues(map[string]float64{"pool.pods": 3, "pool.silent": 1})
		link.CutWith(nil)
		time.Sleep(5 * time.Second)
		c.requireValues(map[string]float64{"pool.silent": 0, "pool.agreed": 1, "paused": 1, "pauses": 1, "pause.receipts.missing": 0})
		require.NoError(t, protocol.SavePause(t.Context(), store, "p", throttle.Paused{Tag: "acme"}))
		time.Sleep(2 * time.Second)
		c.requireValues(map[string]float64{"paused.tags": 1, "paused": 1, "overridden": 0, "quotas.changed": 0, "pool.settings": 1, "pool.unreadable": 0})
		require.NoError(t, protocol.SaveOverride(t.Context(), store, "p", protocol.Override{Max: 5, Per: time.Second}))
		require.NoError(t, protocol.SaveQuota(t.Context(), store, "p", "acme", &throttle.Quota{Total: 3}, true))
		time.Sleep(2 * time.Second)
		c.requireValues(map[string]float64{"overridden": 1, "quotas.changed": 1})
	})
}

// Every metric is in the table, with the labels that it says.
func TestInstrumentsAreComplete(t *testing.T) {
	names := map[string]otelthrottle.Instrument{}
	for _, in := range otelthrottle.Instruments() {
		require.NotContains(t, names, in.Name)
		require.NotEmpty(t, in.Doc)
		require.NotEmpty(t, in.Unit)
		require.Subset(t, []string{"limit", "reason", "outcome", "store", "tag", "version", "revision", "goversion"}, in.Labels)
		names[in.Name] = in
	}
	c := newCollector(t)
	th := newThrottle(t, throttle.Limit{Max: 1})
	stop := c.watch(otelthrottle.Watched{Throttle: th})
	done := c.Waits(t.Context(), throttle.Wait{Limit: "llm", Reason: "a sharer's own"})
	done(throttle.Waited{N: 1})
	c.OnSync("llm", "redis")(consensus.Synced{})
	_, ok := th.TryAcquire(2)
	require.False(t, ok)
	var got metricdata.ResourceMetrics
	require.NoError(t, c.reader.Collect(t.Context(), &got))
	for _, m := range got.ScopeMetrics[0].Metrics {
		in, ok := names[m.Name]
		require.True(t, ok, m.Name)
		require.Equal(t, in.Unit, m.Unit)
		require.Equal(t, in.Doc, m.Description)
	}
	stop()
}

// The build is told once, however many limits a process has, and not after the last one has ended.
func TestBuildInfo(t *testing.T) {
	c := newCollector(t)
	infos := func() (list []string) {
		for name, value := range c.collect() {
			if strings.HasPrefix(name, "numathrottle.build.info") {
				require.InDelta(t, 1, value, 0)
				list = append(list, strings.TrimPrefix(name, "numathrottle.build.info "))
			}
		}
		return list
	}
	require.Empty(t, infos())
	first := c.watch(otelthrottle.Watched{Throttle: newThrottle(t, throttle.Limit{Max: 1})})
	slots, err := throttle.NewInFlight(3, throttle.WithName("calls"))
	require.NoError(t, err)
	second := c.watch(otelthrottle.Watched{InFlight: slots})
	require.Equal(t, []string{"goversion=" + runtime.Version() + " revision=unknown version=(devel)"}, infos(), "of a test")
	first()
	require.Len(t, infos(), 1)
	second()
	require.Empty(t, infos())
}

// However many reasons and tags there are, they make no series of their own.
func TestLabelsAreBounded(t *testing.T) {
	c := newCollector(t)
	for i := range 1000 {
		w := throttle.Wait{Limit: "llm", Tag: fmt.Sprint(i), Reason: throttle.Reason(fmt.Sprint("reason ", i))}
		c.Waits(t.Context(), w)(throttle.Waited{Err: fmt.Errorf("error %d", i)})
		c.OnSync("llm", "redis")(consensus.Synced{Err: fmt.Errorf("error %d", i)})
	}
	require.Len(t, c.collect(), 4, "two histograms with their sums")
	for _, r := range throttle.Reasons() {
		c.Waits(t.Context(), throttle.Wait{Limit: "llm", Reason: r})(throttle.Waited{N: 1})
	}
	require.Len(t, c.collect(), 4+2*len(throttle.Reasons()))
}

func TestOutcomesOfWaits(t *testing.T) {
	e := &throttle.Error{Reason: throttle.ReasonClosed}
	for want, end := range map[string]throttle.Waited{
		"granted":   {N: 3},
		"moved":     {},
		"refused":   {Err: e},
		"cancelled": {Err: context.Canceled},
	} {
		c := newCollector(t)
		c.Waits(t.Context(), throttle.Wait{Limit: "llm", Reason: throttle.ReasonLimit})(end)
		require.Contains(t, c.collect(), "numathrottle.wait.duration limit=llm outcome="+want+" reason=limit")
	}
	c := newCollector(t)
	c.Waits(t.Context(), throttle.Wait{Limit: "llm", Reason: throttle.ReasonLimit})(throttle.Waited{Err: context.DeadlineExceeded})
	require.Contains(t, c.collect(), "numathrottle.wait.duration limit=llm outcome=refused reason=limit")
}

// Only calls that wait get a span, and only as part of a trace that there is.
func TestSpansJoinTheCallersTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, share := newCollector(t), &given{}
		th := newThrottle(t, throttle.Limit{Max: 10, Burst: 10}, throttle.WithSharer(share), throttle.WithObserver(c))
		share.h.Lease(limit.Lease{Share: limit.WholeShare})
		time.Sleep(2 * time.Second)
		ctx, caller := c.traces.Tracer("caller").Start(t.Context(), "call")
		_, err := th.Acquire(ctx, 10)
		require.NoError(t, err)
		require.Empty(t, c.spans.Ended(), "it did not wait")
		_, err = th.Acquire(t.Context(), 1)
		require.NoError(t, err)
		require.Empty(t, c.spans.Ended(), "there is no trace")

		began := time.Now()
		_, err = th.Acquire(ctx, 5)
		require.NoError(t, err)
		share.h.Lease(limit.Lease{})
		late, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err = th.Acquire(late, 2)
		require.Error(t, err)

		spans := c.spans.Ended()
		require.Len(t, spans, 2)
		for _, span := range spans {
			require.Equal(t, "numathrottle.wait", span.Name())
			require.Equal(t, caller.SpanContext().TraceID(), span.SpanContext().TraceID())
			require.Equal(t, caller.SpanContext().SpanID(), span.Parent().SpanID())
		}
		require.InDelta(t, 0.5, spans[0].EndTime().Sub(began).Seconds(), 1e-6)
		attributes := func(span sdktrace.ReadOnlySpan) (out []string) {
			for _, kv := range span.Attributes() {
				out = append(out, fmt.Sprintf("%s=%s", kv.Key, kv.Value.String()))
			}
			slices.Sort(out)
			return out
		}
		require.Equal(t, []string{
			"numathrottle.cost=5", "numathrottle.granted=5", "numathrottle.limit=llm", "numathrottle.outcome=granted",
			"numathrottle.reason=limit", "numathrottle.tag=gold",
		}, attributes(spans[0]))
		require.Equal(t, codes.Unset, spans[0].Status().Code)
		require.Equal(t, []string{
			"numathrottle.cost=2", "numathrottle.granted=0", "numathrottle.limit=llm", "numathrottle.outcome=refused",
			"numathrottle.reason=no_share", "numathrottle.tag=gold",
		}, attributes(spans[1]))
		require.Equal(t, sdktrace.Status{Code: codes.Error, Description: "refused: no_share"}, spans[1].Status())
	})
}

// A draw whose tokens are at hand is recorded by nobody and allocates nothing.
func TestDrawsAtHandCostNothing(t *testing.T) {
	c := newCollector(t)
	th := newThrottle(t, throttle.Limit{Max: 1_000_000_000, Burst: 1_000_000_000}, throttle.WithObserver(c))
	c.watch(otelthrottle.Watched{Throttle: th})
	ctx, span := c.traces.Tracer("caller").Start(t.Context(), "call")
	defer span.End()
	require.Eventually(t, func() bool { _, ok := th.TryAcquire(1); return ok }, time.Minute, time.Millisecond)
	draws := 0
	perDraw := testing.AllocsPerRun(2000, func() {
		if _, ok := th.TryAcquire(1); ok {
			draws++
		}
		if _, err := th.Acquire(ctx, 1); err == nil {
			draws++
		}
	})
	require.Greater(t, draws, 1000)
	require.Zero(t, perDraw)
	require.NotContains(t, fmt.Sprint(c.collect()), "outcome=")
	require.Empty(t, c.spans.Ended())
}

// A reason is there from the first time on that it has held somebody back.
func TestReasonsThatNeverOccurredAreLeftOut(t *testing.T) {
	c := newCollector(t)
	th := newThrottle(t, throttle.Limit{Max: 1, Per: time.Hour})
	c.watch(otelthrottle.Watched{Throttle: th})
	require.NotContains(t, fmt.Sprint(c.collect()), "reason=")
	for {
		if _, ok := th.TryAcquire(1); !ok {
			break
		}
	}
	got := c.collect()
	require.InDelta(t, 1, got["numathrottle.throttled.refusals limit=llm reason=limit"], 0)
	require.Equal(t, 3, strings.Count(fmt.Sprint(got), "reason="), "%v", got)
}

// A counter never falls, although what an All takes back is not counted as granted.
func TestCountersDoNotFall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCollector(t)
		th := newThrottle(t, throttle.Limit{Max: 100, Burst: 10})
		c.watch(otelthrottle.Watched{Throttle: th})
		seen := func() float64 { return c.collect()["numathrottle.tokens.granted limit=llm"] }
		time.Sleep(time.Second)
		during := 0.0
		// It looks while the All has drawn from the one, and then refuses.
		refuses := throttletest.New()
		_, ok := throttle.All(th, spy{refuses, func() { during = seen() }}).TryAcquire(5)
		require.False(t, ok)
		require.InDelta(t, 5, during, 0)
		require.Zero(t, th.Status().Granted)
		require.InDelta(t, 5, seen(), 0)
		_, ok = th.TryAcquire(7)
		require.True(t, ok)
		require.InDelta(t, 7, seen(), 0)
	})
}

// A spy calls look and refuses.
type spy struct {
	throttle.Limiter

	look func()
}

func (s spy) TryAcquire(int) (throttle.Permit, bool) {
	s.look()
	return throttle.Permit{}, false
}
