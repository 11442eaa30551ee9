package throttle

import "time"

// This file reports the state of an All.

// Statuses returns the status of each limiter of the All. It returns nil unless each is a *Throttle and a draw of n takes n tokens from
// each. For slots, weighed costs and limiters of other packages, a Status does not show what a draw would get.
func (j *multi) Statuses() []Status {
	all := make([]Status, 0, len(j.Children))
	for _, p := range j.Children {
		if p.Attached {
			continue
		}
		t, ok := p.Limiter.(*Throttle)
		if l, tagged := p.Limiter.(*tagView); tagged {
			t, ok = l.Unwrap().(*Throttle)
		}
		if !ok || p.Weighed() {
			return nil
		}
		all = append(all, t.Status())
	}
	return all
}

// Throttled reports whether a limiter holds callers back, as far as it is known, and which one does so longest. A closed limiter comes
// first, then one that cannot say how long.
func (j *multi) Throttled() (Throttling, bool) { return worstOf(j.Children) }

// worstOf returns the throttling that lasts longest.
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
		l, ok := unwrapTo[interface{ Throttled() (Throttling, bool) }](p.Limiter)
		if !ok {
			continue
		}
		if t, ok := l.Throttled(); ok && (!held || weight(t) > weight(worst)) {
			worst, held = t, true
		}
	}
	return worst, held
}
