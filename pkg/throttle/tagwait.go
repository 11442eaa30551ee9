package throttle

import (
	"context"
	"slices"

	"github.com/numaproj-contrib/numathrottle/internal/engine/tagbucket"
)

// Acquire waits until n tokens of the tags and of the limit are granted; see Limiter and Throttle.Acquire.
//
// Errors are those of Throttle.Acquire, with ReasonQuota, ReasonBudget, ReasonClass, and ReasonPause for a pause of the tag.
func (l *tagView) Acquire(ctx context.Context, n int) (Permit, error) {
	if n > 0 && ctx.Err() == nil {
		l.set.plan.tick()
		if p, v, _ := l.draw(n, l.t.gate.Now(), true); v == taken {
			return p, nil
		}
	}
	return l.wait(ctx, n, false)
}

// AcquireUpTo waits until at least one token is granted; see Limiter and Throttle.AcquireUpTo.
func (l *tagView) AcquireUpTo(ctx context.Context, n int) (Permit, error) {
	l.set.plan.tick()
	return l.wait(ctx, min(n, maxTokens), true)
}

// wait waits for all that the draw needs, or for the limit alone while nothing else may hold it back.
func (l *tagView) wait(ctx context.Context, n int, upTo bool) (Permit, error) {
	l = l.live()
	l.pin()
	defer l.unpin()
	came := uint64(0)
	if n == 0 {
		return acquireAll(ctx, l.all(), 0, upTo)
	}
	if n < 0 || ctx.Err() != nil || !l.isBarred() {
		if p, over, err := l.t.atOnce(ctx, n, upTo); over {
			return p, l.own(n, err)
		}
		w, err := l.waitInTagQueue(ctx, n, upTo)
		switch {
		case err != nil:
			return Permit{}, l.own(n, err)
		case !w.Dismissed:
			return l.take(w.Permit), nil
		}
		came = w.Age
	}
	g, err := l.all().Wait(ctx, n, upTo, came)
	if err != nil {
		return Permit{}, err
	}
	l.spent(g.N)
	p, _ := permitOf(g)
	return p, nil
}

// waitInTagQueue waits for the limit alone. If something else begins to hold the tags, the caller is dismissed, and goes on like a later one
// by its age.
func (l *tagView) waitInTagQueue(ctx context.Context, n int, upTo bool) (*waiter, error) {
	t := l.t
	w := t.newWaiter(ctx, n, upTo)
	w.TagQueue, w.Held = l.first().tagQueue, l.barred
	if err := t.enqueue(w); err != nil {
		return nil, err
	}
	select {
	case <-w.Ready:
	default:
		l.await(ctx, w)
	}
	return w, w.Err
}

// await waits until w has been served, has failed or was dismissed.
func (l *tagView) await(ctx context.Context, w *waiter) {
	v := l.t.follow(ctx, l.waitFor(w.Reason, w.N))
	over := l.waitsInTagQueue(w.N, w.Reason)
	l.t.stand(ctx, w)
	over()
	v.end(w.Permit.n, w.Err)
}

// take turns a permit drawn from the limit alone into one of the tags.
func (l *tagView) take(p Permit) Permit {
	at, ok := p.by.(*page)
	if !ok {
		return p
	}
	var room [maxTagsOfDraw]tagBucketOrigin
	draws := room[:0]
	now := l.t.gate.Now()
	for _, g := range l.tags {
		g.mu.Lock()
		d, ok := g.tagBucket.Take(now, int64(p.n))
		if !ok { // it has got a quota meanwhile
			g.tagBucket.Owe(now, int64(p.n))
			d = &tagbucket.Draw{}
		}
		g.used.Add(int64(p.n))
		g.calls++
		if g == l.first() {
			g.pace.spend(now, p.n)
		}
		g.serve(now) // a waiter woken for tokens that are gone needs a new timer
		g.mu.Unlock()
		draws = append(draws, d)
	}
	p.by = l.cell(at, draws)
	return p
}

// own turns an error of the limit alone into one of the limiter, for a draw of n tokens.
func (l *tagView) own(n int, err error) error {
	e, ok := err.(*Error) //nolint:errorlint // the limit's own
	if !ok {
		return err
	}
	if e.Reason != ReasonClosed && e.Reason != ReasonTooLarge {
		l.noteRefused(n)
	}
	e.Tag, e.Reason = l.label(), l.reason(e.Reason)
	l.countRefusal(e.Reason)
	return e
}

// isBarred reports whether something else than the limit may hold draws back: a tag may lack tokens of its own, or is paused.
func (l *tagView) isBarred() bool {
	if slices.ContainsFunc(l.tags, func(g *tag) bool { return g.holds.Load() }) {
		return true
	}
	_, paused := l.paused()
	return paused
}
