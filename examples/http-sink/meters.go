package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/health"
)

// meters are the metrics of this program. No label has values chosen by messages.
type meters struct {
	log      *slog.Logger
	messages counter
	sent     counter
	duration histogram
	halved   counter
	shadowed counter
	opened   counter
	places   *health.Meters
}

// A counter counts at every destination of metrics.
type counter []metric.Int64Counter

// Add counts n more.
func (c counter) Add(ctx context.Context, n int64, opts ...metric.AddOption) {
	for _, each := range c {
		each.Add(ctx, n, opts...)
	}
}

// A histogram records at every destination of metrics.
type histogram []metric.Float64Histogram

// Record records one value.
func (h histogram) Record(ctx context.Context, value float64, opts ...metric.RecordOption) {
	for _, each := range h {
		each.Record(ctx, value, opts...)
	}
}

// openMeters returns the metrics, with the same destinations as those of the limits: the health server, if any, and the exporters in the
// variables OTEL_*. Close them after everything that counts has ended.
func openMeters(ctx context.Context, pool *numathrottle.Config, log *slog.Logger) (*meters, error) {
	places, err := health.OpenMeters(ctx, pool.HealthAddr, pool.ID, log)
	if err != nil {
		return nil, err
	}
	m := &meters{log: log, places: places}
	for _, p := range places.Providers {
		err = errors.Join(err, m.add(p.Meter("github.com/numaproj-contrib/numathrottle/examples/http-sink")))
	}
	if err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

// add makes the instruments of one destination.
func (m *meters) add(meter metric.Meter) error {
	var errs []error
	count := func(at *counter, name, unit, doc string) {
		c, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(doc))
		*at = append(*at, c)
		errs = append(errs, err)
	}
	count(&m.messages, "http_sink.messages", "{message}", "Messages answered, by how")
	count(&m.sent, "http_sink.attempts", "{attempt}", "Requests sent, by the class of their status; none for no answer")
	count(&m.halved, "http_sink.halved", "{request}", "Requests that the service would not have, sent again as two halves")
	count(&m.shadowed, "http_sink.shadow.throttled", "{attempt}", "Requests that the limits would have held back, in shadow mode")
	count(&m.opened, "http_sink.breaker.opened", "{time}", "How often a breaker has opened")
	duration, err := meter.Float64Histogram("http_sink.attempt.duration", metric.WithUnit("s"),
		metric.WithDescription("From a request to the head of its answer, without waits for the limits"),
		metric.WithExplicitBucketBoundaries(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60))
	m.duration = append(m.duration, duration)
	return errors.Join(append(errs, err)...)
}

// close sends the last figures.
func (m *meters) close() error { return m.places.Close() }

// shadow counts the calls that shadow mode lets through.
func (m *meters) shadow() { m.shadowed.Add(context.Background(), 1) }

func (m *meters) breaker(destination string, open bool) {
	if open {
		m.opened.Add(context.Background(), 1)
		m.log.Warn("too many calls in a row have failed: the destination is not called for a while", "destination", destination)
		return
	}
	m.log.Info("the destination is called again", "destination", destination)
}

// attempts counts and measures the requests through base.
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
