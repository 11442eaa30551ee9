package throttle

import (
	"context"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/waitqueue"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A laneChild is the limit of a tagView as a child of an All: a rateChild whose callers stand in the lane of the limiter's
// first tag.
type laneChild struct {
	rateChild
	l *tagView
}

var _ native = laneChild{}

func (c laneChild) Seat(n, least int, deadline time.Time) waiter {
	w := c.rateChild.Seat(n, least, deadline)
	w.Lane = c.l.first().lane
	return w
}

// newcomer returns a waiter that arrives now.
func (c laneChild) newcomer() *waiter {
	return &waiter{Age: waitqueue.Latest, Lane: c.l.first().lane}
}

func (c laneChild) NoteRefused(n int) {
	c.rateChild.NoteRefused(n)
	c.l.noteRefused(n)
}

func (c laneChild) CountWait(r Reason) {
	c.l.countWait(r)
	c.rateChild.CountWait(r)
}

func (c laneChild) CountRefusal(r Reason) {
	c.l.countRefusal(r)
	c.rateChild.CountRefusal(r)
}

func (c laneChild) why(n int) Reason { return c.l.reason(c.rateChild.why(n)) }

func (c laneChild) Refusal(w *waiter) limit.Refusal {
	r := c.rateChild.Refusal(w)
	r.Reason = c.l.reason(r.Reason)
	return r
}

func (c laneChild) Watch(ctx context.Context, r Reason, n int) (over func(n int, err error)) {
	return c.l.watch(ctx, r, n)
}

func (c laneChild) Refuse(r limit.Refusal) error { return c.l.errorOf(r) }

func (c laneChild) Ended(ctx context.Context, r limit.Refusal) error {
	return ended(ctx, c.l.errorOf(r))
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
	th, held := t.throttled(laneChild{rateChild{t}, l}.newcomer())
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
	st := l.t.Status()
	for _, g := range l.tags {
		g.within(&st)
	}
	if p, held := l.paused(); held && st.Paused == nil {
		st.Paused = &p
	}
	st.Pauses += l.t.tags.paused.Load()
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
	st.Rate = min(st.Rate, rate*g.t.tags.part)
	st.Lease.Ceiling = min(st.Ceiling(), rate) / st.Limit.Rate() * float64(st.Limit.Max)
	if !g.t.tags.pooled {
		st.Limit.Burst = min(st.Limit.Burst, int(burst))
	}
}

// throttled reports whether the tag lacks tokens for a draw of one.
func (g *tag) throttled() (Throttling, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := &waiter{N: 1, Least: 1, Age: waitqueue.Latest}
	if (stockChild{g}).AtHand(w) > 0 || g.t.gate.Closed.Load() {
		return Throttling{}, false
	}
	r := (stockChild{g}).Refusal(w)
	return Throttling{Reason: r.Reason, Limit: g.t.name, Tag: g.label(), Waiting: g.queue.Len, RetryAfter: r.RetryAfter}, true
}
