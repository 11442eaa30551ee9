package dataplane

import (
	"errors"
	"fmt"
	"time"
)

const (
	defaultConcurrency    = 500
	defaultDrainTimeout   = 20 * time.Second
	defaultMaxMessageSize = 64 << 20
)

// An Option changes how a stream is set up.
type Option func(*settings)

type settings struct {
	concurrency    int
	drainTimeout   time.Duration
	maxMessageSize int
	parallel       bool
}

// WithConcurrency sets how many messages may be in flight, at least 1. It is for
// unary map, stream map and transform: batches are as large as the caller makes
// them, one at a time, and reads of a source, too. Defaults to 500, as on the
// platform.
func WithConcurrency(n int) Option {
	return func(s *settings) { s.concurrency = n }
}

// WithDrainTimeout sets how long Close waits for messages in flight. 0 means no waiting. Defaults to 20 s, as on the platform.
func WithDrainTimeout(d time.Duration) Option {
	return func(s *settings) { s.drainTimeout = d }
}

// WithMaxMessageSize sets the largest gRPC message in bytes, both ways, at
// least 1. Defaults to 64 MiB, as in numaflow-go.
func WithMaxMessageSize(bytes int) Option {
	return func(s *settings) { s.maxMessageSize = bytes }
}

// WithParallelCalls lets the calls of a Source run in parallel: a read delays neither acknowledgements nor questions. By default they are
// serialised, as on the platform. The other kinds ignore it.
func WithParallelCalls() Option {
	return func(s *settings) { s.parallel = true }
}

func newSettings(opts []Option) (settings, error) {
	s := settings{
		concurrency:    defaultConcurrency,
		drainTimeout:   defaultDrainTimeout,
		maxMessageSize: defaultMaxMessageSize,
	}
	for _, opt := range opts {
		if opt != nil {
			opt(&s)
		}
	}
	return s, s.validate()
}

// validate returns every fault at once.
func (s settings) validate() error {
	var faults []error
	if s.concurrency < 1 {
		faults = append(faults, fmt.Errorf("concurrency is %d, must be at least 1", s.concurrency))
	}
	if s.drainTimeout < 0 {
		faults = append(faults, fmt.Errorf("drain timeout is %s, must not be negative", s.drainTimeout))
	}
	if s.maxMessageSize < 1 {
		faults = append(faults, fmt.Errorf("max message size is %d bytes, must be at least 1", s.maxMessageSize))
	}
	return errors.Join(faults...)
}
