package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// The names of the pools are that of the vertex and one of these. A destination's name stands
// between the pool's and the last part.
const (
	rateSuffix        = "/rate"
	requestsSuffix    = "/requests"
	inFlightSuffix    = "/in-flight"
	destinationSuffix = "/to/"
	longestName       = 128 // of a destination
	longestPool       = 256 - len(destinationSuffix) - longestName - len(inFlightSuffix)
)

// limits is the limits over all requests, and those of each destination, which are
// opened when the first message goes there. It is a throttle.Tagger, whose tags are the
// destinations.
type limits struct {
	settings *settings
	log      *slog.Logger
	shared   throttle.Limiter // nil: no limit
	observe  func()           // of what shadow mode has let through

	mu      sync.Mutex
	rates   []*throttle.Throttle // in the order in which they were opened
	closers []func() error
	at      map[string]throttle.Limiter
}

var _ throttle.Tagger = (*limits)(nil)

// openLimits joins the pools that all requests share.
func openLimits(ctx context.Context, s *settings, log *slog.Logger, observe func()) (*limits, error) {
	l := &limits{settings: s, log: log, observe: observe, at: map[string]throttle.Limiter{}}
	rate, err := l.rate(ctx, rateSuffix, s.Limit)
	if err == nil {
		var requests, slots throttle.Limiter
		if requests, err = l.rate(ctx, requestsSuffix, throttle.Limit{Max: s.MaxRequests, Per: s.Limit.Per}); err == nil {
			if slots, err = l.slots(ctx, inFlightSuffix, s.InFlight); err == nil {
				l.shared = throttle.All(rate, throttle.PerCall(requests), throttle.PerCall(slots))
				return l, nil
			}
		}
	}
	return nil, errors.Join(err, l.close())
}

func (l *limits) config(suffix string) numathrottle.Config {
	c := l.settings.Pool
	c.Logger = l.log
	c.Pool += suffix
	return c
}

// rate joins the pool of a limit; nil for none.
func (l *limits) rate(ctx context.Context, suffix string, limit throttle.Limit) (throttle.Limiter, error) {
	if limit.Max == 0 {
		return nil, nil //nolint:nilnil // a nil Limiter is no limit
	}
	c := l.config(suffix)
	c.Limit = limit
	th, err := numathrottle.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	l.rates = append(l.rates, th)
	l.closers = append(l.closers, th.Close)
	return th, nil
}

func (l *limits) slots(ctx context.Context, suffix string, slots int) (throttle.Limiter, error) {
	if slots == 0 {
		return nil, nil //nolint:nilnil // as above
	}
	f, err := numathrottle.OpenInFlight(ctx, slots, l.config(suffix))
	if err != nil {
		return nil, err
	}
	l.closers = append(l.closers, f.Close)
	return f, nil
}

// limiter returns what a transport draws from.
func (l *limits) limiter() throttle.Limiter {
	s := l.settings
	if throttle.Unlimited(l.shared) && s.DestinationMax == 0 && s.DestinationInFlight == 0 {
		return nil
	}
	return l
}

// ForTag implements throttle.Tagger: it opens the limits of a destination.
func (l *limits) ForTag(destination string) throttle.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, known := l.at[destination]
	if !known && len(l.at) >= l.settings.Destinations {
		destination = ""
		at, known = l.at[destination]
	}
	if b, failed := at.(broken); !known || failed && time.Now().After(b.again) {
		at = l.open(destination)
		l.at[destination] = at
	}
	return at
}

// openTimeout bounds how long opening the limits of a destination may hold up others.
const openTimeout = 10 * time.Second

// open joins the pools of a destination. l.mu is held.
func (l *limits) open(destination string) throttle.Limiter {
	s := l.settings
	own, slots := throttle.Limiter(nil), throttle.Limiter(nil)
	if s.DestinationMax > 0 || s.DestinationInFlight > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
		defer cancel()
		name := destinationSuffix + poolName(destination)
		before, rates := len(l.closers), len(l.rates)
		var err error
		if own, err = l.rate(ctx, name+rateSuffix, throttle.Limit{Max: s.DestinationMax, Per: s.Limit.Per, Hard: s.Limit.Hard}); err == nil {
			slots, err = l.slots(ctx, name+inFlightSuffix, s.DestinationInFlight)
		}
		if err != nil {
			l.log.Error("the limits of a destination cannot be opened: its messages count as unavailable", "destination", destination, "error", err)
			for _, c := range l.closers[before:] {
				_ = c() // of a pool that was joined a moment ago
			}
			l.closers, l.rates = l.closers[:before], l.rates[:rates]
			return broken{&throttle.Error{Reason: throttle.ReasonStoreLost, Tag: destination, Cause: err}, time.Now().Add(openAgain)}
		}
	}
	all := throttle.All(l.shared, own, throttle.PerCall(slots))
	switch {
	case throttle.Unlimited(all):
		return all
	case s.Shadow:
		return shadow{all, l.observe}
	case s.LimitWait > 0:
		all = patient{all, s.LimitWait}
	}
	to := destined{Limiter: all}
	switch { // what a service says is for its own calls, and for those to no other
	case own != nil:
		to.told, _ = own.(listener)
	case slots != nil:
		to.told, _ = slots.(listener)
	case s.destKey == "":
		to.told, _ = l.shared.(listener)
	}
	return to
}

// A listener judges whether all pods should wait because one was told to.
type listener interface {
	Told(until time.Time, reason string)
}

// destined is the limits of a destination. What it says when it refuses a call, one of them is told.
type destined struct {
	throttle.Limiter

	told listener // nil: no limit is of this destination alone
}

// Told implements listener.
func (d destined) Told(until time.Time, reason string) {
	if d.told != nil {
		d.told.Told(until, reason)
	}
}

// Unwrap shows what the waits are for; see throttle.HoldBack.
func (d destined) Unwrap() throttle.Limiter { return d.Limiter }

// poolName is a destination's part of the name of its pools.
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

// Acquire implements throttle.Limiter.
func (l *limits) Acquire(ctx context.Context, n int) (throttle.Permit, error) {
	return l.ForTag("").Acquire(ctx, n)
}

// AcquireUpTo implements throttle.Limiter.
func (l *limits) AcquireUpTo(ctx context.Context, n int) (throttle.Permit, error) {
	return l.ForTag("").AcquireUpTo(ctx, n)
}

// TryAcquire implements throttle.Limiter.
func (l *limits) TryAcquire(n int) (throttle.Permit, bool) { return l.ForTag("").TryAcquire(n) }

// close leaves the pools. It is called when nothing draws any more.
func (l *limits) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, c := range slices.Backward(l.closers) {
		errs = append(errs, c())
	}
	l.closers = nil
	return errors.Join(errs...)
}

// A shadow holds nothing back, and observes what would have been.
type shadow struct {
	throttle.Limiter

	observe func()
}

// Acquire implements throttle.Limiter.
func (s shadow) Acquire(ctx context.Context, n int) (throttle.Permit, error) {
	if ctx.Err() != nil {
		return throttle.Permit{}, context.Cause(ctx)
	}
	p, ok := s.TryAcquire(n)
	if !ok {
		s.observe()
	}
	return p, nil
}

// A patient limiter bounds how long a draw waits.
type patient struct {
	throttle.Limiter

	wait time.Duration
}

// Unwrap shows what the waits are for; see throttle.HoldBack.
func (p patient) Unwrap() throttle.Limiter { return p.Limiter }

// Acquire implements throttle.Limiter.
func (p patient) Acquire(ctx context.Context, n int) (throttle.Permit, error) {
	bounded, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	permit, err := p.Limiter.Acquire(bounded, n)
	if err != nil && ctx.Err() == nil && !errors.Is(err, throttle.ErrThrottled) && !errors.Is(err, throttle.ErrClosed) {
		err = &throttle.Error{Reason: throttle.ReasonLimit, Cost: n, Cause: err}
	}
	return permit, err
}

// openAgain is how long a destination stays unavailable whose limits could not be opened.
const openAgain = 10 * time.Second

// A broken limiter grants nothing.
type broken struct {
	err   error
	again time.Time // when opening is tried again
}

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
