package envoy

import (
	"context"
	"errors"
	"log/slog"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/internal/proxy"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

type service struct {
	ratelimit.UnimplementedRateLimitServiceServer

	limiter throttle.Limiter
	key     string
	askOnly bool
	wait    time.Duration
	log     *slog.Logger

	probed probed
	drawn  drawn
}

// ShouldRateLimit answers one request; see the package documentation. Errors have codes: InvalidArgument for an invalid request,
// Unavailable when the limiter is closed, Canceled when the caller has gone.
func (s *service) ShouldRateLimit(ctx context.Context, r *ratelimit.RateLimitRequest) (*ratelimit.RateLimitResponse, error) {
	c, err := s.read(r)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if c.back > 0 {
		s.refund(&c)
	}
	l := throttle.ForTags(s.limiter, c.tags...)
	if throttle.Unlimited(l) {
		return response(r, l, nil), nil
	}
	switch {
	case c.cost > 0:
		err = s.charge(l, &c)
	case c.ask > 0:
		err = s.draw(ctx, l, &c)
	case c.probe:
		err = probe(ctx, l)
	}
	denied, _ := errors.AsType[*throttle.Error](err)
	switch {
	case err == nil:
		return response(r, l, nil), nil
	case denied != nil && denied.Reason != throttle.ReasonClosed:
		return response(r, l, denied), nil
	case ctx.Err() != nil:
		return nil, status.FromContextError(ctx.Err()).Err()
	case errors.Is(err, context.DeadlineExceeded): // it has waited; an error would let the request pass
		return response(r, l, &throttle.Error{Reason: throttle.ReasonLimit, Cost: c.ask, RetryAfter: time.Second}), nil
	}
	return nil, status.Error(codes.Unavailable, "the limiter is closed")
}

// charge books a cost, whatever the answer: it is OK if anything could pass before.
func (s *service) charge(l throttle.Limiter, c *call) error {
	err := throttle.Charge(l, c.cost)
	if errors.Is(err, throttle.ErrNotCharged) {
		s.log.Warn("a cost that was reported could not be charged", "error", err, "tokens", c.cost)
		return &throttle.Error{Reason: throttle.ReasonLimit, Cost: c.cost}
	}
	s.drawn.add(c.tags, c.cost, time.Now())
	return err
}

// probe reports whether a draw of one token would be refused.
func probe(ctx context.Context, l throttle.Limiter) error {
	permit, err := admission.DrawFor(ctx, l, 0, false, 0)
	permit.Cancel()
	return err
}

// draw draws for a request for tokens, and takes nothing if refused. If the tokens can never be at hand at once, it draws as many as
// possible, and the rest becomes debt without waiting.
func (s *service) draw(ctx context.Context, l throttle.Limiter, c *call) error {
	n := c.ask
	if s.wait == 0 {
		n = min(n, atHandAtMost(l, n))
	}
	permit, err := admission.DrawFor(ctx, l, n, false, s.wait)
	if err != nil {
		return err
	}
	permit.Settle(c.ask) // Envoy does not report the end of a request
	s.drawn.add(c.tags, c.ask, time.Now())
	return nil
}

// statusOf returns the status of a limiter, if it has one.
func statusOf(l throttle.Limiter) (st throttle.Status, ok bool) {
	t, ok := l.(interface{ Status() throttle.Status })
	if ok {
		st = t.Status()
	}
	return st, ok
}

// atHandAtMost returns how many of n tokens a limiter can have at hand: those that it can save up. A hard limit has no debt on purpose, and
// a draw above its maximum must be denied.
func atHandAtMost(l throttle.Limiter, n int) int {
	t, ok := l.(interface{ Limit() throttle.Limit })
	if !ok || t.Limit().Hard || t.Limit().Strict {
		return maxHits
	}
	if n > max(t.Limit().Max, t.Limit().Burst) {
		return maxHits // it is denied as too large
	}
	st, ok := statusOf(l)
	if !ok || st.Lease.Share <= 0 {
		return maxHits
	}
	return max(1, int(float64(st.Limit.Burst)*float64(st.Lease.Share)/float64(limit.WholeShare)))
}

// response returns the answer to a request. denied is the reason for a refusal, nil if it was not refused. An OK answer names no limit: the
// remaining tokens of the whole pool are not known here.
func response(r *ratelimit.RateLimitRequest, l throttle.Limiter, denied *throttle.Error) *ratelimit.RateLimitResponse {
	out := &ratelimit.RateLimitResponse{OverallCode: ratelimit.RateLimitResponse_OK}
	each := &ratelimit.RateLimitResponse_DescriptorStatus{}
	if denied != nil {
		out.OverallCode = ratelimit.RateLimitResponse_OVER_LIMIT
		out.ResponseHeadersToAdd = headers(denied)
		if denied.RetryAfter > 0 {
			each.CurrentLimit = limitOf(l)
			each.DurationUntilReset = durationpb.New(denied.RetryAfter)
		}
		if st, ok := statusOf(l); ok && denied.Cost > 1 {
			each.LimitRemaining = uint32(max(min(st.Tokens, float64(denied.Cost-1)), 0))
		}
	}
	each.Code = out.GetOverallCode()
	for range r.GetDescriptors() {
		out.Statuses = append(out.Statuses, each)
	}
	return out
}

// headers returns the headers for a refused request.
func headers(d *throttle.Error) []*core.HeaderValue {
	all := []*core.HeaderValue{{Key: "x-numathrottle-reason", Value: string(d.Reason)}}
	if d.Tag != "" {
		all = append(all, &core.HeaderValue{Key: "x-numathrottle-tag", Value: d.Tag})
	}
	if d.RetryAfter > 0 {
		all = append(all, &core.HeaderValue{Key: "retry-after", Value: proxy.RetryAfter(d.RetryAfter)})
	}
	return all
}

// units are the periods that have names in the protocol.
var units = map[time.Duration]ratelimit.RateLimitResponse_RateLimit_Unit{
	time.Second:    ratelimit.RateLimitResponse_RateLimit_SECOND,
	time.Minute:    ratelimit.RateLimitResponse_RateLimit_MINUTE,
	time.Hour:      ratelimit.RateLimitResponse_RateLimit_HOUR,
	24 * time.Hour: ratelimit.RateLimitResponse_RateLimit_DAY,
}

// limitOf returns the limit in terms of the protocol, or nil if it cannot express it.
func limitOf(l throttle.Limiter) *ratelimit.RateLimitResponse_RateLimit {
	t, ok := l.(interface{ Limit() throttle.Limit })
	if !ok {
		return nil
	}
	limit := t.Limit()
	per := limit.Per
	if per == 0 {
		per = time.Second
	}
	unit, ok := units[per]
	if !ok || limit.Max <= 0 {
		return nil
	}
	return &ratelimit.RateLimitResponse_RateLimit{RequestsPerUnit: uint32(limit.Max), Unit: unit}
}
