package opening

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	limits "github.com/numaproj-contrib/numathrottle/internal/ceiling"
	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A plan records what a program would open with its settings: nothing is joined, and every limiter is without a limit. So the values of a
// changed file are computed by the code that opens the limits, whatever their settings are called.
type plan map[string]planned // by pool

// A planned is one limiter of a plan.
type planned struct {
	limit  throttle.Limit
	quotas throttle.Quotas
	slots  int
	static bool // it has no pool that a document could be in
	prices json.RawMessage
}

type planKey struct{}

// planOf returns the plan that Open fills in; nil: it opens.
func planOf(ctx context.Context) plan {
	p, _ := ctx.Value(planKey{}).(plan)
	return p
}

// Planning reports whether Open opens nothing and fills in a plan. A program of this module then opens nothing else either.
func Planning(ctx context.Context) bool { return planOf(ctx) != nil }

// add records a limiter. The error has the faults of its configuration.
func (p plan) add(c *Config, slots int, quotas throttle.Quotas) error {
	store, faults := c.check()
	if c.Limit.Max != 0 || slots != 0 {
		faults = append(faults, c.checkPool(&store)...)
		of := p[c.Pool]
		of.limit, of.quotas, of.slots, of.static = c.Limit, quotas, slots, store.Kind == config.Static
		p[c.Pool] = of
	}
	return config.Join(faults)
}

// PlanPrices says that the pool's program charges by these prices, in a form of its own that apply reads. A changed file replaces them. It
// is for a program of this module, before it opens the pool with the same ctx.
func PlanPrices(ctx context.Context, pool string, prices json.RawMessage, apply func(json.RawMessage)) {
	if p := planOf(ctx); p != nil {
		of := p[pool]
		of.prices = prices
		p[pool] = of
	} else if f := followerIn(ctx); f != nil {
		f.onPrices(pool, apply)
	}
}

// fileOf returns what a changed file says about a limiter that was opened as p. lasting are settings that count after a restart: the pool
// cannot take them from a document.
func (p *planned) fileOf(now *planned, f protocol.File) (of protocol.File, lasting []string) {
	of = f
	lasting = append(p.takeLimit(now, &of), p.takeQuotas(now, &of)...)
	of.Prices = now.prices
	if !of.Fits() && of.Quotas != nil {
		of.Quotas, lasting = nil, append(lasting, "quotas")
	}
	if !of.Fits() {
		of.Prices, lasting = nil, append(lasting, "prices")
	}
	return of, lasting
}

// takeLimit sets the limit of a file.
func (p *planned) takeLimit(now *planned, of *protocol.File) (lasting []string) {
	was, is := rateOf(p.limit), rateOf(now.limit)
	if was.Max == 0 || is.Max == 0 || p.static {
		if was != is {
			lasting = append(lasting, "max")
		}
		return lasting
	}
	if of.Max, of.Per = int(is.Max), is.Per; of.Validate() != nil {
		of.Max, of.Per = 0, 0
		lasting = append(lasting, "per")
	}
	if p.limit.Hard && was.Below(is) || (limits.Rate{Max: was.Max * limits.MaxRaise, Per: was.Per}).Below(is) {
		lasting = append(lasting, "max")
	}
	if p.limit.Burst > 0 && p.limit.Burst == now.limit.Burst && was.Below(is) {
		lasting = append(lasting, "burst") // it follows in proportion until then
	}
	return lasting
}

// takeQuotas sets the quotas of a file.
func (p *planned) takeQuotas(now *planned, of *protocol.File) (lasting []string) {
	switch given := now.quotas.Given(); {
	case p.static && !reflect.DeepEqual(p.quotas, now.quotas), given && !p.quotas.Given():
		return []string{"quotas"}
	case p.quotas.Given():
		q := now.quotas.WithDefaults(rateOf(now.limit).Per)
		of.Quotas = &q
	}
	return nil
}

// rateOf returns the rate of a limit with the default of its period.
func rateOf(l throttle.Limit) limits.Rate {
	if l.Max == 0 {
		return limits.Rate{}
	}
	if l.Per == 0 {
		l.Per = time.Second
	}
	return limits.Rate{Max: int64(l.Max), Per: l.Per}
}

// planBy runs a program's code for opening in a plan.
func planBy(ctx context.Context, open func(ctx context.Context) error) (p plan, err error) {
	defer func() {
		if r := recover(); r != nil { // settings that nobody has opened yet must not end a process that serves
			p, err = nil, fmt.Errorf("numathrottle: the settings cannot be opened: %v", r)
		}
	}()
	p = plan{}
	return p, open(context.WithValue(context.WithoutCancel(ctx), planKey{}, p))
}

// without returns keys without others.
func without(keys []string, others ...string) []string {
	return slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return slices.Contains(others, k) })
}
