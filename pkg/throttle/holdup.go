package throttle

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/engine/waitqueue"
)

// holdUp returns what the limit holds callers back for; held is false if it does not. passed: all waiting callers are passed by others.
func (t *rateLimiter) holdUp() (own Throttling, held, passed bool) {
	if t.limit.Max == 0 {
		return own, false, false
	}
	th, held := t.throttled(&waiter{Age: waitqueue.Latest})
	t.gate.Lock()
	defer t.gate.Unlock()
	now := t.gate.Now()
	own = Throttling{Reason: th.Reason, Limit: t.name, Waiting: t.lined(), RetryAfter: th.RetryAfter, Frozen: th.Frozen, Paused: th.Paused}
	if first := t.head(); !held && first != nil {
		own.Reason, held, passed = t.reason(now, t.units(first)), true, true
	}
	own.Longest = time.Duration(t.gate.Waits.Held(now))
	if held {
		own.Owed = t.owedFor(now)
	}
	return own, held, passed
}
