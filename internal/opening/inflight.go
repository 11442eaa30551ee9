package opening

import (
	"context"
	"fmt"

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
	if c.Quotas.Given() {
		r.Note(&config.FieldError{
			Field: "quotas", Problem: "are set with a limit on calls in flight", Allowed: "none; quotas are parts of a limit on a rate",
		})
		c.Quotas = throttle.Quotas{} // reported once
	}
	c = c.withEnvironment()
	j, err := c.connect(ctx, r, slots != 0)
	if err != nil {
		return nil, err
	}
	f, err := throttle.NewInFlight(slots, j.opts...)
	if err != nil {
		abandon(j.undo...)
		return nil, fmt.Errorf("numathrottle: %w", err)
	}
	if err := j.monitor.watch(otelthrottle.Watched{InFlight: f, Member: j.member}); err != nil {
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
