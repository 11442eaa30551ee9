package open

import (
	"context"

	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

type (
	// A Config configures [Open]. The fields, with their defaults, are those of the Config of package numathrottle, which describes them.
	// The zero Config is no limit at all. Printing a Config in any way shows no secret.
	Config = opening.Config
	// A Secret is a text that no print, log or marshaller shows; see [NewSecret].
	Secret = opening.Secret
	// A Policy divides the limit among the live processors of a pool.
	Policy = opening.Policy
	// A StoreLoss is a processor's action without the store, once its lease is over.
	StoreLoss = opening.StoreLoss
)

// The policies.
const (
	// PolicyFair divides by demand: no processor gets more than it uses while another one lacks tokens.
	PolicyFair = opening.PolicyFair
	// PolicyEven gives every processor the same share, as Numaflow does.
	PolicyEven = opening.PolicyEven
)

// Actions without the store.
const (
	// StoreLossDegrade continues with the last share, but at most an even one, for at most an hour.
	StoreLossDegrade = opening.StoreLossDegrade
	// StoreLossStop grants nothing until the store answers.
	StoreLossStop = opening.StoreLossStop
)

// FromEnv is [Open] with the result of [Load]; see both. All faults are in one error, including faults of the files that Open reads.
func FromEnv(ctx context.Context) (*throttle.Throttle, error) { return opening.FromEnv(ctx) }

// Load reads the configuration from the YAML file named by NUMATHROTTLE_CONFIG, if set, and from the variables NUMATHROTTLE_*, which
// override the file. Numaflow's variables fill in the pool and the ID if they are not given. A user and password in the store's URL are
// moved to their fields. Settings that are not given keep their zero values.
//
// The error has a line for every fault: an invalid value, an unknown name, a name given twice. It shows no secret. Variables that
// Kubernetes sets for a Service whose name begins with "numathrottle" do not count as settings.
func Load() (Config, error) {
	return opening.Load()
}

// Open joins the pool and returns the Throttle that draws on this processor's share. It does not wait for the store. Until the store has
// answered, the Throttle grants nothing, and Throttled says why. Open's logger gets a message when that begins, once a minute, and when it
// ends. With FailFast Open waits for the first answer, for two to three seconds, and fails without it. ctx bounds only Open. Open is safe
// for concurrent use.
//
// Close the Throttle after everything that draws has stopped. Close leaves the pool, so that the others have its share at once, closes the
// connection, and sends the last metrics. It takes at most about six seconds.
//
// Open returns an error with a line for every fault of the configuration and its files, as Validate does. It also fails for an unavailable
// HealthAddr, an unknown exporter in OTEL_*, or with FailFast with the reason why the store did not answer. No error shows a secret.
func Open(ctx context.Context, c Config) (*throttle.Throttle, error) {
	return opening.Open(ctx, c)
}

// InFlight is Open for a limit on concurrent calls in flight. It joins the pool and returns the InFlight with this processor's share of
// slots, 0 to 1e9. With 0 there is no limit, and no store is used. An InFlight needs its own pool, besides the pools of the rate limits
// that it is combined with ([throttle.All]):
//
//	requests, err := open.Open(ctx, c)
//	c.Limit, c.Quotas, c.Pool = throttle.Limit{}, throttle.Quotas{}, c.Pool+"/in-flight"
//	slots, err := open.InFlight(ctx, 32, c)
//
// Unlike Open, it requires a zero c.Limit and c.Quotas. slots should be several times the number of processors; see [throttle.InFlight].
func InFlight(ctx context.Context, slots int, c Config) (*throttle.InFlight, error) {
	return opening.InFlight(ctx, slots, c)
}

// Store returns the store of c without joining a pool, for package operate: to inspect or change
// pools from outside. It needs a store that processes share, Redis or NATS, and uses only that, its credentials and Logger from c. It
// does not wait for the server: the first call does. Errors of the store's methods show no secret. The store is safe for concurrent use.
// Close it after the last use.
//
// The error has a line for every fault of the configuration and its files, as that of Validate.
func Store(ctx context.Context, c Config) (driver.Store, error) {
	return opening.Store(ctx, c)
}

// NewSecret returns a Secret of text, without one line end (\n or \r\n) after it, which is never part of a secret. The Secret of an empty
// text is not set. Other control characters are a fault of the configuration.
func NewSecret(text string) Secret {
	return opening.NewSecret(text)
}

// StopContext returns a copy of parent that ends when this process should stop: with SIGINT, SIGTERM, or when the pod is being stopped. For
// the latter, `numathrottle stop-notice` must run in a container of the pod's spec.sidecars. Pass the copy to the Start of a numaflow-go
// server.
//
// Without that container, Kubernetes 1.29 and later signals a handler only after Numaflow's own container has ended, which waits for the
// handler. A message that waits for tokens without an end is then killed with the pod after 30 s.
//
// StopContext looks for the notice five times a second, in the folder named by NUMATHROTTLE_STATE_DIR, by default /var/run/numaflow in a
// Numaflow pod. Without such a folder it does not look. The returned function stops looking and ends the context.
func StopContext(parent context.Context) (context.Context, context.CancelFunc) {
	return opening.StopContext(parent)
}
