package consensus

import (
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/duration"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// An Option sets one property of a Member.
type Option func(*options)

type options = protocol.JoinOptions

// WithID sets the processor's ID, unique among the live processors of the pool.
// Defaults to the host name, which is the pod's name on Kubernetes.
func WithID(id string) Option { return func(o *options) { o.Config.ID = id } }

// WithLease sets the lease to propose: [MinLease] to [MaxLease], in whole
// milliseconds. Defaults to [DefaultLease]. The pool's own lease counts: the first
// processor records it.
func WithLease(d time.Duration) Option { return func(o *options) { o.Config.Lease = d } }

// WithPolicy sets how the limit is divided. Defaults to Fair.
func WithPolicy(p Policy) Option { return func(o *options) { o.Config.Policy = protocol.Policy(p) } }

// WithOnStoreLoss sets what happens when the lease runs out because the store
// does not answer. Defaults to Degrade.
func WithOnStoreLoss(l StoreLoss) Option {
	return func(o *options) { o.Config.OnStoreLoss = protocol.StoreLoss(l) }
}

// WithLogger sets the logger for events that concern operators, each when it begins and when
// it ends. They include a frozen pool, failing syncs with their effect on draws, and a
// replaced member. A lasting loss of the store is repeated once a minute. Defaults to
// slog.Default.
func WithLogger(l *slog.Logger) Option { return func(o *options) { o.Logger = l } }

// WithFailFast makes Join fail when the first sync fails. A first sync that is not
// answered in time is retried for two seconds. Without this option Join returns at
// once, and the member keeps trying.
func WithFailFast() Option { return func(o *options) { o.FailFast = true } }

// Synced is the result of one sync.
type Synced struct {
	// Took is how long the store took, or how long the member waited for it.
	Took time.Duration
	// Err is why it failed; nil when the store answered.
	Err error
}

// WithOnSync adds a function that is called after every sync, except one that Leave cuts
// short. It runs in the member's background, in Join's goroutine for the first sync with
// [WithFailFast], or in Leave's for the last one. Calls do not overlap, and no sync begins
// before f returns. f may call View.
func WithOnSync(f func(Synced)) Option {
	return func(o *options) {
		o.OnSync = append(o.OnSync, func(took time.Duration, err error) { f(Synced{Took: took, Err: err}) })
	}
}

func newOptions(pool string, opts []Option) (*options, error) {
	o := &options{Config: protocol.ProcessorConfig{Pool: pool, Lease: DefaultLease}}
	for _, opt := range opts {
		opt(o)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Config.ID == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("consensus: no ID given and the host has no name: %w", err)
		}
		o.Config.ID = host
	}
	if l := o.Config.Lease; l < MinLease || l > MaxLease || l%time.Millisecond != 0 {
		return nil, &RequestError{Field: "Lease", Value: duration.Short(l), Allowed: fmt.Sprintf("%s to %s in whole milliseconds", MinLease, MaxLease)}
	}
	if err := driver.ValidateNames(pool, o.Config.ID, "incarnation"); err != nil {
		return nil, err
	}
	return o, nil
}
