package account

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/health"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/internal/llm/usage"
	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A Purse keeps a budget in money for one or several accounts. Each call draws its highest possible cost from a limit in millionths of the
// currency, whose quota has the budget, and settles its real cost. All methods may be called from any number of goroutines at once.
type Purse struct {
	list    atomic.Pointer[priceList]
	pool    string
	budget  throttle.Limiter // nil: none
	amount  int              // of a window, in millionths; 0: there are only those of tags
	quotas  throttle.Quotas
	refuse  bool // a spent budget is reported at once
	spent   []metric.Float64Counter
	log     *slog.Logger
	closers []func() error

	mu      sync.Mutex
	rest    int64           // millionths of a millionth that were spent and not settled yet
	unknown map[string]bool // models without a price, as logged
}

// A priceList has the rates of models.
type priceList struct {
	rates   map[string]rates
	dearest rates // of a model without a price
}

func listOf(prices map[string]Price) *priceList {
	l := &priceList{rates: map[string]rates{}}
	for model, price := range prices {
		r, d := price.rates(), l.dearest
		l.rates[model] = r
		l.dearest = rates{
			max(d.input, r.input), max(d.output, r.output), max(d.read, r.read), max(d.write, r.write), max(d.write1h, r.write1h), max(d.call, r.call),
		}
	}
	return l
}

// follow makes the purse charge by the prices of a changed settings file.
func (p *Purse) follow(ctx context.Context, pool string, prices map[string]Price) error {
	text, err := json.Marshal(prices)
	if err != nil {
		return err
	}
	opening.PlanPrices(ctx, pool, text, p.reprice)
	return nil
}

// reprice makes other prices count, from the next call on.
func (p *Purse) reprice(text json.RawMessage) {
	prices := map[string]Price{}
	if err := json.Unmarshal(text, &prices); err != nil || len(prices) == 0 {
		p.log.Warn("the prices of the changed settings file cannot be read: those before it stay")
		return
	}
	p.list.Store(listOf(prices))
	p.log.Info("calls are charged by the prices of the changed settings file", "models", len(prices))
}

// A Budget is an amount of money for each calendar window.
type Budget struct {
	Amount json.Number  `json:"amount"`
	Per    limit.Period `json:"per,omitempty"`
	Zone   string       `json:"zone,omitempty"`
}

// MoneySuffix is the suffix of the pool of a budget.
const MoneySuffix = "/money"

// Quotas returns the budget as quotas, for draws without a tag; none without an amount.
func (b Budget) Quotas() throttle.Quotas {
	if b == (Budget{}) {
		return throttle.Quotas{}
	}
	amount := parse(cmp.Or(b.Amount, "0"))
	of := throttle.Budget{Amount: amount, Per: cmp.Or(b.Per, limit.PeriodDay), Zone: b.Zone}
	return throttle.Quotas{Other: throttle.Quota{Budgets: []throttle.Budget{of}}}
}

// OpenPurse joins the pool of a budget, below that of c; nil without prices. tags are the budgets of tags, whose calls count in b, too. With
// refuse a draw from a spent budget fails with ErrBudget at once; else it waits for the end of the window.
func OpenPurse(
	ctx context.Context, c numathrottle.Config, prices map[string]Price, b Budget, tags throttle.Quotas, refuse bool, log *slog.Logger,
) (p *Purse, err error) {
	if len(prices) == 0 {
		return nil, nil //nolint:nilnil // nothing costs anything
	}
	p = NewPurse(prices, nil, refuse, log)
	defer func() {
		if err != nil {
			_ = p.Close() // an error here would hide the one that counts
		}
	}()
	places := &health.Meters{}
	if !opening.Planning(ctx) {
		if places, err = health.OpenMeters(ctx, c.HealthAddr, c.ID, log); err != nil {
			return nil, err
		}
	}
	p.closers = append(p.closers, places.Close)
	if c.MeterProvider != nil {
		places.Providers = append(places.Providers, c.MeterProvider)
	}
	for _, place := range places.Providers {
		counter, err := place.Meter(scope).Float64Counter("llm_map.cost",
			metric.WithDescription("What calls have cost by the prices, in their currency, by model"))
		if err != nil {
			return nil, err
		}
		p.spent = append(p.spent, counter)
	}
	c.Pool = c.Effective().Pool + MoneySuffix
	if err := p.follow(ctx, c.Pool, prices); err != nil {
		return nil, err
	}
	quotas := tags
	if of := b.Quotas(); of.Given() {
		quotas.Other = of.Other
	}
	if !quotas.Given() {
		return p, nil
	}
	c.Logger, c.Limit, c.Quotas, p.quotas = log, unbounded, quotas, quotas
	th, err := numathrottle.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	p.amount = int(min(parse(cmp.Or(b.Amount, "0")), math.MaxInt32))
	p.pool, p.budget, p.closers = c.Pool, th, append(p.closers, th.Close)
	return p, nil
}

// NewPurse returns a purse that draws from budget, in millionths; nil: it only counts. refuse is as of OpenPurse.
func NewPurse(prices map[string]Price, budget throttle.Limiter, refuse bool, log *slog.Logger) *Purse {
	p := &Purse{budget: budget, refuse: refuse, log: log, unknown: map[string]bool{}}
	p.list.Store(listOf(prices))
	return p
}

// Close leaves the pool.
func (p *Purse) Close() error {
	if p == nil {
		return nil
	}
	var errs []error
	for _, end := range p.closers {
		errs = append(errs, end())
	}
	p.closers = nil
	return errors.Join(errs...)
}

// moneyKind is the kind of a purse's limit.
const moneyKind profile.Kind = "money"

// part returns the purse as a limit of an account. Without a budget it only counts.
func (p *Purse) part() part {
	of := part{
		kind: moneyKind, key: budgetKey, max: p.amount, isBudget: true, pool: p.pool, limiter: throttle.All(), quotas: p.quotas,
		amount: (*Limits).moneyDrawn,
	}
	if p.budget != nil {
		of.limiter = p.budget
	}
	return of
}

// of returns the prices of a model. One without a price costs what the dearest does.
func (p *Purse) of(model string) rates {
	list := p.list.Load()
	if r, ok := list.rates[model]; ok {
		return r
	}
	const mostLogged = 100
	p.mu.Lock()
	first := !p.unknown[model] && len(p.unknown) < mostLogged
	if first {
		p.unknown[model] = true
	}
	p.mu.Unlock()
	if first && len(list.rates) > 0 {
		p.log.Warn("a model has no price, and counts as the dearest (prices)", "model", model)
	}
	return list.dearest
}

// moneyDrawn returns what a call may cost at most, in millionths.
func (l *Limits) moneyDrawn(c *Call) int {
	m := l.config.Purse.of(c.Model).most(l.estimate(c, profile.Of(profile.SelfHosted).Tokens))
	return int(min(m.up(), math.MaxInt32))
}

// price returns the exact cost of a call. A side that its usage lacks counts as estimated.
func (l *Limits) price(c *Call, u usage.Usage) money {
	e := l.estimate(c, profile.Of(profile.SelfHosted).Tokens)
	of := u
	least := e.Least
	if !u.HasInput {
		of.Input, least = 0, e.Prompt
	}
	of.Input += max(int(least)-of.Input-of.CacheWrites-of.CacheReads, 0)
	if !u.HasOutput {
		of.Output = int(e.Longest)
	}
	of.Output = int(min(int64(of.Output), e.Allowed))
	return l.config.Purse.of(c.Model).cost(of)
}

// sum returns a cost in millionths, with the fractions of earlier ones.
func (p *Purse) sum(m money) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	m.add(money{0, p.rest})
	p.rest = m.rest
	return int(min(m.whole, math.MaxInt32))
}

// note counts what a call has cost.
func (p *Purse) note(model string, m money) {
	for _, c := range p.spent {
		c.Add(context.Background(), (float64(m.whole)+float64(m.rest)/Millionths)/Millionths, metric.WithAttributes(attribute.String("model", model)))
	}
}
