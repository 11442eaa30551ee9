package natsstore

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// Defaults of the options.
const (
	DefaultBucket   = "numathrottle"
	DefaultMaxBytes = 16 << 20
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
	replicas int // 0: what suits the servers
	maxBytes int64
	longest  time.Duration
	log      *slog.Logger
	faults   []error
}

// WithBucket sets the name of the key-value bucket: 1 to 128 letters, digits, "-"
// and "_". All processors of a pool use the same bucket. Defaults to DefaultBucket.
func WithBucket(name string) Option {
	return func(o *options) {
		if len(name) > maxBucketLetters || !bucketName.MatchString(name) {
			o.fault("bucket", fmt.Sprintf("%.40q", name), fmt.Sprint("1 to ", maxBucketLetters, ` letters, digits, "-" and "_"`))
		}
		o.bucket = name
	}
}

var bucketName = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// WithReplicas sets how many servers keep a bucket that this Store makes: 1 to 5.
// A bucket that exists keeps what it has. Defaults to 3 where the servers are a
// cluster, else 1.
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

// WithLongestLease sets the longest lease that a processor of any pool in the
// bucket uses: 1 ms to driver.MaxLease. A pool of which the store may have forgotten something
// freezes for one removal time of this lease, so a shorter one lets new pools
// start sooner. It is right only if no processor of any pool in the bucket, of any
// program, uses a longer one. Requests with a longer lease are refused with a
// *driver.RequestError. Defaults to driver.MaxLease.
func WithLongestLease(d time.Duration) Option {
	return func(o *options) {
		if d < time.Millisecond || d > driver.MaxLease {
			o.fault("longest lease", d.String(), "1ms to "+driver.MaxLease.String())
		}
		o.longest = d
	}
}

// WithLogger sets where the Store tells that it has made a bucket, and warns once
// about one whose settings it would not have chosen. Defaults to slog.Default.
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
	o := &options{bucket: DefaultBucket, maxBytes: DefaultMaxBytes, longest: driver.MaxLease, log: slog.Default()}
	for _, opt := range opts {
		opt(o)
	}
	return o, errors.Join(o.faults...)
}
