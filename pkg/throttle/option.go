package throttle

import (
	"context"
	"log/slog"

	"github.com/numaproj-contrib/numathrottle/internal/gate"
)

// The options of a limiter.
type options struct {
	name      string
	sharer    Sharer
	observers []Observer
	common    gate.Options
	quotas    *Quotas
	log       *slog.Logger
}

// An Option sets one thing of a Throttle or an InFlight.
type Option func(*options)

// WithSharer makes the limiter use the share of the limit that s leases to it.
// Without it the limiter uses the whole limit.
func WithSharer(s Sharer) Option { return func(o *options) { o.sharer = s } }

// WithName names the limit in errors and status.
func WithName(name string) Option { return func(o *options) { o.name = name } }

// WithTag names the limiter's tag in errors and status: a tenant, a model, a destination inside the limit.
func WithTag(tag string) Option { return func(o *options) { o.common.Tag = tag } }

// OnClose adds a function to run when the limiter is closed, after it has stopped granting and its waiters have failed. It can leave the
// pool or close the store. The context of f ends five seconds after Close began.
func OnClose(f func(context.Context) error) Option {
	return func(o *options) { o.common.OnClose = append(o.common.OnClose, f) }
}

// WithClock makes the limiter use c. By default it uses the machine's monotonic clock, which is faster.
func WithClock(c Clock) Option { return func(o *options) { o.common.Clock = c } }

func newOptions(opts []Option) options {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	return o
}
