package natsstore

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// Defaults of the options.
const (
	DefaultBucket   = "numathrottle"
	defaultMaxBytes = 16 << 20
)

const (
	minMaxBytes      = 64 << 10
	maxReplicas      = 5 // JetStream's own limit
	clusterReplicas  = 3
	maxBucketLetters = 128
)

// An Option changes how a Store works.
type Option func(*options)

type options struct {
	bucket   string
	replicas int // 0: depends on the servers
	maxBytes int64
	longest  time.Duration
	log      *slog.Logger
	connect  func(nats.Options) (*nats.Conn, error)
	faults   []error
}

// WithBucket sets the name of the key-value bucket: 1 to 128 letters, digits, "-" and "_". All processors of a pool use the same bucket.
// Defaults to [DefaultBucket].
func WithBucket(name string) Option {
	return func(o *options) {
		if len(name) > maxBucketLetters || !bucketName.MatchString(name) {
			o.fault("bucket", fmt.Sprintf("%.40q", name), fmt.Sprint("1 to ", maxBucketLetters, ` letters, digits, "-" and "_"`))
		}
		o.bucket = name
	}
}

var bucketName = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// WithConnect sets how the second connection is made, for a login that changes. Defaults to nats.Options.Connect.
func WithConnect(connect func(nats.Options) (*nats.Conn, error)) Option {
	return func(o *options) {
		if connect == nil {
			o.fault("connect", "nil", "a function")
		}
		o.connect = connect
	}
}

// WithReplicas sets how many servers keep a bucket that this Store makes: 1 to 5. It does not change an existing bucket. Defaults to 3 in a
// cluster of servers, else 1.
func WithReplicas(n int) Option {
	return func(o *options) {
		if n < 1 || n > maxReplicas {
			o.fault("replicas", fmt.Sprint(n), fmt.Sprint("1 to ", maxReplicas))
		}
		o.replicas = n
	}
}

// WithMaxBytes limits the size of a bucket that this Store makes, in bytes: 65536
// or more. JetStream reserves it on each server that keeps the bucket. A pool of a
// hundred processors takes about 15 KB. Defaults to DefaultMaxBytes (16 MiB).
func WithMaxBytes(n int64) Option {
	return func(o *options) {
		if n < minMaxBytes {
			o.fault("max bytes", fmt.Sprint(n), fmt.Sprint(minMaxBytes, " or more"))
		}
		o.maxBytes = n
	}
}

// WithLongestLease sets the longest lease of any processor of the bucket's pools: 1 ms to [driver.MaxLease]. If the store may have lost state
// of a pool, the pool freezes for one removal time of this lease. So a shorter lease lets new pools start sooner. Use it only if no
// processor of any pool in the bucket, of any program, has a longer lease. Requests with a longer lease fail with a *driver.RequestError.
// Defaults to [driver.MaxLease].
func WithLongestLease(d time.Duration) Option {
	return func(o *options) {
		if d < time.Millisecond || d > driver.MaxLease {
			o.fault("longest lease", d.String(), "1ms to "+driver.MaxLease.String())
		}
		o.longest = d
	}
}

// WithLogger sets the logger for a message when the Store makes a bucket, and for one warning about a bucket with other settings than it
// would choose. Defaults to slog.Default.
func WithLogger(l *slog.Logger) Option {
	return func(o *options) {
		if l == nil {
			o.fault("logger", "nil", "a *slog.Logger")
		}
		o.log = l
	}
}

func (o *options) fault(field, value, allowed string) {
	o.faults = append(o.faults, fmt.Errorf("natsstore: %s is %s, allowed: %s", field, value, allowed))
}

func newOptions(opts []Option) (*options, error) {
	o := &options{bucket: DefaultBucket, maxBytes: defaultMaxBytes, longest: driver.MaxLease, log: slog.Default(), connect: nats.Options.Connect}
	for _, opt := range opts {
		opt(o)
	}
	return o, errors.Join(o.faults...)
}
