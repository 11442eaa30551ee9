package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// The names of the pools are that of the vertex and one of these.
const (
	requestsSuffix = "/requests"
	tokensSuffix   = "/tokens"
	inFlightSuffix = "/in-flight"
	longestSuffix  = inFlightSuffix
)

// limits is the three limits of a provider. Those that are not set are unlimited.
type limits struct {
	requests *throttle.Throttle
	tokens   *throttle.Throttle
	inFlight *throttle.InFlight
}

// openLimits joins a pool for each limit.
func openLimits(ctx context.Context, s *settings, log *slog.Logger) (l limits, err error) {
	defer func() {
		if err != nil {
			_ = l.close() // what fails here hides the error that counts
		}
	}()
	in := func(suffix string, perMinute int, adaptive bool) numathrottle.Config {
		c := s.Pool
		c.Logger = log
		c.Pool += suffix
		if perMinute > 0 {
			c.Limit = throttle.Limit{
				Max: perMinute, Per: time.Minute,
				Burst:    max(1, int(float64(perMinute)*s.BurstTime.Minutes())),
				Adaptive: adaptive,
			}
		}
		return c
	}
	if l.requests, err = numathrottle.Open(ctx, in(requestsSuffix, s.RequestsPerMinute, s.Adaptive && s.TokensPerMinute == 0)); err != nil {
		return l, err
	}
	if l.tokens, err = numathrottle.Open(ctx, in(tokensSuffix, s.TokensPerMinute, s.Adaptive)); err != nil {
		return l, err
	}
	l.inFlight, err = numathrottle.OpenInFlight(ctx, s.InFlight, in(inFlightSuffix, 0, false))
	return l, err
}

// limiter draws what one call takes: so many tokens, one request, one slot; all or none.
func (l limits) limiter() throttle.Limiter {
	return throttle.All(l.tokens, throttle.PerCall(l.requests), throttle.PerCall(l.inFlight))
}

// close leaves the pools. It is called when nothing draws any more.
func (l limits) close() error {
	var errs []error
	if l.inFlight != nil {
		errs = append(errs, l.inFlight.Close())
	}
	if l.tokens != nil {
		errs = append(errs, l.tokens.Close())
	}
	if l.requests != nil {
		errs = append(errs, l.requests.Close())
	}
	return errors.Join(errs...)
}
