package health

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"go.opentelemetry.io/otel/metric"
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

// OpenMeters opens the destinations of the process id with the health server at addr; none for an empty address. Close them after
// everything that counts has ended.
func OpenMeters(ctx context.Context, addr, id string, log *slog.Logger) (*Meters, error) {
	m := &Meters{}
	if addr != "" {
		server, err := Open(ctx, addr, log)
		if err != nil {
			return nil, fmt.Errorf("numathrottle: healthAddr is %q: %w", addr, err)
		}
		m.Addr, m.ends, m.Providers = server.Addr(), append(m.ends, server.Close), append(m.Providers, server.Meters())
	}
	exporters, release, err := Exporters(ctx, id)
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
