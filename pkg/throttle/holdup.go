package throttle

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/engine/waitqueue"
)

// A HoldUp is the one cause that holds most callers back at one moment.
type HoldUp struct {
	// Reason is the cause, and Limit names the limiter.
	Reason Reason
	Limit  string
	// OfTag says that the cause is the quota or a pause of Tag, not the limit. Tag is empty for the quota of all tags without their own.
	// Tags counts the tags that hold callers for the reason; 0: not known. Tag is the one that holds most.
	OfTag bool
	Tag   string
	Tags  int
	// Waiting counts the callers that it holds; 0: it only refuses calls, or would. Longest is how long the first of them has waited. For
	// the limit itself, it is how long callers have waited there without a break. 0: not known.
	Waiting int
	Longest time.Duration
	// RetryAfter is when one token could be granted as things stand, Frozen the rest of the store's freeze; 0: not known, or not frozen.
	RetryAfter, Frozen time.Duration
	// Rate is the tag's total in tokens per second, if that is the cause; 0: it is another. Blocked says that the total is 0.
	Rate    float64
	Blocked bool
	// Owed is how long the share takes to earn the tokens used above draws; 0: nothing is owed, or not known.
	Owed time.Duration
	// Paused is the pause that holds callers back, if Reason is ReasonPause and the pause is of everything; else nil.
	Paused *Paused
}

// holdUp returns what the limit holds callers back for; held is false if it does not. passed: all waiting callers are passed by others.
func (t *rateLimiter) holdUp() (own HoldUp, held, passed bool) {
	if t.limit.Max == 0 {
		return own, false, false
	}
	th, held := t.throttled(&waiter{Age: waitqueue.Latest})
	t.gate.Lock()
	defer t.gate.Unlock()
	now := t.gate.Now()
	own = HoldUp{Reason: th.Reason, Limit: t.name, Waiting: t.lined(), RetryAfter: th.RetryAfter, Frozen: th.Frozen, Paused: th.Paused}
	if first := t.head(); !held && first != nil {
		own.Reason, held, passed = t.reason(now, t.units(first)), true, true
	}
	if own.Waiting > 0 {
		own.Longest = time.Duration(t.gate.Waits.Held(now))
	}
	if held {
		own.Owed = t.owedFor(now)
	}
	return own, held, passed
}

// HoldUp returns what holds calls back now; ok is false if nothing does.
func (f *InFlight) HoldUp() (h HoldUp, ok bool) {
	th, held := f.Throttled()
	h = HoldUp{Reason: th.Reason, Limit: th.Limit, Waiting: th.Waiting, RetryAfter: th.RetryAfter, Frozen: th.Frozen, Paused: th.Paused}
	if th.Waiting > 0 {
		h.Longest = time.Duration(f.gate.Waits.Held(f.gate.Now()))
	}
	return h, held
}
