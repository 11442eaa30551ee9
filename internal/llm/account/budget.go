package account

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// ErrBudget says that the budget in money is spent, and that its purse does not wait.
var ErrBudget = errors.New("the budget is spent (budget)")

const (
	// soon is how long to wait for a budget before checking whether it is spent.
	soon = 30 * time.Second
	// holdFor is how long a call holds tokens of its limits while it waits for those of a budget.
	holdFor = 5 * time.Second
)

// acquire waits until the budgets have something, draws from the limits, and then from the budgets. It holds tokens of no budget while it waits
// for the limits: else calls that wait would make a budget look spent. Errors: those of throttle.Limiter, and ErrBudget.
func (l *limiter) acquire(ctx context.Context, budgets, rest throttle.Limiter, n int) (permit, paid throttle.Permit, err error) {
	if throttle.Unlimited(budgets) {
		permit, err = rest.Acquire(ctx, n)
		return permit, paid, err
	}
	for {
		if paid, err = l.awaitBudgets(ctx, budgets); err != nil {
			return permit, paid, err
		}
		paid.Cancel()
		if permit, err = rest.Acquire(ctx, n); err != nil {
			return permit, paid, err
		}
		short, cancel := context.WithTimeout(ctx, holdFor)
		paid, err = budgets.Acquire(short, 1)
		cancel()
		if err == nil {
			return permit, paid, nil
		}
		permit.Cancel()
	}
}

// awaitBudgets draws from the budgets alone. A spent one is logged.
func (l *limiter) awaitBudgets(ctx context.Context, budgets throttle.Limiter) (throttle.Permit, error) {
	for {
		short, cancel := context.WithTimeout(ctx, soon)
		permit, err := budgets.Acquire(short, 1)
		cancel()
		e, refused := errors.AsType[*throttle.Error](err)
		switch {
		case err == nil, ctx.Err() != nil, errors.Is(err, throttle.ErrClosed), refused && e.Reason == throttle.ReasonTooLarge:
			return permit, err
		case refused && e.Reason == throttle.ReasonBudget:
			l.spent.tell(l.log, e)
			if p := l.config.Purse; p != nil && p.refuse && e.Limit == p.pool {
				return permit, ErrBudget
			}
			return budgets.Acquire(ctx, 1)
		}
		if _, bounded := ctx.Deadline(); bounded || refused && e.RetryAfter > soon {
			return budgets.Acquire(ctx, 1) // its error says how long it would take
		}
	}
}

// A spentLog logs spent budgets, once for each window. The zero spentLog is ready. It is safe for concurrent use.
type spentLog struct {
	mu    sync.Mutex
	until map[string]time.Time // the ends of the windows that were logged, by pool
}

func (s *spentLog) tell(log *slog.Logger, e *throttle.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Before(s.until[e.Limit]) {
		return
	}
	if s.until == nil {
		s.until = map[string]time.Time{}
	}
	s.until[e.Limit] = now.Add(e.RetryAfter)
	log.Error("the budget is spent: no call is sent until its window ends", "pool", e.Limit, "in", e.RetryAfter.Round(time.Second).String())
}
