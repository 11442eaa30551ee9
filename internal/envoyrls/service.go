package envoyrls

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	descriptor "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/numaproj-contrib/numathrottle/internal/apierror"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

const (
	maxHits        = 1_000_000_000
	maxTag         = 256
	maxDescriptors = 64
)

// atOnce is the wait of a call that does not wait: long enough to be told why not.
const atOnce = time.Millisecond

type service struct {
	ratelimit.UnimplementedRateLimitServiceServer

	limiter throttle.Limiter
	key     string
	wait    time.Duration
}

// ShouldRateLimit draws for one request. Errors have codes: InvalidArgument for what is wrong with
// the request, Unavailable when the limiter is closed, Canceled when the caller has gone.
func (s *service) ShouldRateLimit(ctx context.Context, r *ratelimit.RateLimitRequest) (*ratelimit.RateLimitResponse, error) {
	tags, hits, err := s.read(r)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	l := s.limiterFor(tags)
	if throttle.Unlimited(l) {
		return s.response(r, l, nil), nil
	}
	wait, cancel := context.WithTimeout(ctx, max(s.wait, atOnce))
	defer cancel()
	permit, err := l.Acquire(wait, hits)
	denied, _ := errors.AsType[*throttle.Error](err)
	switch {
	case err == nil:
		permit.Settle(permit.N()) // Envoy never says when a request has ended
		return s.response(r, l, nil), nil
	case denied != nil && denied.Reason != throttle.ReasonClosed:
		return s.response(r, l, denied), nil
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return s.response(r, l, &throttle.Error{Reason: throttle.ReasonLimit, Cost: hits}), nil
	case ctx.Err() != nil:
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	return nil, status.Error(codes.Unavailable, "the limiter is closed")
}

// read returns the tags that a request names, each once, and how many tokens it draws.
func (s *service) read(r *ratelimit.RateLimitRequest) (tags []string, hits int, err error) {
	all := r.GetDescriptors()
	if len(all) == 0 || len(all) > maxDescriptors {
		return nil, 0, fmt.Errorf("descriptors has %d items, allowed: 1 to %d", len(all), maxDescriptors)
	}
	for i, d := range all {
		n := uint64(max(r.GetHitsAddend(), 1))
		if own := d.GetHitsAddend(); own != nil {
			n = own.GetValue()
		}
		if n > maxHits {
			return nil, 0, fmt.Errorf("descriptors[%d].hits_addend is %d, allowed: 0 to %d", i, n, maxHits)
		}
		hits = max(hits, int(n))
		tag := s.tag(d)
		if len(tag) > maxTag || !utf8.ValidString(tag) || strings.ContainsFunc(tag, unicode.IsControl) {
			return nil, 0, fmt.Errorf("descriptors[%d] gives the tag %.40q, allowed: up to %d bytes of text without control characters", i, tag, maxTag)
		}
		if tag != "" && !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	return tags, hits, nil
}

// tag returns the tag of a descriptor; empty for none.
func (s *service) tag(d *descriptor.RateLimitDescriptor) string {
	var values []string
	for _, e := range d.GetEntries() {
		switch s.key {
		case "":
			values = append(values, e.GetValue())
		case e.GetKey():
			return e.GetValue()
		}
	}
	return strings.Join(values, "/")
}

// limiterFor returns what a call with some tags draws from: of several tags, all have to agree.
func (s *service) limiterFor(tags []string) throttle.Limiter {
	return throttle.ForTags(s.limiter, tags...)
}

// response is the answer to a request; denied is why it was refused, nil if it was not.
func (s *service) response(r *ratelimit.RateLimitRequest, l throttle.Limiter, denied *throttle.Error) *ratelimit.RateLimitResponse {
	out := &ratelimit.RateLimitResponse{OverallCode: ratelimit.RateLimitResponse_OK}
	if denied != nil {
		out.OverallCode = ratelimit.RateLimitResponse_OVER_LIMIT
		out.ResponseHeadersToAdd = headers(denied)
	}
	for range r.GetDescriptors() {
		st := &ratelimit.RateLimitResponse_DescriptorStatus{Code: out.GetOverallCode(), CurrentLimit: limitOf(l)}
		if denied != nil && denied.RetryAfter > 0 {
			st.DurationUntilReset = durationpb.New(denied.RetryAfter)
		}
		out.Statuses = append(out.Statuses, st)
	}
	return out
}

// headers are what a refused request is told.
func headers(d *throttle.Error) []*core.HeaderValue {
	all := []*core.HeaderValue{{Key: "x-numathrottle-reason", Value: string(d.Reason)}}
	if d.Tag != "" {
		all = append(all, &core.HeaderValue{Key: "x-numathrottle-tag", Value: d.Tag})
	}
	if d.RetryAfter > 0 {
		all = append(all, &core.HeaderValue{Key: "retry-after", Value: apierror.RetryAfter(d.RetryAfter)})
	}
	return all
}

// units are the periods that the protocol has a name for.
var units = map[time.Duration]ratelimit.RateLimitResponse_RateLimit_Unit{
	time.Second:    ratelimit.RateLimitResponse_RateLimit_SECOND,
	time.Minute:    ratelimit.RateLimitResponse_RateLimit_MINUTE,
	time.Hour:      ratelimit.RateLimitResponse_RateLimit_HOUR,
	24 * time.Hour: ratelimit.RateLimitResponse_RateLimit_DAY,
}

// limitOf is the limit as the protocol has it; nil when it has no words for it.
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
