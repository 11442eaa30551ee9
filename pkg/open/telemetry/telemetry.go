// Package telemetry lets pkg/open export metrics and spans according to the variables OTEL_*, and serve health and metrics over HTTP at
// Config.HealthAddr. It adds the OpenTelemetry SDK, its exporters and a Prometheus client. Import it for this effect:
//
//	import _ "github.com/numaproj-contrib/numathrottle/pkg/open/telemetry"
package telemetry

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/numaproj-contrib/numathrottle/internal/drivers"
	"github.com/numaproj-contrib/numathrottle/internal/health"
	"github.com/numaproj-contrib/numathrottle/pkg/otelthrottle"
)

func init() { //nolint:gochecknoinits // as the drivers of database/sql do
	drivers.RegisterMonitoring(drivers.Monitoring{FromEnv: fromEnv, Serve: serve})
}

func fromEnv(ctx context.Context, id string) (metric.MeterProvider, trace.TracerProvider, func(context.Context) error, error) {
	p, release, err := health.Exporters(ctx, id)
	if err != nil {
		return nil, nil, nil, err
	}
	return p.Meters(), p.Tracers(), release, nil
}

func serve(ctx context.Context, addr string, log *slog.Logger) (drivers.Server, error) {
	s, err := health.Open(ctx, addr, log)
	if err != nil {
		return nil, err
	}
	return server{s}, nil
}

// A server is a health.Server that builds its data about limiters.
type server struct{ *health.Server }

// Add implements drivers.Server.
func (s server) Add(w otelthrottle.Watched, store string) (remove func()) {
	return s.Server.Add(func() health.Limit { return limitOf(w, store) })
}
