package account

import (
	"sync/atomic"

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

// give gives the tokens to l, by its share, once it has one: at least what its first call draws. They show as returned ones.
func (f *first) give(l throttle.Limiter, drawn int) {
	if f == nil || f.given.Load() {
		return
	}
	th, ok := l.(*throttle.Throttle)
	if !ok {
		return
	}
	st := th.Status()
	if share := st.Rate / st.Limit.Rate(); share > 0 && f.given.CompareAndSwap(false, true) {
		hook.Repay(th, max(int(float64(f.tokens)*min(share, 1)), drawn))
	}
}
