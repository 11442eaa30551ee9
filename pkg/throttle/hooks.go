package throttle

import (
	"context"

	"github.com/numaproj-contrib/numathrottle/internal/callmeter"
	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
	"github.com/numaproj-contrib/numathrottle/internal/hook"
)

func init() { //nolint:gochecknoinits // the way of internal/hook into this package
	hook.Adaptive = func(l any) bool { return adapts(limiterIn(l)) }
	hook.CountsCalls = func(l any) (string, bool) { return countsCalls(limiterIn(l)) }
	hook.Ceiling = func(l any) ceiling.Config { return l.(Limit).ceilingConfig() } //nolint:forcetypeassert,errcheck // as documented
	hook.WithClock = func(c any) any { return withClock(c.(clock)) }               //nolint:forcetypeassert,errcheck // as documented
	hook.Repay = func(l any, n int) { repay(limiterIn(l), n) }
	hook.Track, hook.Blame, hook.WithFallback = trackIn, blame, withFallback
	hook.ExternalWait = func(ctx context.Context, l any, tag string, n int) func(error) {
		return externalWait(ctx, limiterIn(l), tag, n)
	}
	hook.OnSettle = func(p any, f func(int) int) any { return onSettle(p.(Permit), f) } //nolint:forcetypeassert,errcheck // as documented
	hook.WithMeter = func(n int) any { return withMeter(n) }
	hook.Meters = func(l any) callmeter.Meters { return metersOf(limiterIn(l)) }
	hook.PodsWanted = func(l any) (float64, bool) { return podsWanted(limiterIn(l)) }
	hook.Announce = func(l any, tokens int64) { announce(limiterIn(l), tokens) }
	hook.Follow = func(l any, first int64) any { return follow(l.(Limit), first) } //nolint:forcetypeassert,errcheck // as documented
	hook.Refuse = func(l, e any) error { return refuse(limiterIn(l), e.(Error)) }  //nolint:forcetypeassert,errcheck // as documented
}

func limiterIn(l any) Limiter {
	in, _ := l.(Limiter) // nil stays nil
	return in
}
