package open

import (
	"context"
	"fmt"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/pkg/otelthrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// OpenInFlight is Open for a limit on calls in flight at once: it joins the pool and
// returns the InFlight that has this processor's share of so many slots, 0 to 1e9. 0 means
// no limit, and uses no store. An InFlight needs a pool of its own, beside those of the
// limits on rates that it is combined with (throttle.All):
//
//	requests, err := numathrottle.Open(ctx, c)
//	c.Limit, c.Pool = throttle.Limit{}, c.Pool+"/in-flight"
//	slots, err := numathrottle.OpenInFlight(ctx, 32, c)
//
// Everything else is as with Open, but that c.Limit has to be zero. slots should be
// several times the number of processors; see throttle.InFlight.
func OpenInFlight(ctx context.Context, slots int, c Config) (*throttle.InFlight, error) {
	var faults []error
	if _, err := throttle.NewInFlight(slots); err != nil {
		faults = append(faults, fmt.Errorf("numathrottle: %w", err))
	}
	if c.Limit != (throttle.Limit{}) {
		faults = append(faults, &config.FieldError{
			Field: "max, per and other settings of a rate", Problem: "are set with a limit on calls in flight", Allowed: "a zero Limit",
		})
	}
	c = c.withEnvironment()
	j, err := c.connect(ctx, faults, slots != 0)
	if err != nil {
		return nil, err
	}
	f, err := throttle.NewInFlight(slots, j.opts...)
	if err != nil {
		abandon(j.undo...)
		return nil, fmt.Errorf("numathrottle: %w", err)
	}
	if err := j.monitor.watch(otelthrottle.Watched{InFlight: f, Member: j.member}); err != nil {
		_ = f.Close() // which undoes all
		return nil, err
	}
	if slots != 0 {
		c.announce(j.logger, fmt.Sprintf("%d calls in flight", slots))
		c.Limit.Max = slots // there is a limit
		for _, warning := range c.Warnings() {
			j.logger.Warn(warning, "pool", c.Pool, "processor", c.ID) //nolint:sloglint // each is a constant sentence
		}
	}
	return f, nil
}
