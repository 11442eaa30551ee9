package throttle

import (
	"context"
	"errors"
	"time"
)

// A plumbing is what every limiter of this package can be connected to.
type plumbing struct {
	name      string
	tag       string
	sharer    Sharer
	clock     Clock // nil: the machine's
	observers []Observer
	maxTold   time.Duration // 0: DefaultMaxTold
	// onClose runs once, in order, when the limiter is closed.
	onClose  []func(context.Context) error
	audience *audience
}

// An Option sets one thing of a Throttle or an InFlight.
type Option func(*plumbing)

// WithSharer makes the limiter use the share of the limit that s leases to it.
// Without it the limiter uses the whole limit.
func WithSharer(s Sharer) Option { return func(p *plumbing) { p.sharer = s } }

// WithName names the limit in errors and status.
func WithName(name string) Option { return func(p *plumbing) { p.name = name } }

// WithTag says which tag the limiter is for, in errors and status: a tenant, a model, a
// destination inside the limit.
func WithTag(tag string) Option { return func(p *plumbing) { p.tag = tag } }

// OnClose adds something to do when the limiter is closed, after it has stopped
// granting and its waiters have failed: leaving the pool, closing the store.
// f gets a context that ends five seconds after Close began.
func OnClose(f func(context.Context) error) Option {
	return func(p *plumbing) { p.onClose = append(p.onClose, f) }
}

// WithClock makes the limiter go by c. Without it the limiter goes by the
// machine's monotonic clock, which is faster.
func WithClock(c Clock) Option { return func(p *plumbing) { p.clock = c } }

func newPlumbing(opts []Option) plumbing {
	p := plumbing{audience: &audience{}}
	for _, opt := range opts {
		opt(&p)
	}
	return p
}

// afterFunc calls f once d has passed on the limiter's clock.
func (p *plumbing) afterFunc(d time.Duration, f func()) Timer {
	if p.clock == nil {
		return time.AfterFunc(d, f)
	}
	return p.clock.AfterFunc(d, f)
}

// present is the time on the limiter's clock.
func (p *plumbing) present() time.Time {
	if p.clock == nil {
		return time.Now()
	}
	return p.clock.Now()
}

// closeTimeout bounds what Close does after the waiters have failed.
const closeTimeout = 5 * time.Second

// afterClose does what OnClose added.
func (p *plumbing) afterClose() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	var errs []error
	for _, f := range p.onClose {
		errs = append(errs, f(ctx))
	}
	return errors.Join(errs...)
}
