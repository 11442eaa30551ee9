package program

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/health"
)

// Meters are the destinations of a program's own metrics. They are those of the limits: the health server, if any, and the exporters in the
// variables OTEL_*.
type Meters struct {
	// Providers has one provider for each destination.
	Providers []metric.MeterProvider
	// Addr is the health server's address; nil without one.
	Addr net.Addr

	ends []func(context.Context) error
}

// OpenMeters opens the destinations for a pool. Close them after everything that counts has ended.
func OpenMeters(ctx context.Context, pool *numathrottle.Config, log *slog.Logger) (*Meters, error) {
	m := &Meters{}
	if pool.HealthAddr != "" {
		server, err := health.Open(ctx, pool.HealthAddr, log)
		if err != nil {
			return nil, fmt.Errorf("numathrottle: healthAddr is %q: %w", pool.HealthAddr, err)
		}
		m.Addr, m.ends, m.Providers = server.Addr(), append(m.ends, server.Close), append(m.Providers, server.Meters())
	}
	exporters, release, err := health.Exporters(ctx, pool.ID)
	if release != nil {
		m.ends = append(m.ends, release)
	}
	if p := exporters.Meters(); p != nil {
		m.Providers = append(m.Providers, p)
	}
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// Close sends the last figures, for at most a second.
func (m *Meters) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var errs []error
	for _, end := range m.ends {
		errs = append(errs, end(ctx))
	}
	m.ends = nil
	return errors.Join(errs...)
}
