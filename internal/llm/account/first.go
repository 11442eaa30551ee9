package account

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A first is what a limit has when this process has its first share of it. A bucket for a day that begins empty would grant next to nothing for
// its first hours; one that begins full would grant a day's worth at each start.
type first struct {
	tokens int
	given  atomic.Bool
}

// firstOf returns the first tokens of a limit of so many a day, which saves up burst: an hour's worth, but at least ten.
func firstOf(amount, burst int) *first {
	const hours, least = 24, 10
	return &first{tokens: min(max(amount/hours, least), amount, burst)}
}

// give gives the tokens to l, by its share, once it has one: at least what its first call draws. They show as returned ones. It reports
// whether nothing is left to give.
func (f *first) give(l throttle.Limiter, drawn int) bool {
	if f == nil || f.given.Load() {
		return true
	}
	th, ok := l.(*throttle.Throttle)
	if !ok {
		return true
	}
	st := th.Status()
	share := st.Rate / st.Limit.Rate()
	if share > 0 && f.given.CompareAndSwap(false, true) {
		hook.Repay(th, max(int(float64(f.tokens)*min(share, 1)), drawn))
	}
	return share > 0
}

// give gives all first tokens that can be given, and reports whether none are left.
func (a *attempt) give() bool {
	all := true
	for i := range a.limits.parts {
		p := &a.limits.parts[i]
		all = p.first.give(p.limiter, a.drawn[i]) && all
	}
	return all
}

// giveLater gives first tokens while a call waits for them: one that came before the share would else wait for those of a day.
func (a *attempt) giveLater(ctx context.Context) {
	const often = 100 * time.Millisecond
	for again := time.NewTicker(often); ; {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
			if a.give() {
				return
			}
		}
	}
}
