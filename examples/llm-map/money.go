package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/examples/llm-map/internal/chat"
	"github.com/numaproj-contrib/numathrottle/internal/program"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// This file keeps a budget in money. Each call draws its estimated cost from a limit in millionths of the currency, whose quota has the
// budget, and settles its real cost. A nil purse costs nothing. It is safe for concurrent use.

const moneySuffix = "/money"

// A purse holds the prices of calls and their budget.
type purse struct {
	prices  map[string]price
	budget  throttle.Limiter // nil: none
	refuse  bool             // a spent budget is reported at once
	spent   []metric.Float64Counter
	log     *slog.Logger
	closers []func() error
	addr    net.Addr // of the health server; nil without one

	mu    sync.Mutex
	until time.Time // the end of the window whose budget is spent, as logged
}

// openPurse joins the pool of the budget of valid settings; nil without prices.
func openPurse(ctx context.Context, s *settings, log *slog.Logger) (p *purse, err error) {
	if len(s.Prices) == 0 {
		return nil, nil //nolint:nilnil // nothing costs anything
	}
	p = &purse{prices: s.Prices, refuse: s.OnStop == resultOnStop, log: log}
	defer func() {
		if err != nil {
			_ = p.close() // an error here would hide the one that counts
		}
	}()
	places, err := program.OpenMeters(ctx, &s.Pool, log)
	if err != nil {
		return nil, err
	}
	p.closers, p.addr = append(p.closers, places.Close), places.Addr
	for _, place := range places.Providers {
		c, err := place.Meter("github.com/numaproj-contrib/numathrottle/examples/llm-map").Float64Counter("llm_map.cost",
			metric.WithDescription("What calls have cost by the prices, in their currency, by model"))
		if err != nil {
			return nil, err
		}
		p.spent = append(p.spent, c)
	}
	quotas := s.moneyQuotas()
	if !quotas.Given() {
		return p, nil
	}
	c := s.Pool
	c.Logger, c.Limit, c.Quotas = log, moneyLimit, quotas
	c.Pool += moneySuffix
	th, err := numathrottle.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	p.budget, p.closers = th, append(p.closers, th.Close)
	return p, nil
}

// close leaves the pool.
func (p *purse) close() error {
	if p == nil {
		return nil
	}
	var errs []error
	for _, end := range slices.Backward(p.closers) {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}

// estimate returns the maximum cost of a call to one of some deployments, in millionths.
func (p *purse) estimate(messages []chat.Message, deployments ...*deployment) int {
	if p == nil {
		return 0
	}
	most := int64(0)
	for _, d := range deployments {
		most = max(most, p.prices[d.settings.Model].of(d.promptTokens(messages), d.output()))
	}
	return int(min(most, int64(moneyLimit.Max)))
}

// errBudget: the budget is spent, and messages are answered at once.
var errBudget = errors.New("the budget is spent (budget)")

// soon is how long to wait for a permit before checking whether the budget is spent.
const soon = 30 * time.Second

// draw waits until so many millionths may be spent. Errors: errBudget, and those of throttle.Limiter.
func (p *purse) draw(ctx context.Context, cost int) (throttle.Permit, error) {
	if p == nil || p.budget == nil {
		return throttle.Permit{}, nil
	}
	for {
		short, cancel := context.WithTimeout(ctx, soon)
		permit, err := p.budget.Acquire(short, cost)
		cancel()
		e, refused := errors.AsType[*throttle.Error](err)
		switch {
		case err == nil, ctx.Err() != nil, errors.Is(err, throttle.ErrClosed), refused && e.Reason == throttle.ReasonTooLarge:
			return permit, err
		case refused && e.Reason == throttle.ReasonBudget:
			p.tell(e.RetryAfter)
			if p.refuse {
				return permit, errBudget
			}
			return p.budget.Acquire(ctx, cost)
		}
		if _, bounded := ctx.Deadline(); bounded {
			return p.budget.Acquire(ctx, cost) // its error says how long it would take
		}
	}
}

// tell logs once for each window that the budget is spent.
func (p *purse) tell(left time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Before(p.until) {
		return
	}
	p.until = now.Add(left)
	p.log.Error("the budget is spent: no call is sent until its window ends", "in", left.Round(time.Second).String())
}

// settle ends a draw with the real cost of the call to d.
func (p *purse) settle(permit throttle.Permit, drawn int, d *deployment, answer *chat.Answer, err error) {
	if p == nil {
		return
	}
	cost := drawn
	fault, isFault := errors.AsType[*chat.Fault](err)
	if isFault {
		answer = &fault.Answer
	}
	switch {
	case answer.Usage != nil:
		cost = int(min(p.prices[d.settings.Model].of(answer.Usage.Prompt, answer.Usage.Completion), int64(moneyLimit.Max)))
	case free(err):
		cost = 0
	}
	permit.Settle(cost)
	for _, c := range p.spent {
		c.Add(context.Background(), float64(cost)/millionths, metric.WithAttributes(attribute.String("model", d.settings.Model)))
	}
}

// free reports whether a call cost nothing: it was not sent, or was refused. A call without a response may have cost something.
func free(err error) bool {
	if _, unsent := errors.AsType[*unsentError](err); unsent {
		return true
	}
	if _, refused := errors.AsType[*httpthrottle.RefusedError](err); refused {
		return true
	}
	if _, hidden := errors.AsType[*hiddenError](err); hidden {
		return true
	}
	if status, ok := errors.AsType[*statusError](err); ok {
		return status.status < 500
	}
	fault, ok := errors.AsType[*chat.Fault](err)
	return ok && fault.Kind == chat.Provider && fault.Status/100 == 4
}

// spentOutcome returns the outcome of a message that must not wait for a spent budget.
func spentOutcome() outcome {
	return outcome{verdict: stop, code: "budget_spent", text: fmt.Sprint(errBudget), err: errBudget}
}
