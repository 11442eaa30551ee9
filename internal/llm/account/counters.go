package account

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/numaproj-contrib/numathrottle/internal/llm/usage"
)

// counters are the metrics of an account, one of each for each destination.
type counters struct {
	tokens, charged   []metric.Int64Counter
	limits, remaining []metric.Float64Gauge
}

const scope = "github.com/numaproj-contrib/numathrottle/pkg/llm"

func newCounters(to []metric.MeterProvider) (c counters, err error) {
	for _, provider := range to {
		meter := provider.Meter(scope)
		tokens, err := meter.Int64Counter("llm.tokens", metric.WithUnit("{token}"),
			metric.WithDescription("Tokens that calls of a deployment have used, by kind: input (uncached only), cache_write, cache_read, output"))
		if err != nil {
			return c, err
		}
		charged, err := meter.Int64Counter("numathrottle.tokens.settled", metric.WithUnit("{token}"),
			metric.WithDescription("Tokens that calls were charged in the end: what they drew, unless a usage has corrected it"))
		if err != nil {
			return c, err
		}
		limit, err := meter.Float64Gauge("numathrottle.announced.limit", metric.WithUnit("{token}"),
			metric.WithDescription("What the service announces as its limit, in the unit of the limit with that name"))
		if err != nil {
			return c, err
		}
		rest, err := meter.Float64Gauge("numathrottle.announced.remaining", metric.WithUnit("{token}"),
			metric.WithDescription("What the service announces as left of its limit, in the same unit"))
		if err != nil {
			return c, err
		}
		c.limits, c.remaining = append(c.limits, limit), append(c.remaining, rest)
		c.tokens, c.charged = append(c.tokens, tokens), append(c.charged, charged)
	}
	return c, nil
}

// settled counts what a call was charged by the limit of a pool.
func (c counters) settled(pool string, n int) {
	for _, to := range c.charged {
		to.Add(context.Background(), int64(n), metric.WithAttributes(attribute.String("limit", pool)))
	}
}

// used counts what a call has used.
func (c counters) used(deployment string, u usage.Usage) {
	for _, to := range c.tokens {
		for kind, n := range map[string]int{"input": u.Input, "cache_write": u.CacheWrites, "cache_read": u.CacheReads, "output": u.Output} {
			if n > 0 {
				to.Add(context.Background(), int64(n), metric.WithAttributes(attribute.String("deployment", deployment), attribute.String("kind", kind)))
			}
		}
	}
}
