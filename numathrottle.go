package numathrottle

import (
	"context"

	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"

	// What the root package brings beside: drivers of all stores, exporters and the health server.
	_ "github.com/numaproj-contrib/numathrottle/pkg/open/nats"
	_ "github.com/numaproj-contrib/numathrottle/pkg/open/redis"
	_ "github.com/numaproj-contrib/numathrottle/pkg/open/telemetry"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

type (
	// A Policy is a way to divide the limit among the live processors of a pool.
	Policy = opening.Policy
	// A StoreLoss is what a processor does without the store, once its lease is over.
	StoreLoss = opening.StoreLoss
	// A Secret is a text that no print, log or marshaller shows.
	Secret = opening.Secret
)

const (
	// PolicyFair divides by demand: nobody gets more than it uses while somebody else lacks.
	PolicyFair = opening.PolicyFair
	// PolicyEven gives every processor the same share, as Numaflow does.
	PolicyEven = opening.PolicyEven
	// StoreLossDegrade goes on with the last share, but no more than an even one, for at most an hour.
	StoreLossDegrade = opening.StoreLossDegrade
	// StoreLossStop grants nothing until the store answers.
	StoreLossStop = opening.StoreLossStop
)

// FromEnv opens what NUMATHROTTLE_CONFIG and the variables NUMATHROTTLE_* say; see [open.FromEnv].
func FromEnv(ctx context.Context) (*throttle.Throttle, error) { return opening.FromEnv(ctx) }

// Load returns the configuration that [FromEnv] opens; see [open.Load].
func Load() (Config, error) {
	c, err := opening.Load()
	return Config(c), err
}

// Open joins the pool and returns the [throttle.Throttle] that draws on this processor's share. It does not wait for the store, except
// with [Config.FailFast]. Close the Throttle to leave the pool; see [open.Open].
func Open(ctx context.Context, c Config) (*throttle.Throttle, error) {
	return opening.Open(ctx, opening.Config(c))
}

// OpenInFlight is [Open] for a limit on calls in flight at once, 0 to 1e9; see [open.InFlight].
func OpenInFlight(ctx context.Context, slots int, c Config) (*throttle.InFlight, error) {
	return opening.InFlight(ctx, slots, opening.Config(c))
}

// OpenStore returns the store of c without joining a pool; see [open.Store].
func OpenStore(ctx context.Context, c Config) (driver.Store, error) {
	return opening.Store(ctx, opening.Config(c))
}

// NewSecret returns a [Secret] of text; see [open.NewSecret].
func NewSecret(text string) Secret { return opening.NewSecret(text) }

// StopContext returns a copy of parent that ends when this process is to stop; see [open.StopContext].
func StopContext(parent context.Context) (context.Context, context.CancelFunc) {
	return opening.StopContext(parent)
}
