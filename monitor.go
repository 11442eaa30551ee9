package numathrottle

import (
	"context"
	"fmt"
	"net"
	"reflect"
	"strconv"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/export"
	"github.com/numaproj-contrib/numathrottle/internal/health"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/otelthrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A monitor is what watches one Throttle: OpenTelemetry, and the health server.
type monitor struct {
	c         Config
	storeKind config.Kind
	limited   bool // there is something to watch
	telemetry []*otelthrottle.Telemetry
	server    *health.Server                // nil when it is off
	ends      []func(context.Context) error // what close does, in this order
}

// monitorTimeout bounds what is done for the last figures when a Throttle is closed.
const monitorTimeout = time.Second

// newMonitor sets up what c asks for.
func (c Config) newMonitor(ctx context.Context, store *config.StoreURL, limited bool) (*monitor, error) {
	m := &monitor{c: c, storeKind: store.Kind, limited: limited}
	if limited {
		if err := m.addTelemetry(ctx); err != nil {
			m.close(ctx)
			return nil, err
		}
	}
	if c.HealthAddr != "" {
		if err := m.addServer(ctx); err != nil {
			m.close(ctx)
			return nil, err
		}
	}
	return m, nil
}

// addTelemetry makes what records metrics and spans.
func (m *monitor) addTelemetry(ctx context.Context) error {
	meters, tracers := m.c.MeterProvider, m.c.TracerProvider
	// A program with an SDK of its own exports itself, by the same variables perhaps: nothing
	// must be exported twice, nor a port be taken from it.
	own := meters != nil || tracers != nil ||
		reflect.TypeOf(otel.GetMeterProvider()) != noMeters || reflect.TypeOf(otel.GetTracerProvider()) != noTracers
	if !own {
		p, release, err := export.FromEnv(ctx, m.c.ID)
		if err != nil {
			return fmt.Errorf("numathrottle: %w", err)
		}
		if release != nil {
			m.ends = append(m.ends, release)
		}
		meters, tracers = p.Meters(), p.Tracers()
	}
	if meters == nil {
		meters = otel.GetMeterProvider()
	}
	if tracers == nil {
		tracers = otel.GetTracerProvider()
	}
	return m.record(meters, tracers)
}

func (m *monitor) record(meters metric.MeterProvider, tracers trace.TracerProvider) error {
	t, err := otelthrottle.New(otelthrottle.WithMeterProvider(meters), otelthrottle.WithTracerProvider(tracers))
	if err != nil {
		return fmt.Errorf("numathrottle: %w", err)
	}
	m.telemetry = append(m.telemetry, t)
	return nil
}

// What the OpenTelemetry API has before a program sets a provider of its own.
var (
	noMeters  = reflect.TypeOf(otel.GetMeterProvider())
	noTracers = reflect.TypeOf(otel.GetTracerProvider())
)

// addServer starts the health server, or finds the one that this process has at that
// address.
func (m *monitor) addServer(ctx context.Context) error {
	server, err := health.Open(ctx, m.c.HealthAddr, m.c.Logger)
	if err != nil {
		return fmt.Errorf("numathrottle: healthAddr is %q: %w", m.c.HealthAddr, err)
	}
	m.server, m.ends = server, append(m.ends, server.Close)
	if !m.limited {
		return nil
	}
	return m.record(server.Meters(), tracenoop.NewTracerProvider())
}

// observe returns what tells the monitor of waits.
func (m *monitor) observe() []throttle.Option {
	var opts []throttle.Option
	for _, t := range m.telemetry {
		opts = append(opts, throttle.WithObserver(t))
	}
	return opts
}

// syncs returns what tells the monitor of syncs.
func (m *monitor) syncs() []consensus.Option {
	var opts []consensus.Option
	for _, t := range m.telemetry {
		opts = append(opts, consensus.WithOnSync(t.OnSync(m.c.Pool, string(m.storeKind))))
	}
	return opts
}

// watch reads th, and its member if it has one, from now on.
func (m *monitor) watch(th *throttle.Throttle, member *consensus.Member) error {
	for _, t := range m.telemetry {
		stop, err := t.Watch(otelthrottle.Watched{Throttle: th, Member: member})
		if err != nil {
			return fmt.Errorf("numathrottle: %w", err)
		}
		// After the exporters, which read the last figures when they are flushed.
		m.ends = append(m.ends, func(context.Context) error { return stop() })
	}
	if m.server != nil {
		remove := m.server.Add(func() health.Limit { return m.limit(th, member) })
		m.ends = append(m.ends, func(context.Context) error { remove(); return nil })
	}
	return nil
}

// close ends what the monitor has begun. What goes wrong is logged: it is no reason to
// call the end of a Throttle a failure. It has a time of its own, for the store may
// have used up ctx.
func (m *monitor) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), monitorTimeout)
	defer cancel()
	for _, end := range m.ends {
		if err := end(ctx); err != nil {
			m.c.Logger.Warn("telemetry was not ended as it should be", "error", err)
		}
	}
	m.ends = nil
}

// limit is what the health server shows.
func (m *monitor) limit(th *throttle.Throttle, member *consensus.Member) health.Limit {
	st, held := th.Status(), th.HeldBack()
	l := health.Limit{
		Name: st.Name, Max: st.Limit.Max, Per: health.Duration(st.Limit.Per), Burst: st.Limit.Burst, Hard: st.Limit.Hard,
		Ceiling: st.Ceiling(), Share: float64(st.Lease.Share) / float64(throttle.WholeShare), Degraded: st.Lease.Degraded,
		Rate: st.Rate, Tokens: st.Tokens, Waiting: st.Waiting, Granted: st.Granted, Returned: st.Returned, Refused: st.Refused,
		HeldBack: []health.HeldBack{}, Store: health.Store{URL: config.ShowStore(m.c.Store)},
	}
	for _, h := range held {
		l.HeldBack = append(l.HeldBack, health.HeldBack{Reason: string(h.Reason), Waits: h.Waits, Refusals: h.Refusals, Time: health.Duration(h.Time)})
	}
	if t, ok := th.Throttled(); ok {
		l.Throttled = &health.Throttled{Reason: string(t.Reason)}
		if t.RetryAfter > 0 {
			l.Throttled.RetryAfter = health.Duration(t.RetryAfter).String()
		}
		l.NotReady = string(t.Reason)
	}
	if st.Limit.Adapts() {
		a := st.Adapting
		l.Service = &health.Service{
			Lowered: st.Lease.Adapted, Cuts: st.Lease.Cuts, Part: a.Part, Accepted: a.Accepted, Refused: a.Refused, Overloaded: a.Overloaded,
		}
	}
	if p := st.Paused; p != nil {
		l.Paused = &health.Paused{Tag: p.Tag, Reason: p.Reason}
		if !p.Until.IsZero() {
			l.Paused.For = health.Duration(time.Until(p.Until)).String()
		}
	}
	if l.Ready = !st.Closed && st.Lease.Share > 0; l.Ready {
		l.NotReady = "" // held back as limits do
	}
	if member != nil {
		v := member.View()
		l.Pool = poolOf(&v)
		l.Store.Failures = v.Failures
		if v.LastError != nil {
			l.Store.LastError = v.LastError.Error()
		}
	}
	return l
}

func poolOf(v *consensus.View) *health.Pool {
	p := &health.Pool{
		Name: v.Pool, ID: v.ID, State: string(v.State), Processors: v.Live, PoolSize: v.PoolSize, Agreed: v.Agreed,
		Wanted: v.Want.Fraction(), Demand: v.Demand.Fraction(), Lease: health.Duration(v.Lease),
		LeaseLeft: health.Duration(v.LeaseLeft), Interval: health.Duration(v.Interval),
		Frozen: health.Duration(v.Frozen), PauseMissing: v.PauseMissing, Roster: make([]health.Processor, 0, len(v.Roster)),
	}
	if v.Frozen > 0 {
		p.FrozenBy = fmt.Sprint(v.FrozenBy)
	}
	for _, row := range v.Roster {
		p.Roster = append(p.Roster, health.Processor{
			ID: row.ID, Claim: row.Claim.Fraction(), Demand: row.Demand.Fraction(), PoolSize: row.PoolSize,
		})
	}
	return p
}

// isListenAddr tells whether addr has the form HOST:PORT, the host left out perhaps.
func isListenAddr(addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && strconv.FormatUint(n, 10) == port
}
