package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A joinFunc joins the pool of a limit, as numathrottle.Open does.
type joinFunc func(ctx context.Context, c numathrottle.Config) (*throttle.Throttle, error)

// pools are the pools joined for one purpose.
type pools struct {
	rates   []*throttle.Throttle
	closers []func() error
}

// leave leaves them in reverse order.
func (p pools) leave() error {
	var errs []error
	for _, c := range slices.Backward(p.closers) {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

// A destination holds the limits of one destination.
//
// Invariant: the fields after ready do not change once it is closed.
type destination struct {
	ready      chan struct{}    // closed when the limits are open, or cannot be opened
	own, slots throttle.Limiter // nil: none
	// limiter draws from these and from the shared ones; nil if those distinguish destinations, because their quotas may change.
	limiter throttle.Limiter
	again   time.Time // when to retry opening; zero: the limits are open
}

// stale reports whether opening the limits failed, some time ago.
func (d *destination) stale() bool {
	select {
	case <-d.ready:
		return !d.again.IsZero() && time.Now().After(d.again)
	default:
		return false
	}
}

const (
	// openTimeout bounds how long opening a destination's limits may delay its messages.
	openTimeout = 10 * time.Second
	// openAgain is how long a destination stays unavailable after opening its limits failed.
	openAgain = 10 * time.Second
)

// ForTag implements throttle.Tagger: it opens the limits of a destination, or waits while another call does. It does not delay other
// destinations.
func (l *limits) ForTag(name string) throttle.Limiter {
	d, limitsOf, first := l.find(name)
	if first {
		l.open(d, limitsOf)
	}
	<-d.ready
	if d.limiter == nil { // its quota counts, even if it shares its own limits with others
		return l.limiterFor(d, name)
	}
	return d.limiter
}

// find returns the limits of a destination, or the common ones of all without limits of their own, whose name is empty. first reports
// whether the caller must open them.
func (l *limits) find(name string) (d *destination, limitsOf string, first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d, known := l.at[name]
	if !known && len(l.at) >= l.settings.Destinations {
		name = ""
		d = l.at[name]
	}
	if d != nil && (l.closed || !d.stale()) {
		return d, name, false
	}
	d = &destination{ready: make(chan struct{})}
	if l.closed {
		d.limiter = broken{&throttle.Error{Reason: throttle.ReasonClosed, Tag: name}}
		close(d.ready)
		return d, name, false
	}
	l.at[name] = d
	return d, name, true
}

// open joins the pools of a destination.
func (l *limits) open(d *destination, name string) {
	defer close(d.ready)
	s := l.settings
	own, slots, err := l.joinFor(name)
	if err != nil {
		l.log.Error("the limits of a destination cannot be opened: its messages count as unavailable", "destination", name, "error", err)
		d.again = time.Now().Add(openAgain)
		d.limiter = broken{&throttle.Error{Reason: throttle.ReasonStoreLost, Tag: name, Cause: err}}
		if s.Shadow {
			d.limiter = shadow{d.limiter, l.observe}
		}
		return
	}
	d.own, d.slots = own, slots
	if l.shared == nil || !hook.TellsTags(l.shared) {
		d.limiter = l.limiterFor(d, name)
	}
}

// limiterFor returns the limiter of a destination: it draws from its own limits, and from the shared ones within its quota there.
func (l *limits) limiterFor(d *destination, name string) throttle.Limiter {
	s, shared := l.settings, l.shared
	if tags, ok := shared.(throttle.Tagger); ok && name != "" {
		shared = tags.ForTag(name)
	}
	all := throttle.All(shared, d.own, throttle.PerCall(d.slots))
	switch {
	case throttle.Unlimited(all):
		return all
	case s.Shadow:
		return shadow{all, l.observe}
	}
	waits := seated{all, all}
	if s.LimitWait > 0 {
		waits.Limiter = patient{all, s.LimitWait}
	}
	to := destined{Limiter: waits}
	switch { // a service's response applies to its own calls only
	case d.own != nil:
		to.reported, _ = d.own.(listener)
	case d.slots != nil:
		to.reported, _ = d.slots.(listener)
	case s.destKey == "":
		to.reported, _ = l.shared.(listener)
	}
	return to
}

// joinFor joins the pools of a destination, all or none.
func (l *limits) joinFor(name string) (own, slots throttle.Limiter, err error) {
	s := l.settings
	if s.DestinationMax == 0 && s.DestinationInFlight == 0 {
		return nil, nil, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	var joined pools
	pool := destinationSuffix + poolName(name)
	if own, err = l.rate(ctx, &joined, pool+rateSuffix, s.destinationLimit()); err == nil {
		slots, err = l.slots(ctx, &joined, pool+inFlightSuffix, s.DestinationInFlight)
	}
	if err != nil {
		_ = joined.leave() // of pools that were joined a moment ago
		return nil, nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rates = append(l.rates, joined.rates...)
	l.closers = append(l.closers, joined.closers...)
	return own, slots, nil
}

// A listener decides whether all pods should wait because one was asked to.
type listener interface {
	RetryAfter(until time.Time, reason string)
}

// destined is the limits of a destination. A refusal by it is reported to one of them.
type destined struct {
	throttle.Limiter

	reported listener // nil: no limit is exclusive to this destination
}

// RetryAfter implements listener.
func (d destined) RetryAfter(until time.Time, reason string) {
	if d.reported != nil {
		d.reported.RetryAfter(until, reason)
	}
}

// Unwrap exposes the reason for waits; see hook.ExternalWait.
func (d destined) Unwrap() throttle.Limiter { return d.Limiter }

// poolName returns the part of a pool's name for a destination.
func poolName(destination string) string {
	if destination == "" {
		return "others"
	}
	if len(destination) > longestName-len("others") || destination == "others" {
		sum := sha256.Sum256([]byte(destination))
		return "sha256-" + hex.EncodeToString(sum[:16])
	}
	return destination
}

// A broken limiter grants nothing.
type broken struct{ err error }

// Acquire implements throttle.Limiter.
func (b broken) Acquire(context.Context, int) (throttle.Permit, error) {
	return throttle.Permit{}, b.err
}

// AcquireUpTo implements throttle.Limiter.
func (b broken) AcquireUpTo(context.Context, int) (throttle.Permit, error) {
	return throttle.Permit{}, b.err
}

// TryAcquire implements throttle.Limiter.
func (broken) TryAcquire(int) (throttle.Permit, bool) { return throttle.Permit{}, false }
