package redisstore

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
)

// DefaultPrefix is what the names of all keys begin with, inside the braces.
const DefaultPrefix = "numathrottle"

// An Option changes how a Store works. A faulty one makes every Sync and Leave
// fail with a *consensus.RequestError that names it.
type Option func(*Store)

// WithPrefix sets what the names of all keys begin with, inside the braces: 1 to
// 128 bytes without braces. Stores with different prefixes share nothing. The
// default is DefaultPrefix.
func WithPrefix(prefix string) Option {
	return func(s *Store) {
		if prefix == "" || len(prefix) > 128 || strings.ContainsAny(prefix, "{}\x00") {
			s.refuse("WithPrefix", fmt.Sprintf("%.40q", prefix), "1 to 128 bytes without braces and NUL")
		}
		s.prefix = prefix
	}
}

// WithLogger sets where the store warns about a server that evicts keys. The
// default is slog.Default().
func WithLogger(logger *slog.Logger) Option {
	return func(s *Store) {
		if logger == nil {
			s.refuse("WithLogger", "nil", "a logger")
		}
		s.logger = logger
	}
}

// WithLongestLease lowers the longest lease that any processor of the server's
// pools may have, and with it the time for which a pool without a memory is frozen:
// one and a half times the lease. Right only when no processor that uses the same
// server and prefix has a longer one; requests with a longer lease are refused with
// a *consensus.RequestError. Allowed are whole milliseconds from 1ms to
// consensus.MaxLease, which is the default.
func WithLongestLease(d time.Duration) Option {
	return func(s *Store) {
		if d < time.Millisecond || d > consensus.MaxLease || d%time.Millisecond != 0 {
			s.refuse("WithLongestLease", d.String(), "whole milliseconds from 1ms to "+consensus.MaxLease.String())
		}
		s.longest = d
	}
}

// clientTimeout bounds each step of a request: below the sync interval, so that a
// server that does not answer costs one sync.
const clientTimeout = 500 * time.Millisecond

// ClientOptions returns settings of the Redis client that suit a Store, for
// redis.NewUniversalClient: the address of a server, or those of several nodes of
// a Cluster; with MasterName set, those of the sentinels. Timeouts are 0.5 s, the
// deadline of a context is respected, and nothing is retried, for the next sync
// tells the server more than a repeat. The caller adds credentials and TLS.
func ClientOptions(addrs ...string) *redis.UniversalOptions {
	return &redis.UniversalOptions{
		Addrs:                 addrs,
		DialTimeout:           clientTimeout,
		ReadTimeout:           clientTimeout,
		WriteTimeout:          clientTimeout,
		PoolTimeout:           clientTimeout,
		DialerRetries:         1,
		MaxRetries:            -1,
		ContextTimeoutEnabled: true,
		// Asked for on each connection, and an error on servers that do not know them.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}
