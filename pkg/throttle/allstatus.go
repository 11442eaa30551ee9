package throttle

import "time"

// This file is what an All tells of itself.

// Statuses returns what each limiter of the All is doing, if all of them are a *Throttle
// and a draw of n takes n tokens from each; otherwise nil: of slots, of weighed costs and of
// limiters of other packages a Status does not tell what a draw would get.
func (j *multi) Statuses() []Status {
	all := make([]Status, 0, len(j.children))
	for _, p := range j.children {
		if p.attached {
			continue
		}
		t, ok := p.limiter.(*Throttle)
		if l, tagged := p.limiter.(*tagView); tagged {
			t, ok = l.t, true
		}
		if !ok || len(p.costs) > 0 {
			return nil
		}
		all = append(all, t.Status())
	}
	return all
}

// Throttled tells whether a limiter holds callers back, as far as it can tell, and
// which one does so for longest. One that cannot say how long comes first.
func (j *multi) Throttled() (Throttling, bool) { return worstOf(j.children) }

// worstOf returns what holds callers back for longest.
func worstOf(children []child) (worst Throttling, held bool) {
	weight := func(t Throttling) time.Duration {
		switch {
		case t.Reason == ReasonClosed:
			return never
		case t.RetryAfter == 0:
			return never - 1
		}
		return t.RetryAfter
	}
	for _, p := range children {
		l, ok := unwrapTo[interface{ Throttled() (Throttling, bool) }](p.limiter)
		if !ok {
			continue
		}
		if t, ok := l.Throttled(); ok && (!held || weight(t) > weight(worst)) {
			worst, held = t, true
		}
	}
	return worst, held
}
