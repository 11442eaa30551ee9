package whatif

import (
	"math"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/opening"
)

// A grain says for how many calls of a tag one draw may stand. That is for one, unless
//
//   - calls wait: then for those that come within a twentieth of the tag's wait, but at most for what the limit earns within a twentieth of the
//     shortest wait of all tags, or for a quarter of the burst. So no wait moves by more than that;
//   - there are more calls than draws may be made. Then a draw takes a quarter of the burst at most, so that calls that would not wait still
//     do not, or all of it if these were far too many draws.
type grain struct {
	perSecond float64 // draws of a tag, at most; Inf: each call draws for itself
	burst     float64 // tokens that a draw takes at most for that; Inf: any number
	limit     float64 // tokens a second
	quarter   float64 // of the burst of the limit
}

// waitPart is the part of a wait within which calls draw together.
const waitPart = 0.05

// newGrain returns the grain for about so many draws.
func newGrain(t *Traffic, conf *opening.Config, draws int64, burst int) grain {
	g := grain{perSecond: math.Inf(1), burst: math.Inf(1), limit: math.Inf(1), quarter: math.Inf(1)}
	if conf.Limit.Max > 0 {
		g.limit, g.quarter = conf.Limit.Rate(), float64(burst)/4
	}
	if t.calls() <= float64(draws) {
		return g
	}
	low, high := 0.0, maxRate
	for high-low > high/1000 {
		g.perSecond = (low + high) / 2
		if g.draws(t) > float64(draws) {
			high = g.perSecond
		} else {
			low = g.perSecond
		}
	}
	g.perSecond = high
	fine := g
	if fine.burst = g.quarter; fine.draws(t) <= 2*float64(draws) {
		return fine
	}
	return g
}

// draws returns how many draws are made if nobody waits.
func (g *grain) draws(t *Traffic) (sum float64) {
	for i := range t.Tags {
		minutes := t.Tags[i].Minutes
		for k := range minutes {
			sum += minutes[k].Rate * 60 / float64(g.calls(&minutes[k], 0, 0))
		}
	}
	return sum
}

// calls returns for how many calls a draw stands in a minute, while calls of the tag wait so long, and those of all tags for shortest at least.
func (g *grain) calls(m *Minute, wait, shortest time.Duration) int {
	n := min(math.Ceil(m.Rate/g.perSecond), g.burst/m.Cost)
	waiting := min(waitPart*wait.Seconds()*m.Rate, max(g.quarter, waitPart*shortest.Seconds()*g.limit)/m.Cost)
	return max(1, int(min(max(n, waiting), maxRate)))
}

// largestDraw returns the most tokens that calls of a tag draw together: no more than the limit can save up, for others would wait meanwhile.
func largestDraw(conf *opening.Config, burst int, tag string) float64 {
	if conf.Limit.Max == 0 {
		return math.Inf(1)
	}
	most := float64(burst)
	if _, q := conf.Quotas.Find(tag); q.Total > 0 {
		per := q.Per
		if per == 0 {
			per = max(conf.Limit.Per, time.Second)
		}
		most = min(most, max(float64(q.Burst), float64(q.Total)/per.Seconds()/2))
	}
	return most
}
