package throttle

import (
	"github.com/numaproj-contrib/numathrottle/internal/engine/join"
	"github.com/numaproj-contrib/numathrottle/internal/engine/waitqueue"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
)

// A tagQueueSource is the limit of a tagView as a child of an All: a rateSource whose callers stand in the tag queue of the limiter's
// first tag.
type tagQueueSource struct {
	rateSource
	l   *tagView
	own seat
}

var (
	_ native                = (*tagQueueSource)(nil)
	_ join.LockFree[Permit] = (*tagQueueSource)(nil)
)

func (c *tagQueueSource) Part() part {
	return part{Source: c, Gate: &c.gate, Position: c.seat.Rank, TagQueue: c.l.first().tagQueue, Alone: c.queue.Alone, Soonest: c.soonestFor}
}

func (c *tagQueueSource) NoteRefused(n int, waited bool) {
	c.rateSource.NoteRefused(n, waited)
	c.l.noteRefused(n)
}

func (c *tagQueueSource) Why(n int) Reason { return c.l.reason(c.rateSource.Why(n)) }

func (c *tagQueueSource) Refusal(w *waiter) sharing.Refusal {
	r := c.rateSource.Refusal(w)
	r.Reason = c.l.reason(r.Reason)
	return r
}

func (c *tagQueueSource) book(n int, of drop) drop {
	c.l.set.plan.tick()
	return c.rateSource.book(n, of)
}

// Throttled reports whether a draw of one token of the limiter's tags would have to wait, and why.
func (l *tagView) Throttled() (Throttling, bool) {
	t, l := l.t, l.live()
	if p, held := l.paused(); held {
		th := Throttling{Reason: ReasonPause, Limit: t.name, Tag: l.label(), Paused: &p}
		th.RetryAfter, _ = l.pauseLeft()
		return th, true
	}
	for _, g := range l.tags {
		if th, held := g.throttled(); held {
			return th, true
		}
	}
	th, held := t.throttled(&waiter{Age: waitqueue.Latest, TagQueue: l.first().tagQueue})
	if held {
		th.Tag, th.Reason = l.label(), l.reason(th.Reason)
	}
	return th, held
}

// Status describes the Throttle as it is for the tags. Quotas below the limit lower its figures: Rate to the rate of the quotas here,
// Tokens to those in hand for the tags, and Lease.Ceiling to their total over the whole pool. Without a pool they lower Limit.Burst to the
// number that they can save up. Paused may be the pause of one of them, and Pauses counts those of all tags, too.
func (l *tagView) Status() Status {
	l = l.live()
	st := l.set.statusOf(l.t)
	for _, g := range l.tags {
		g.within(&st)
	}
	if p, held := l.paused(); held && st.Paused == nil {
		st.Paused = &p
	}
	st.Pauses += l.set.paused.Load()
	return st
}

// within lowers the figures of a Status to those that the tag's quota allows.
func (g *tag) within(st *Status) {
	if held := g.status().InHand; held >= 0 { // -1: nothing holds it
		st.Tokens = min(st.Tokens, float64(held))
	}
	q := g.quota()
	if q.Blocked && !q.Shadow {
		st.Rate = 0
	}
	if q.Total == 0 || q.Shadow {
		return
	}
	total, per, burst := q.Enforced()
	rate := float64(total) / per.Seconds()
	st.Rate = min(st.Rate, rate*g.set.part)
	st.Lease.Ceiling = min(st.Ceiling(), rate) / st.Limit.Rate() * float64(st.Limit.Max)
	if !g.set.pooled {
		st.Limit.Burst = min(st.Limit.Burst, int(burst))
	}
}

// throttled reports whether the tag lacks tokens for a draw of one.
func (g *tag) throttled() (Throttling, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := &waiter{N: 1, Least: 1, Age: waitqueue.Latest}
	if (tagBucketSource{g}).AtHand(w) > 0 || g.t.gate.Closed.Load() {
		return Throttling{}, false
	}
	r := (tagBucketSource{g}).Refusal(w)
	return Throttling{Reason: r.Reason, Limit: g.t.name, Tag: g.label, Waiting: g.queue.Len, RetryAfter: r.RetryAfter}, true
}
