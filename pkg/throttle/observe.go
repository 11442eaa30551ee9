package throttle

import (
	"context"
	"slices"
	"time"
)

// An Observer receives every call that waits, and nothing else: a draw whose tokens are at hand costs it nothing. Metrics and traces are
// built on it; package otelthrottle has one. Its methods may be called from any number of goroutines at once.
type Observer interface {
	// Waits is called when a call begins to wait, in the caller's goroutine and with its ctx, while no lock is held. If done is not nil, it
	// is called once in the same goroutine when the wait ends, with success or not.
	//
	// A call on an All waits at one limiter after the other, the scarcest each time. The observers of each such limiter receive its wait.
	Waits(ctx context.Context, w Wait) (done func(Waited))
}

// A Wait is a call that has to wait.
type Wait struct {
	// Limit and Tag name the limiter that it waits for; empty for none.
	Limit, Tag string
	// Reason says why it waits, as things stand when it begins.
	Reason Reason
	// Cost is the number of tokens asked for.
	Cost int
}

// Waited is how a wait ended.
type Waited struct {
	// For is how long it took.
	For time.Duration
	// N is the number of tokens granted. It is 0 if none were, or if the call goes on: to wait at another limiter of an All, or to draw
	// after a wait outside the limiter, such as for a service that asked to be left alone.
	N int
	// Err is the error of the call; nil if it does not fail.
	Err error
}

// WithObserver adds an observer of waiting calls.
func WithObserver(o Observer) Option {
	return func(p *settings) { p.observers = append(p.observers, o) }
}

// A waitSpan follows one wait, for the observers and for Track.
type waitSpan struct {
	began time.Time
	track *track
	done  []func(Waited)
}

// follow begins a waitSpan over a wait. No lock is held.
func (o *options) follow(ctx context.Context, w Wait) waitSpan {
	v := waitSpan{track: trackOf(ctx)}
	if v.track == nil && len(o.observers) == 0 {
		return v
	}
	v.began = time.Now()
	v.track.enter(v.began, Error{Reason: w.Reason, Limit: w.Limit, Tag: w.Tag, Cost: w.Cost})
	for _, observer := range o.observers {
		if done := observer.Waits(ctx, w); done != nil {
			v.done = append(v.done, done)
		}
	}
	return v
}

// end ends the waitSpan.
func (v *waitSpan) end(n int, err error) {
	if v.began.IsZero() {
		return
	}
	now := time.Now()
	v.track.leave(now)
	for _, done := range slices.Backward(v.done) {
		done(Waited{For: now.Sub(v.began), N: n, Err: err})
	}
	*v = waitSpan{}
}
