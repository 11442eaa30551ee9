package health

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel/attribute"
	promexporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Providers export the recorded data, according to the variables OTEL_*.
type Providers struct {
	meters  *sdkmetric.MeterProvider
	tracers *sdktrace.TracerProvider
}

// Meters returns the provider of metrics; nil if their export was not requested.
func (p *Providers) Meters() metric.MeterProvider {
	if p == nil || p.meters == nil {
		return nil
	}
	return p.meters
}

// Tracers returns the provider of spans; nil if their export was not requested.
func (p *Providers) Tracers() trace.TracerProvider {
	if p == nil || p.tracers == nil {
		return nil
	}
	return p.tracers
}

// shared holds the providers of this process, while they are in use.
var shared struct {
	mu        sync.Mutex
	users     int
	providers *Providers
}

// Exporters returns the providers that the environment requests, or nil if there are none. OTEL_METRICS_EXPORTER or OTEL_TRACES_EXPORTER must
// name an exporter other than "none" or, if they are not set, an endpoint for OTLP must be. Nothing is exported with
// OTEL_SDK_DISABLED=true. instance becomes the attribute service.instance.id of all exports, unless OTEL_RESOURCE_ATTRIBUTES names another.
// ctx bounds only Exporters.
//
// release flushes the rest, and ends the providers when their last user calls it. It is nil without providers.
func Exporters(ctx context.Context, instance string) (p *Providers, release func(context.Context) error, err error) {
	metrics, traces := asked("METRICS"), asked("TRACES")
	if !metrics && !traces {
		return nil, nil, nil
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.users == 0 {
		if shared.providers, err = newProviders(ctx, instance, metrics, traces); err != nil {
			return nil, nil, err
		}
	}
	shared.users++
	var once sync.Once
	p = shared.providers
	return p, func(ctx context.Context) (err error) {
		once.Do(func() { err = p.release(ctx) })
		return err
	}, nil
}

// release flushes, and ends the providers if they have no other user.
func (p *Providers) release(ctx context.Context) error {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.users--; shared.users == 0 {
		shared.providers = nil
		return p.shutdown(ctx)
	}
	return p.flush(ctx)
}

func asked(signal string) bool {
	if strings.EqualFold(strings.TrimSpace(os.Getenv("OTEL_SDK_DISABLED")), "true") {
		return false
	}
	if exporter := os.Getenv("OTEL_" + signal + "_EXPORTER"); exporter != "" {
		return exporter != "none"
	}
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") != ""
}

func newProviders(ctx context.Context, instance string, metrics, traces bool) (*Providers, error) {
	if err := checkSecrets(); err != nil {
		return nil, err
	}
	res, err := resourceOf(instance)
	if err != nil {
		return nil, err
	}
	p := &Providers{}
	if metrics {
		reader, err := autoexport.NewMetricReader(ctx)
		if err != nil {
			return nil, fmt.Errorf("export: OTEL_METRICS_EXPORTER is %q: %w", os.Getenv("OTEL_METRICS_EXPORTER"), err)
		}
		p.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(res))
	}
	if traces {
		exporter, err := autoexport.NewSpanExporter(ctx)
		if err != nil {
			err = fmt.Errorf("export: OTEL_TRACES_EXPORTER is %q: %w", os.Getenv("OTEL_TRACES_EXPORTER"), err)
			return nil, errors.Join(err, p.shutdown(ctx))
		}
		p.tracers = sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(res))
	}
	return p, nil
}

// resourceOf describes this process: by the variables OTEL_*, else by its instance, if any, and by its service.
func resourceOf(instance string) (*resource.Resource, error) {
	own := []attribute.KeyValue{attribute.String("service.name", serviceName())}
	if instance != "" {
		own = append(own, attribute.String("service.instance.id", instance))
	}
	// Of attributes with the same name the later resource's counts. Default caches the variables.
	res, err := resource.Merge(resource.Default(), resource.NewSchemaless(own...))
	if err == nil {
		res, err = resource.Merge(res, resource.Environment())
	}
	if err != nil {
		return nil, fmt.Errorf("export: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return res, nil
}

// serviceName returns the common name of all pods of a vertex; outside Numaflow the name of the program.
func serviceName() string {
	pipeline, vertex := os.Getenv("NUMAFLOW_PIPELINE_NAME"), os.Getenv("NUMAFLOW_VERTEX_NAME")
	if pipeline != "" && vertex != "" {
		return pipeline + "/" + vertex
	}
	return cmp.Or(os.Getenv("NUMAFLOW_MONO_VERTEX_NAME"), strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe"))
}

func (p *Providers) flush(ctx context.Context) error {
	var errs []error
	if p.meters != nil {
		errs = append(errs, p.meters.ForceFlush(ctx))
	}
	if p.tracers != nil {
		errs = append(errs, p.tracers.ForceFlush(ctx))
	}
	return errors.Join(errs...)
}

// shutdown flushes and closes.
func (p *Providers) shutdown(ctx context.Context) error {
	var errs []error
	if p.meters != nil {
		errs = append(errs, p.meters.Shutdown(ctx))
	}
	if p.tracers != nil {
		errs = append(errs, p.tracers.Shutdown(ctx))
	}
	return errors.Join(errs...)
}

// Prometheus returns a separate meter provider and a handler that shows its metrics in Prometheus' text format, or in OpenMetrics on
// request. stop ends the provider.
func Prometheus() (meters metric.MeterProvider, handler http.Handler, stop func(context.Context) error, err error) {
	registry := prometheus.NewRegistry()
	exporter, err := promexporter.New(promexporter.WithRegisterer(registry), promexporter.WithoutScopeInfo())
	if err != nil {
		return nil, nil, nil, fmt.Errorf("export: %w", err)
	}
	res, err := resourceOf("") // the scrape has an instance of its own
	if err != nil {
		return nil, nil, nil, err
	}
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter), sdkmetric.WithResource(res))
	return provider, promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}), provider.Shutdown, nil
}
