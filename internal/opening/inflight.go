package opening

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/pkg/otelthrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// InFlight is open.InFlight.
func InFlight(ctx context.Context, slots int, c Config) (*throttle.InFlight, error) {
	r := &config.Reading{}
	if _, err := throttle.NewInFlight(slots); err != nil {
		r.Note(fmt.Errorf("numathrottle: %w", err))
	}
	if c.Limit != (throttle.Limit{}) {
		r.Note(&config.FieldError{
			Field: "max, per and other settings of a rate", Problem: "are set with a limit on calls in flight", Allowed: "a zero Limit",
		})
	}
	quotas := c.Quotas
	if quotas.Given() {
		for _, err := range append(quotaFaults(quotas.ValidateSlots(slots)), checkQuotaPool(&c)...) {
			r.Note(err)
		}
	}
	c.Quotas = throttle.Quotas{} // they are not those of a rate
	c = c.withEnvironment()
	if p := planOf(ctx); p != nil {
		if err := errors.Join(r.Err(), p.add(&c, slots, quotas)); err != nil {
			return nil, err
		}
		return throttle.NewInFlight(0)
	}
	j, err := c.connect(ctx, r, slots != 0)
	if err != nil {
		return nil, err
	}
	if quotas.Given() {
		j.opts = append(j.opts, throttle.WithQuotas(quotas))
	}
	f, err := throttle.NewInFlight(slots, j.opts...)
	if err != nil {
		abandon(j.undo...)
		return nil, fmt.Errorf("numathrottle: %w", err)
	}
	if err := c.start(ctx, &j); err != nil {
		_ = f.Close() // which undoes everything
		return nil, err
	}
	if err := j.monitor.watch(otelthrottle.Watched{InFlight: f, Member: j.member, Tags: slices.Collect(maps.Keys(quotas.Tags))}); err != nil {
		_ = f.Close() // which undoes everything
		return nil, err
	}
	if slots != 0 {
		c.announce(j.logger, fmt.Sprintf("%d calls in flight", slots))
		c.Limit.Max = slots // mark that there is a limit
		for _, warning := range c.Warnings() {
			j.logger.Warn(warning, "pool", c.Pool, "pod", c.ID) //nolint:sloglint // each is a constant sentence
		}
	}
	return f, nil
}
