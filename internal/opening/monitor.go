package opening

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
	"github.com/numaproj-contrib/numathrottle/internal/drivers"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/otelthrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A monitor watches one limiter: OpenTelemetry, and the health server.
type monitor struct {
	c         Config
	storeKind config.Kind
	limited   bool // there is something to watch
	telemetry []*otelthrottle.Telemetry
	server    drivers.Server                // nil when it is off
	ends      []func(context.Context) error // what close does, in this order
}

// monitorTimeout bounds the work on the last figures when a Throttle is closed.
const monitorTimeout = time.Second

// newMonitor creates the monitor that c configures.
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

// addTelemetry creates the recorder of metrics and spans.
func (m *monitor) addTelemetry(ctx context.Context) error {
	meters, tracers := m.c.MeterProvider, m.c.TracerProvider
	// A program with its own SDK does its own exports, perhaps by the same variables. Avoid exporting twice or taking its port.
	own := meters != nil || tracers != nil ||
		reflect.TypeOf(otel.GetMeterProvider()) != noMeters || reflect.TypeOf(otel.GetTracerProvider()) != noTracers
	if fromEnv := drivers.Monitor().FromEnv; !own && fromEnv != nil {
		var release func(context.Context) error
		var err error
		if meters, tracers, release, err = fromEnv(ctx, m.c.ID); err != nil {
			return fmt.Errorf("numathrottle: %w", err)
		}
		if release != nil {
			m.ends = append(m.ends, release)
		}
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

// The OpenTelemetry API's providers before a program sets its own.
var (
	noMeters  = reflect.TypeOf(otel.GetMeterProvider())
	noTracers = reflect.TypeOf(otel.GetTracerProvider())
)

// addServer starts the health server, or finds this process's server at that address.
func (m *monitor) addServer(ctx context.Context) error {
	serve := drivers.Monitor().Serve
	if serve == nil {
		return &config.FieldError{
			Field: "healthAddr", Problem: fmt.Sprintf("is %q, but this program does not import the health server", m.c.HealthAddr),
			Allowed: `with import _ "github.com/numaproj-contrib/numathrottle/pkg/open/telemetry"`,
		}
	}
	server, err := serve(ctx, m.c.HealthAddr, m.c.Logger)
	if err != nil {
		return fmt.Errorf("numathrottle: healthAddr is %q: %w", m.c.HealthAddr, err)
	}
	m.server, m.ends = server, append(m.ends, server.Close)
	if !m.limited {
		return nil
	}
	return m.record(server.Meters(), tracenoop.NewTracerProvider())
}

// observe returns the options that report waits to the monitor.
func (m *monitor) observe() []throttle.Option {
	var opts []throttle.Option
	for _, t := range m.telemetry {
		opts = append(opts, throttle.WithObserver(t))
	}
	return opts
}

// syncs returns the options that report syncs to the monitor.
func (m *monitor) syncs() []consensus.Option {
	var opts []consensus.Option
	for _, t := range m.telemetry {
		opts = append(opts, consensus.WithOnSync(t.OnSync(m.c.Pool, string(m.storeKind))))
	}
	return opts
}

// watch starts watching a limiter, and its member if it has one.
func (m *monitor) watch(w otelthrottle.Watched) error {
	for _, t := range m.telemetry {
		stop, err := t.Watch(w)
		if err != nil {
			return fmt.Errorf("numathrottle: %w", err)
		}
		// After the exporters, which read the last figures when they are flushed.
		m.ends = append(m.ends, func(context.Context) error { return stop() })
	}
	if m.server != nil {
		remove := m.server.Add(w, config.ShowStore(m.c.Store))
		m.ends = append(m.ends, func(context.Context) error { remove(); return nil })
	}
	return nil
}

// close ends everything that the monitor has started. It only logs errors: they do not make closing a limiter fail. It has its own timeout,
// because the store may have used up ctx.
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

// isListenAddr reports whether addr has the form HOST:PORT, with or without the host.
func isListenAddr(addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && strconv.FormatUint(n, 10) == port
}
