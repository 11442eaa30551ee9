package main

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// The names of the pools are that of the vertex plus one of these. A destination's name is between the pool's and the last part.
const (
	rateSuffix        = "/rate"
	requestsSuffix    = "/requests"
	inFlightSuffix    = "/in-flight"
	destinationSuffix = "/to/"
	longestName       = 128 // of a destination
	longestPool       = 256 - len(destinationSuffix) - longestName - len(inFlightSuffix)
)

// limits holds the limits over all requests, and those of each destination, which are opened when the first message goes there. It is a
// throttle.Tagger, whose tags are the destinations.
type limits struct {
	settings *settings
	log      *slog.Logger
	shared   throttle.Limiter // nil: no limit
	observe  func()           // called when shadow mode lets a call through
	join     joinFunc

	mu     sync.Mutex
	pools  // in order of joining
	at     map[string]*destination
	closed bool
}

var _ throttle.Tagger = (*limits)(nil)

// openLimits joins the pools that all requests share.
func openLimits(ctx context.Context, s *settings, log *slog.Logger, observe func()) (*limits, error) {
	l := &limits{settings: s, log: log, observe: observe, join: numathrottle.Open, at: map[string]*destination{}}
	rate, err := l.rate(ctx, &l.pools, rateSuffix, s.Pool.Limit)
	if err == nil {
		var requests, slots throttle.Limiter
		if requests, err = l.rate(ctx, &l.pools, requestsSuffix, throttle.Limit{Max: s.MaxRequests, Per: s.Pool.Limit.Per}); err == nil {
			if slots, err = l.slots(ctx, &l.pools, inFlightSuffix, s.InFlight); err == nil {
				l.shared = throttle.All(rate, throttle.PerCall(requests), throttle.PerCall(slots))
				return l, nil
			}
		}
	}
	return nil, errors.Join(err, l.close())
}

func (l *limits) config(suffix string) numathrottle.Config {
	c := l.settings.Pool
	c.Logger = l.log
	c.Pool += suffix
	c.Limit, c.Quotas = throttle.Limit{}, throttle.Quotas{}
	return c
}

// destinationLimit returns the limit of each destination: it has the rate-independent settings of the limit over all requests. Figures,
// including the ramp's, are its own.
func (s *settings) destinationLimit() throttle.Limit {
	of := s.Pool.Limit
	return throttle.Limit{
		Max: s.DestinationMax, Per: of.Per, Hard: of.Hard, Strict: of.Strict, MaxReserved: of.MaxReserved, MaxDebt: of.MaxDebt, Adaptive: of.Adaptive,
	}
}

// rate joins the pool of a limit; nil for none.
func (l *limits) rate(ctx context.Context, in *pools, suffix string, limit throttle.Limit) (throttle.Limiter, error) {
	if limit.Max == 0 {
		return nil, nil //nolint:nilnil // a nil Limiter is no limit
	}
	c := l.config(suffix)
	c.Limit = limit
	if suffix == rateSuffix { // the tags of the limit over all requests are the destinations
		c.Quotas = l.settings.Pool.Quotas
	}
	th, err := l.join(ctx, c)
	if err != nil {
		return nil, err
	}
	in.rates = append(in.rates, th)
	in.closers = append(in.closers, th.Close)
	return th, nil
}

func (l *limits) slots(ctx context.Context, in *pools, suffix string, slots int) (throttle.Limiter, error) {
	if slots == 0 {
		return nil, nil //nolint:nilnil // as above
	}
	f, err := numathrottle.OpenInFlight(ctx, slots, l.config(suffix))
	if err != nil {
		return nil, err
	}
	in.closers = append(in.closers, f.Close)
	return f, nil
}

// noLimit returns the remedy if nothing is limited.
func noLimit(s *settings) string {
	if s.Pool.Limit.Max+s.MaxRequests+s.InFlight+s.DestinationMax+s.DestinationInFlight > 0 {
		return ""
	}
	return "every request is sent at once; " +
		"set NUMATHROTTLE_MAX, HTTP_SINK_MAX_REQUESTS, HTTP_SINK_IN_FLIGHT, HTTP_SINK_DESTINATION_MAX or HTTP_SINK_DESTINATION_IN_FLIGHT"
}

// limiter returns the limiter of a transport.
func (l *limits) limiter() throttle.Limiter {
	s := l.settings
	if throttle.Unlimited(l.shared) && s.DestinationMax == 0 && s.DestinationInFlight == 0 {
		return nil
	}
	return l
}

// Adapts reports whether a limit follows the service; see hook.Adaptive.
func (l *limits) Adapts() bool {
	s := l.settings
	return s.Pool.Limit.Adaptive && (s.Pool.Limit.Max > 0 || s.DestinationMax > 0)
}

// Acquire implements throttle.Limiter.
func (l *limits) Acquire(ctx context.Context, n int) (throttle.Permit, error) {
	return l.ForTag("").Acquire(ctx, n)
}

// AcquireUpTo implements throttle.Limiter.
func (l *limits) AcquireUpTo(ctx context.Context, n int) (throttle.Permit, error) {
	return l.ForTag("").AcquireUpTo(ctx, n)
}

// TryAcquire implements throttle.Limiter.
func (l *limits) TryAcquire(n int) (throttle.Permit, bool) { return l.ForTag("").TryAcquire(n) }

// close leaves the pools, after waiting for those being opened. It is called after the last draw; later draws are refused.
func (l *limits) close() error {
	l.mu.Lock()
	l.closed = true
	at := slices.Collect(maps.Values(l.at))
	l.mu.Unlock()
	for _, d := range at {
		<-d.ready
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.leave()
	l.pools = pools{}
	return err
}

// A shadow holds nothing back, and observes the calls that it would have held back.
type shadow struct {
	throttle.Limiter

	observe func()
}

// Acquire implements throttle.Limiter.
func (s shadow) Acquire(ctx context.Context, n int) (throttle.Permit, error) {
	if ctx.Err() != nil {
		return throttle.Permit{}, context.Cause(ctx)
	}
	p, ok := s.TryAcquire(n)
	if !ok {
		s.observe()
	}
	return p, nil
}
