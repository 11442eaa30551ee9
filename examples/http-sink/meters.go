package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	promexporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
)

// meters are the metrics of this program. No label has values that messages make up.
type meters struct {
	log      *slog.Logger
	messages metric.Int64Counter
	sent     metric.Int64Counter
	duration metric.Float64Histogram
	halved   metric.Int64Counter
	shadowed metric.Int64Counter
	opened   metric.Int64Counter
}

// newMeters returns the metrics, which go to p.
func newMeters(p metric.MeterProvider, log *slog.Logger) (*meters, error) {
	m := &meters{log: log}
	meter := p.Meter("github.com/numaproj-contrib/numathrottle/examples/http-sink")
	var errs []error
	counter := func(at *metric.Int64Counter, name, unit, doc string) {
		var err error
		*at, err = meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(doc))
		errs = append(errs, err)
	}
	counter(&m.messages, "http_sink.messages", "{message}", "Messages answered, by how")
	counter(&m.sent, "http_sink.attempts", "{attempt}", "Requests sent, by the class of their status; none for no answer")
	counter(&m.halved, "http_sink.halved", "{request}", "Requests that the service would not have, sent again as two halves")
	counter(&m.shadowed, "http_sink.shadow.throttled", "{attempt}", "Requests that the limits would have held back, in shadow mode")
	counter(&m.opened, "http_sink.breaker.opened", "{time}", "How often a breaker has opened")
	var err error
	m.duration, err = meter.Float64Histogram("http_sink.attempt.duration", metric.WithUnit("s"),
		metric.WithDescription("From a request to the head of its answer, without waits for the limits"),
		metric.WithExplicitBucketBoundaries(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60))
	return m, errors.Join(append(errs, err)...)
}

// shadow counts what shadow mode has let through.
func (m *meters) shadow() { m.shadowed.Add(context.Background(), 1) }

func (m *meters) breaker(destination string, open bool) {
	if open {
		m.opened.Add(context.Background(), 1)
		m.log.Warn("too many calls in a row have failed: the destination is not called for a while", "destination", destination)
		return
	}
	m.log.Info("the destination is called again", "destination", destination)
}

// attempts counts and measures what goes through base.
func (m *meters) attempts(base http.RoundTripper) http.RoundTripper {
	return measured{m, base}
}

type measured struct {
	*meters

	base http.RoundTripper
}

var statusClasses = [...]string{"none", "1xx", "2xx", "3xx", "4xx", "5xx"}

// RoundTrip implements http.RoundTripper.
func (m measured) RoundTrip(req *http.Request) (*http.Response, error) {
	began := time.Now()
	res, err := m.base.RoundTrip(req)
	class := "none"
	if err == nil {
		if i := res.StatusCode / 100; i > 0 && i < len(statusClasses) {
			class = statusClasses[i]
		}
	}
	status := metric.WithAttributes(attribute.String("status", class))
	m.sent.Add(req.Context(), 1, status)
	m.duration.Record(req.Context(), time.Since(began).Seconds(), status)
	return res, err
}

// serveMetrics serves /metrics at an address until close is called. An empty address serves
// nothing.
func serveMetrics(ctx context.Context, addr string, log *slog.Logger) (p metric.MeterProvider, bound net.Addr, stop func() error, err error) {
	registry := prometheus.NewRegistry()
	exporter, err := promexporter.New(promexporter.WithRegisterer(registry), promexporter.WithoutScopeInfo(), promexporter.WithoutTargetInfo())
	if err != nil {
		return nil, nil, nil, fmt.Errorf("metrics: %w", err)
	}
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))
	end := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		return provider.Shutdown(ctx)
	}
	if addr == "" {
		return provider, nil, end, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, nil, nil, errors.Join(fmt.Errorf("metricsAddr: %w", err), end())
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("metrics are not served any more", "error", err)
		}
	}()
	return provider, listener.Addr(), func() error { return errors.Join(server.Close(), end()) }, nil
}
