package proxy

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// The names of the further pools are that of the first plus one of these suffixes.
const (
	requestsSuffix = "/requests"
	inFlightSuffix = "/in-flight"
)

// A LimitConfig configures the limits. The zero value is no limit.
type LimitConfig struct {
	// Pool is the limit on costs with its quotas and its store.
	Pool numathrottle.Config
	// QuotasOf are the quotas that name limits: requestsPerMinute and inFlight, and in the HTTP proxy those of an LLM.
	QuotasOf opening.QuotasOf
	// RequestsPerMinute limits requests, whatever their cost: 0 to 1e9. 0 is no limit.
	RequestsPerMinute int
	// InFlight limits concurrent calls: 0 to 1e9. 0 is no limit.
	InFlight int
}

// LimitFields describes the settings of a LimitConfig besides those of the pool.
func LimitFields[C any](at func(C) *LimitConfig) []config.Field[C] {
	return config.About(Topic, config.WithPrefix(
		Prefix,
		config.NumberField("requestsPerMinute", 1, 1_000_000_000, "no limit", "A limit on requests, beside the one on what they cost",
			func(c C) *int { return &at(c).RequestsPerMinute }).In("requests").Like("500"),
		config.NumberField("inFlight", 1, 1_000_000_000, "no limit", "A limit on calls at once, over the whole pool",
			func(c C) *int { return &at(c).InFlight }).In("calls").Like("64"),
	)...)
}

// The settings of further limits, which also name them in quotas.
const (
	requestsKey = "requestsPerMinute"
	inFlightKey = "inFlight"
)

func requestsLimit(n int) throttle.Limit { return throttle.Limit{Max: n, Per: time.Minute} }

// QuotasField is the library's setting of quotas, which may name limits here; without limits: requestsPerMinute and inFlight.
func QuotasField[C any](limits []config.QuotaLimit, at func(C) *LimitConfig) config.Field[C] {
	if limits == nil {
		limits = []config.QuotaLimit{{Key: requestsKey}, {Key: inFlightKey}}
	}
	return opening.ManyQuotasField(limits, "not with `policy: even` or `static://`", "What tags may use of the limits that they name, or of `max`",
		func(c C) *throttle.Quotas { return &at(c).Pool.Quotas }, func(c C) *opening.QuotasOf { return &at(c).QuotasOf })
}

// CheckQuotas returns the faults of quotas that name limits.
func (c *LimitConfig) CheckQuotas() (faults []error) {
	pool := (*opening.Config)(&c.Pool)
	for _, of := range []struct {
		key   string
		max   int
		check func(q throttle.Quotas) []error
	}{
		{requestsKey, c.RequestsPerMinute, func(q throttle.Quotas) []error {
			return opening.CheckQuotasOf(requestsKey, requestsLimit(c.RequestsPerMinute), q, pool)
		}},
		{inFlightKey, c.InFlight, func(q throttle.Quotas) []error { return opening.CheckSlotQuotasOf(inFlightKey, c.InFlight, q, pool) }},
	} {
		q, ok := c.QuotasOf.Limits[of.key]
		switch {
		case !ok:
		case of.max == 0:
			faults = append(faults, &config.FieldError{
				Field: "quotas", Problem: "name " + of.key + ", but there is no such limit", Allowed: "with " + of.key,
			})
		default:
			faults = append(faults, of.check(q)...)
		}
	}
	return faults
}

// Limits are open limits. Close them once, after the last draw.
type Limits struct {
	// Limiter draws from all of them or from none.
	Limiter throttle.Limiter
	// Main is the limit on costs. It is never nil.
	Main *throttle.Throttle

	closers []func() error
}

// openMain joins the pool of the limit on costs. If only other limits are set, it needs no pool: Open would warn that everything passes.
func openMain(ctx context.Context, c *LimitConfig) (*throttle.Throttle, error) {
	if c.Pool.Limit == (throttle.Limit{}) && !c.Pool.Quotas.Given() && (c.RequestsPerMinute > 0 || c.InFlight > 0) {
		return throttle.New(throttle.Limit{})
	}
	return numathrottle.Open(ctx, c.Pool)
}

// OpenLimits joins the pools of c. ctx bounds only the opening. Errors: those of numathrottle.Open; they show no secret.
func OpenLimits(ctx context.Context, c *LimitConfig, log *slog.Logger) (*Limits, error) {
	l := &Limits{}
	c.Pool.Logger = log
	main, err := openMain(ctx, c)
	if err != nil {
		return nil, err
	}
	l.Main, l.closers = main, append(l.closers, main.Close)
	all := []throttle.Limiter{main}
	// The pool's name may come from the environment, which Open has read.
	name := c.Pool.Effective().Pool
	if c.RequestsPerMinute > 0 {
		own := c.Pool
		own.Pool, own.Limit, own.Quotas = name+requestsSuffix, requestsLimit(c.RequestsPerMinute), c.QuotasOf.Limits[requestsKey]
		requests, err := numathrottle.Open(ctx, own)
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		l.closers, all = append(l.closers, requests.Close), append(all, throttle.PerCall(requests))
	}
	if c.InFlight > 0 {
		own := c.Pool
		own.Pool, own.Limit, own.Quotas = name+inFlightSuffix, throttle.Limit{}, c.QuotasOf.Limits[inFlightKey]
		slots, err := numathrottle.OpenInFlight(ctx, c.InFlight, own)
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		l.closers, all = append(l.closers, slots.Close), append(all, throttle.PerCall(slots))
	}
	l.Limiter = throttle.All(all...)
	return l, nil
}

// Close leaves the pools.
func (l *Limits) Close() error {
	var errs []error
	for _, f := range l.closers {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}
