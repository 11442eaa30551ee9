package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// longestSuffix is the longest suffix of the name of a pool.
const longestSuffix = "/" + string(profile.RequestsDay)

// noLimit returns the remedy if nothing limits the calls of a deployment.
func noLimit(s *settings) string {
	of := s.targets
	if len(of) == 0 {
		of = []settings{*s}
	}
	for i := range of {
		if t := &of[i]; !t.Any() {
			where := ""
			if t.Deployment != "" {
				where = " to the deployment " + t.Deployment
			}
			return "every call" + where + " is sent at once; set LLM_MAP_REQUESTS_PER_MINUTE, LLM_MAP_TOKENS_PER_MINUTE or LLM_MAP_IN_FLIGHT"
		}
	}
	return ""
}

// accounts are the open limits of all deployments, and the purse that they share.
type accounts struct {
	all   []*account.Limits
	purse *account.Purse
}

// openTargets joins the pools of each deployment of valid settings; without others, these settings are the only deployment.
func openTargets(ctx context.Context, s *settings, log *slog.Logger) (targets []target, a accounts, err error) {
	defer func() {
		if err != nil {
			_ = a.close() // an error here would hide the one that counts
		}
	}()
	if a.purse, err = account.OpenPurse(ctx, s.Pool, s.Prices, s.Budget, s.BudgetQuotas(), s.OnStop == resultOnStop, log); err != nil {
		return nil, a, err
	}
	of := s.targets
	if len(of) == 0 {
		of = []settings{*s}
	}
	for _, t := range of {
		l, err := openLimits(ctx, t, a.purse, log)
		if err != nil {
			return nil, a, err
		}
		a.all = append(a.all, l)
		targets = append(targets, target{t, l})
	}
	return targets, a, nil
}

// openLimits joins the pools of one deployment.
func openLimits(ctx context.Context, s settings, purse *account.Purse, log *slog.Logger) (*account.Limits, error) {
	c := s.shaped()
	c.Purse = purse
	return account.Open(ctx, c, log)
}

// shaped returns the account's settings, with the shape of its limits.
func (s *settings) shaped() account.Config {
	c := s.Config
	c.Shape, c.Name, c.AnyType = s.shape, s.Deployment, true
	return c
}

// close leaves all pools.
func (a accounts) close() error {
	var errs []error
	for _, l := range a.all {
		errs = append(errs, l.Close())
	}
	return errors.Join(append(errs, a.purse.Close())...)
}

// shape completes a limit of a minute. The main one ramps up and follows the provider. Only that on requests can be strict: the draws of a
// call from the others are known too late.
func (s *settings) shape(k profile.Kind, isMain bool, l throttle.Limit) throttle.Limit {
	if l.Max == 0 {
		return l
	}
	l.Burst = max(1, int(float64(l.Max)*s.BurstTime.Minutes()))
	if isMain {
		l.Adaptive = s.Adaptive
		if s.Adaptive {
			l.AdaptiveMin = s.AdaptiveMin
		}
		ramp := s.Pool.Limit
		l.Min, l.RampUpDuration, l.Mode, l.ResumedRampUp, l.TTL = ramp.Min, ramp.RampUpDuration, ramp.Mode, ramp.ResumedRampUp, ramp.TTL
	}
	if k == profile.Requests && s.Strict {
		l.Strict, l.MaxReserved, l.Burst = true, s.MaxReserved, 0
	}
	return l
}
