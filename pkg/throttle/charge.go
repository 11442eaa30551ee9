package throttle

import (
	"errors"

	"github.com/numaproj-contrib/numathrottle/internal/engine/join"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
)

// This file is for calls that draw nothing in advance, and whose cost is known afterwards.

// probe reports whether a draw of one token would be granted now, and draws nothing; nil means yes. Debt, pauses, quotas and waiting
// callers count as for a draw. A refusal is demand, like that of a draw. It never waits, and may be called from any goroutine.
//
// A Limiter of another package is looked through if it shows an inner one, by a method `Unwrap() Limiter` or by embedding. Otherwise probe
// asks its method Throttled, or makes a draw and cancels it.
//
// Errors: *Error, as from Acquire. Its RetryAfter is when one token could be granted as things stand.
func probe(l Limiter) error {
	children := reached(l, maxWraps)
	for i := range children {
		if p := &children[i]; p.Seat == nil {
			if err := probeOther(p.Limiter, p.Asks(1)); err != nil {
				return err
			}
		}
	}
	return probeNatives(children)
}

// reached returns the limiters that a draw from l reaches in the end. It looks through at most wraps layers of other packages' limiters.
func reached(l Limiter, wraps int) (children []child) {
	for _, p := range flatten(nil, l, nil) {
		inner, shows := insideOf(p.Limiter)
		if p.Seat != nil || !shows || wraps == 0 {
			children = join.Add(children, p)
			continue
		}
		for _, q := range reached(inner, wraps-1) {
			children = join.Add(children, q.Within(p.Cost()))
		}
	}
	return children
}

// insideOf returns the limiter that l embeds, or shows by a method `Unwrap() Limiter`.
func insideOf(l Limiter) (inner Limiter, shows bool) {
	if u, ok := l.(interface{ Unwrap() Limiter }); ok {
		return u.Unwrap(), true
	}
	if e, ok := l.(interface{ embedded() Limiter }); ok {
		return e.embedded(), true
	}
	return nil, false
}

func (t *Throttle) embedded() Limiter { return t }
func (f *InFlight) embedded() Limiter { return f }

func probeNatives(children []child) error {
	for i := range children {
		p := &children[i]
		if p.Seat == nil {
			continue
		}
		n := p.Asks(1)
		if r, never := p.Seat.Impossible(n); never {
			p.Seat.Owner.CountRefusal(r)
			return ownerOf(p).errorOf(sharing.Refusal{Reason: r, Cost: n})
		}
		if !p.Seat.Source.Peek(n) {
			return refuseProbe(ownerOf(p), n)
		}
	}
	return nil
}

// refuseProbe notes that n tokens were refused, and returns the reason.
func refuseProbe(s *seat, n int) error {
	l := s.Source
	l.NoteRefused(n, false)
	l.Lock()
	w := join.Newcomer(l, n)
	r := l.Refusal(&w)
	if wait, known := l.Due(&w); known {
		r.RetryAfter = max(r.RetryAfter, wait)
	}
	l.Unlock()
	s.CountRefusal(r.Reason)
	return s.errorOf(r)
}

func probeOther(l Limiter, n int) error {
	if t, ok := unwrapTo[interface{ Throttled() (Throttling, bool) }](l); ok {
		if th, held := t.Throttled(); held {
			return &Error{Reason: th.Reason, Limit: th.Limit, Tag: th.Tag, Cost: n, RetryAfter: th.RetryAfter, Frozen: th.Frozen}
		}
		return nil
	}
	p, ok := l.TryAcquire(n)
	if !ok {
		return &Error{Reason: ReasonLimit, Cost: n}
	}
	p.Cancel()
	return nil
}

// Charge books n tokens that a call used without a draw, at all limiters of l. Tokens that do not fit become debt, which later callers wait
// for, up to [Limit.MaxDebt]. Use it for a cost that is known only after the call. Slots of an [InFlight] and closed limiters are not charged.
// Charge never waits, and may be called from any goroutine.
//
// A Limiter of another package is looked through if it shows an inner one, by a method `Unwrap() Limiter` or by embedding. Without an
// inner one, Charge draws n tokens from it, or a single one that it settles with n. If both are refused, nothing is charged there, and the
// error is [ErrNotCharged].
//
// Errors: *Error, as from Acquire, of the limiters of this package before the charge, which does not prevent it; [ErrNotCharged]; both, joined. With
// n = 0 nothing is charged, and limiters of other packages are asked too.
func Charge(l Limiter, n int) error {
	if n <= 0 {
		return probe(l)
	}
	children := reached(l, maxWraps)
	err := probeNatives(children)
	if !book(children, min(n, maxTokens)) {
		return errors.Join(err, ErrNotCharged)
	}
	return err
}

// repay is hook.Repay.
func repay(l Limiter, n int) {
	if n > 0 {
		book(reached(l, maxWraps), -min(n, maxTokens))
	}
}

// ErrNotCharged says that a limiter of another package refused a charge; see Charge.
var ErrNotCharged = errors.New("numathrottle: a limiter that is not of package throttle cannot be charged")

// book books n tokens at all limiters; a negative n gives tokens back. It returns false if a limiter could not be charged.
func book(children []child, n int) bool {
	all, dropped := true, drops(nil)
	for i := range children {
		p := &children[i]
		switch price := min(p.Price(max(n, -n)), maxTokens); {
		case price <= 0:
		case p.Seat != nil && n > 0:
			of := p.Seat.Gate
			dropped.put(of, nativeOf(p).book(price, dropped[of]))
		case p.Seat != nil:
			nativeOf(p).book(-price, drop{})
		case n > 0 && !chargeOther(p.Limiter, price):
			all = false
		}
	}
	return all
}

func chargeOther(l Limiter, n int) bool {
	p, ok := l.TryAcquire(n)
	if !ok {
		p, ok = l.TryAcquire(1)
	}
	p.Settle(n) // the call is over: nothing is held
	return ok
}

func (t rateSource) book(n int, _ drop) drop {
	dropped := 0
	t.gate.Lock()
	if t.gate.Closed.Load() {
		t.gate.Unlock()
		return drop{}
	}
	now := t.gate.Now()
	t.level(now)
	if n > 0 {
		dropped = t.bucket.Charge(now, n)
	} else {
		n = -n
		n -= t.bucket.Repay(now, n)
		if !t.limit.Hard && !t.issuing() {
			t.bucket.Credit(now, n)
		}
		t.publish()
	}
	t.retime(now)
	t.serve(now)
	t.gate.Unlock()
	return t.droppedBy(t.gate.Tag, dropped)
}
