package throttle

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/waitqueue"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A HoldUp is the one cause that holds most callers back at one moment.
type HoldUp struct {
	// Reason is the cause, and Limit names the limiter.
	Reason Reason
	Limit  string
	// OfTag says that the cause is the quota or a pause of Tag, not the limit. Tag is empty for the quota of all tags without their own.
	OfTag bool
	Tag   string
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

// HoldUp returns what holds callers back now; ok is false if nothing does. Unlike Throttled it covers all tags: if the limit has tokens and
// a tag has used its total, it reports the tag.
func (t *Throttle) HoldUp() (h HoldUp, ok bool) {
	if t.limit.Max == 0 {
		return h, false
	}
	worst, some := t.worst()
	th, held := t.throttled(&waiter{Age: waitqueue.Latest})
	t.gate.Lock()
	defer t.gate.Unlock()
	now := t.gate.Now()
	own := HoldUp{Reason: th.Reason, Limit: t.name, Waiting: th.Waiting, RetryAfter: th.RetryAfter, Frozen: th.Frozen, Paused: th.Paused}
	passed := false
	if first := t.head(); !held && first != nil {
		passed = true
		own.Reason, own.Waiting, held = t.reason(now, t.units(first)), t.queue.Len, true
	}
	if own.Waiting > 0 {
		own.Longest = time.Duration(t.gate.Waits.Held(now))
	}
	if some && t.tagHolds(own, held && !passed, worst) {
		told := worst.told(now)
		return HoldUp{
			Reason: worst.reason, Limit: t.name, OfTag: true, Tag: worst.name, Waiting: worst.callers, RetryAfter: worst.retry,
			Longest: told.Longest, Rate: told.Rate, Blocked: told.Blocked,
		}, true
	}
	if held {
		own.Owed = t.owedFor(now)
	}
	return own, held
}

// worst returns the tag that holds most callers, with when it would grant one token; ok reports whether there is one.
func (t *Throttle) worst() (worst hold, ok bool) {
	if worst, ok = t.tags.worst(); ok && worst.tag != nil && worst.retry == 0 {
		if th, held := worst.tag.throttled(); held {
			worst.retry = th.RetryAfter
		}
	}
	return worst, ok
}

// told returns what operators see of a tag that holds callers back.
func (h *hold) told(now int64) limit.Hold {
	told := limit.Hold{Callers: h.callers}
	if h.callers > 0 && h.since > 0 {
		told.Longest = time.Duration(now - h.since)
	}
	if h.reason == ReasonBudget {
		told.Left = h.retry
	}
	if h.tag != nil && h.reason == ReasonQuota {
		q := h.tag.quota()
		if told.Blocked = q.Blocked; q.Per > 0 {
			told.Rate = float64(q.Total) / q.Per.Seconds()
		}
	}
	return told
}

// tagHolds reports whether a tag, rather than the limit described by own, holds back most callers.
func (t *Throttle) tagHolds(own HoldUp, held bool, worst hold) bool {
	if held && own.Reason != ReasonLimit && own.Reason != ReasonAdaptive {
		return false // a pause, or no share: nobody gets anything
	}
	if worst.callers != own.Waiting {
		return worst.callers > own.Waiting
	}
	return worst.callers == 0 && worst.refused > 0 && worst.refused >= t.tags.limited.Load()
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
