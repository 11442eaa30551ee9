package throttle

import (
	"context"
	"log/slog"

	"github.com/numaproj-contrib/numathrottle/internal/callmeter"
	"github.com/numaproj-contrib/numathrottle/internal/engine/gate"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// The options of every limiter.
type options struct {
	name      string
	sharer    Sharer
	observers []Observer
	common    gate.Options
	log       *slog.Logger

	concurrency int
	meter       *callmeter.Meter // nil: nobody measures
}

// The settings are what an Option can set.
type settings struct {
	options
	quotas *limit.Quotas // of a Throttle
}

// An Option sets one thing of a Throttle or an [InFlight].
type Option func(*settings)

// WithSharer makes the limiter use the share of the limit that s leases to it.
// Without it the limiter uses the whole limit.
func WithSharer(s Sharer) Option { return func(o *settings) { o.sharer = s } }

// WithName names the limit in errors and status.
func WithName(name string) Option { return func(o *settings) { o.name = name } }

// WithTag names the limiter's tag in errors and status: a tenant, a model, a destination inside the limit.
func WithTag(tag string) Option { return func(o *settings) { o.common.Tag = tag } }

// OnClose adds a function to run when the limiter is closed, after it has stopped granting and its waiters have failed. It can leave the
// pool or close the store. The context of f ends five seconds after Close began.
func OnClose(f func(context.Context) error) Option {
	return func(o *settings) { o.common.OnClose = append(o.common.OnClose, f) }
}

// withClock makes the limiter use c. By default it uses the machine's monotonic clock, which is faster.
func withClock(c clock) Option { return func(o *settings) { o.common.Clock = c } }

func newSettings(opts []Option) settings {
	var s settings
	for _, opt := range opts {
		opt(&s)
	}
	return s
}
