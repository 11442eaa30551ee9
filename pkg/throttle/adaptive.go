package throttle

import (
	"fmt"
	"slices"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
)

// Adapts reports whether the limit follows the called service.
func (l Limit) Adapts() bool { return l.Max > 0 && l.Adaptive }

// adapts is hook.Adaptive.
func adapts(l Limiter) bool {
	if a, ok := unwrapTo[interface{ adapts() bool }](l); ok {
		return a.adapts()
	}
	a, ok := unwrapTo[interface{ Adapts() bool }](l)
	return ok && a.Adapts()
}

func (t *Throttle) adapts() bool { return t.limit.Adapts() }

func (j *multi) adapts() bool {
	return slices.ContainsFunc(j.Children, func(p child) bool { return adapts(p.Limiter) })
}

// ceilingConfig is hook.Ceiling: the form for the Sharer that computes the pool's ceiling. The limit must
// be valid; its defaults need not be filled in.
func (l Limit) ceilingConfig() ceiling.Config {
	if l.Max == 0 {
		return ceiling.Config{}
	}
	l = l.withDefaults()
	c := ceiling.Config{
		Limit: ceiling.Rate{Max: int64(l.Max), Per: l.Per}, Hard: l.Hard, Burst: int64(l.Burst),
		Ramps: l.Ramps(), Adapts: l.Adapts(), Reserved: int64(l.AdaptiveMin),
	}
	if l.Hard {
		c.Granted = l.perPeriod() / float64(l.Max)
	}
	if c.Ramps {
		c.Ramp = l.rampConfig()
	}
	return l.following.into(c)
}

// withAdaptiveDefaults fills in the default of AdaptiveMin. The default of Burst is already filled in.
func (l Limit) withAdaptiveDefaults() Limit {
	if l.Adapts() && l.AdaptiveMin == 0 {
		l.AdaptiveMin = max(1, l.Max/100, l.leastHard())
	}
	return l
}

// leastHard returns the lowest ceiling at which a hard limit's burst is worth a token; 0 for other limits. l has its defaults filled in.
func (l Limit) leastHard() int {
	if !l.Hard || l.Burst <= 0 {
		return 0
	}
	return (l.Max + l.Burst - 1) / l.Burst
}

// checkAdaptive reports errors in AdaptiveMin.
func (l Limit) checkAdaptive(bad func(field string, value any, allowed string)) {
	top := min(l.Max, maxTokens)
	if top < 1 {
		top = maxTokens // max is reported separately, or set elsewhere
	}
	d := l.withDefaults()
	switch {
	case l.AdaptiveMin < 0 || l.AdaptiveMin > top:
		bad("adaptiveMin", l.AdaptiveMin, "0 (a hundredth of max) to max")
	case l.AdaptiveMin > 0 && !l.Adaptive && l.Max > 0:
		bad("adaptiveMin", l.AdaptiveMin, "only with adaptive")
	case l.AdaptiveMin > 0 && l.AdaptiveMin < d.leastHard():
		bad("adaptiveMin", l.AdaptiveMin, fmt.Sprintf("at least max / burst with hard, which is %d: "+
			"the burst of a lower ceiling is not worth a token", d.leastHard()))
	}
}
