// Package drivers registers the stores and the monitoring that a program imports, as in database/sql, and holds the credentials for stores.
// Package pkg/open and the packages below it share it.
//
// Register functions are for init functions. All others are safe for concurrent use.
package drivers

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/pkg/otelthrottle"
)

// A Driver opens stores on the servers of one kind.
type Driver struct {
	// Check returns a fault for every credentials file that the driver's client cannot use. Nil checks nothing.
	Check func(*Credentials) []error
	// Open returns the store. It does not wait for a server.
	Open func(*Request) *Guarded
}

// A Request is what a Driver needs to open a store.
type Request struct {
	URL         *config.StoreURL
	Credentials *Credentials
	ID          string // of the processor, for the connection's name
	Logger      *slog.Logger
	// LongestLease lowers the longest lease of the store, so that a test need not wait for the freeze of a new pool. 0 is the store's own.
	LongestLease time.Duration
}

var registered = map[config.Kind]Driver{}

// Register makes a driver known for kinds of stores.
func Register(d Driver, kinds ...config.Kind) {
	for _, kind := range kinds {
		registered[kind] = d
	}
}

// Open returns the store that the request's URL names.
func Open(r *Request) (*Guarded, error) {
	driver, err := find(r.URL.Kind)
	if err != nil {
		return nil, err
	}
	r.Credentials.Log = r.Logger
	return driver.Open(r), nil
}

// find returns the driver of a kind. Stores within the process need none, and a wrong URL has no kind.
func find(kind config.Kind) (Driver, error) {
	driver, ok := registered[kind]
	if ok || kind == config.Memory || kind == config.Static || kind == "" {
		return driver, nil
	}
	name := "redis"
	if kind == config.NATS {
		name = "nats"
	}
	return Driver{}, &config.FieldError{
		Field: "store", Problem: fmt.Sprintf("is of kind %s, whose driver this program does not import", kind),
		Allowed: `with import _ "github.com/numaproj-contrib/numathrottle/pkg/open/` + name + `"`,
	}
}

// Monitoring is the optional monitoring of a program besides stores: exporters and the health server.
type Monitoring struct {
	// FromEnv returns the providers that the variables OTEL_* request. release is nil if there are none.
	FromEnv func(ctx context.Context, id string) (metric.MeterProvider, trace.TracerProvider, func(context.Context) error, error)
	// Serve starts the health server at an address, or finds the one that this process has there.
	Serve func(ctx context.Context, addr string, log *slog.Logger) (Server, error)
}

// A Server shows the status of limiters.
type Server interface {
	// Meters returns the provider of the metrics at /metrics.
	Meters() metric.MeterProvider
	// Add shows a limiter until remove is called. store is its URL without secrets.
	Add(w otelthrottle.Watched, store string) (remove func())
	// Close releases the server, which ends with the last limiter that uses it.
	Close(ctx context.Context) error
}

var monitoring Monitoring

// RegisterMonitoring makes exporters and the health server known.
func RegisterMonitoring(m Monitoring) { monitoring = m }

// Monitor returns the registered monitoring; its fields are nil without any.
func Monitor() Monitoring { return monitoring }
