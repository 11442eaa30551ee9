package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// The names of the pools are that of the vertex plus one of these.
const (
	requestsSuffix = "/requests"
	tokensSuffix   = "/tokens"
	inFlightSuffix = "/in-flight"
	longestSuffix  = inFlightSuffix
)

// limits holds the three limits of a provider. Unset ones are unlimited.
type limits struct {
	requests *throttle.Throttle
	tokens   *throttle.Throttle
	inFlight *throttle.InFlight
}

// openLimits joins a pool for each limit.
func openLimits(ctx context.Context, s *settings, log *slog.Logger) (l limits, err error) {
	defer func() {
		if err != nil {
			_ = l.close() // an error here would hide the one that counts
		}
	}()
	in := func(suffix string, limit throttle.Limit) numathrottle.Config {
		c := s.Pool
		c.Logger = log
		c.Pool += suffix
		c.Limit = limit
		return c
	}
	open := func(suffix string, limit throttle.Limit, quotas throttle.Quotas) (*throttle.Throttle, error) {
		if limit.Max == 0 {
			return throttle.New(limit) // it needs no pool
		}
		c := in(suffix, limit)
		c.Quotas = quotas
		return numathrottle.Open(ctx, c)
	}
	ofRequests, ofTokens := s.quotas()
	if l.requests, err = open(requestsSuffix, s.requestLimit(), ofRequests); err != nil {
		return l, err
	}
	if l.tokens, err = open(tokensSuffix, s.tokenLimit(), ofTokens); err != nil {
		return l, err
	}
	// Also without a limit: the health server comes with it.
	l.inFlight, err = numathrottle.OpenInFlight(ctx, s.InFlight, in(inFlightSuffix, throttle.Limit{}))
	return l, err
}

// noLimit returns the remedy if nothing limits the calls of a deployment.
func noLimit(s *settings) string {
	of := s.targets
	if len(of) == 0 {
		of = []settings{*s}
	}
	for i := range of {
		if t := &of[i]; t.RequestsPerMinute+t.TokensPerMinute+t.InFlight == 0 {
			where := ""
			if t.Deployment != "" {
				where = " to the deployment " + t.Deployment
			}
			return "every call" + where + " is sent at once; set LLM_MAP_REQUESTS_PER_MINUTE, LLM_MAP_TOKENS_PER_MINUTE or LLM_MAP_IN_FLIGHT"
		}
	}
	return ""
}

// allLimits are the limits of all deployments.
type allLimits []limits

// openTargets joins the pools of each deployment of valid settings; without others, these settings are the only deployment.
func openTargets(ctx context.Context, s *settings, log *slog.Logger) (targets []target, all allLimits, err error) {
	of := s.targets
	if len(of) == 0 {
		of = []settings{*s}
	}
	for _, t := range of {
		l, err := openLimits(ctx, &t, log)
		if err != nil {
			_ = all.close() // an error here would hide the one that counts
			return nil, nil, err
		}
		all = append(all, l)
		targets = append(targets, target{t, l.limiter()})
	}
	return targets, all, nil
}

// close leaves all pools.
func (a allLimits) close() error {
	var errs []error
	for _, l := range a {
		errs = append(errs, l.close())
	}
	return errors.Join(errs...)
}

// requestLimit returns the limit on requests. Only it can be strict: the draws of a call from the others are known too late.
func (s *settings) requestLimit() throttle.Limit {
	limit := s.perMinute(s.RequestsPerMinute, s.TokensPerMinute == 0)
	if s.Strict && limit.Max > 0 {
		limit.Strict, limit.MaxReserved, limit.Burst = true, s.MaxReserved, 0
	}
	return limit
}

// quotas returns the quotas of the limit on tokens; without one, those of the limit on requests.
func (s *settings) quotas() (requests, tokens throttle.Quotas) {
	if s.TokensPerMinute == 0 {
		return s.Quotas, tokens
	}
	return requests, s.Quotas
}

func (s *settings) tokenLimit() throttle.Limit { return s.perMinute(s.TokensPerMinute, true) }

// perMinute returns a limit of so many a minute; 0 is none. The main one ramps up and follows the provider.
func (s *settings) perMinute(most int, isMain bool) throttle.Limit {
	if most == 0 {
		return throttle.Limit{}
	}
	limit := throttle.Limit{Max: most, Per: time.Minute, Burst: max(1, int(float64(most)*s.BurstTime.Minutes()))}
	if !isMain {
		return limit
	}
	limit.Adaptive = s.Adaptive
	if s.Adaptive {
		limit.AdaptiveMin = s.AdaptiveMin
	}
	ramp := s.Pool.Limit
	limit.Min, limit.RampUpDuration, limit.Mode, limit.ResumedRampUp, limit.TTL = ramp.Min, ramp.RampUpDuration, ramp.Mode, ramp.ResumedRampUp, ramp.TTL
	return limit
}

// limiter returns the limiter for the draws of one call: its tokens, one request, one slot; all or none.
func (l limits) limiter() throttle.Limiter {
	return throttle.All(l.tokens, throttle.PerCall(l.requests), throttle.PerCall(l.inFlight))
}

// close leaves the pools. It is called after the last draw.
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
