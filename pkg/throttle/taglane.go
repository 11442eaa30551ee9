package throttle

import (
	"context"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/limit"
	"github.com/numaproj-contrib/numathrottle/internal/waitqueue"
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
	w.Lane = &c.l.first().lane
	return w
}

// newcomer is someone who comes now.
func (c laneChild) newcomer() *waiter {
	return &waiter{Age: waitqueue.Latest, Lane: &c.l.first().lane}
}

func (c laneChild) NoteRefused(n int) {
	c.rateChild.NoteRefused(n)
	c.l.noteRefused(n)
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

// Throttled tells whether a draw of one token of the limiter's tags would have to wait, and why.
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

// Status returns what the Throttle is doing, with the Rate of the tags: what their quotas earn here, if that is less than what the
// share does.
func (l *tagView) Status() Status {
	l = l.live()
	st := l.t.Status()
	for _, g := range l.tags {
		if q := g.quota(); q.Total > 0 && !q.Shadow {
			total, per, _ := q.Enforced()
			st.Rate = min(st.Rate, float64(total)/per.Seconds()*l.t.tags.part)
		}
	}
	return st
}

// throttled tells whether the tag lacks tokens for a draw of one.
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
