package redisstore

import (
	"context"
	crand "crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// DefaultPrefix is what the names of all keys begin with, inside the braces.
const DefaultPrefix = "numathrottle"

// An Option changes how a Store works. A faulty one makes every Sync and Leave
// fail with a *driver.RequestError that names it.
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
// a *driver.RequestError. Allowed are whole milliseconds from 1ms to
// driver.MaxLease, which is the default.
func WithLongestLease(d time.Duration) Option {
	return func(s *Store) {
		if d < time.Millisecond || d > driver.MaxLease || d%time.Millisecond != 0 {
			s.refuse("WithLongestLease", d.String(), "whole milliseconds from 1ms to "+driver.MaxLease.String())
		}
		s.longest = d
	}
}

// WithDurable says that the server forgets nothing it has answered, not even when it
// is killed: a single server that writes every change to disk before it answers
// (appendonly yes, appendfsync always), with no replica that could take its place. Then a
// restart freezes no pool. Without it a server that was started again counts as one that
// may have forgotten something, because Redis does not tell. Every Store of the server and
// prefix must agree. If it is not true, the bound can break after a restart.
func WithDurable() Option { return func(s *Store) { s.life = crand.Text() } }

// clientTimeout bounds each step of a request: below the sync interval, so that a
// server that does not answer costs one sync.
const clientTimeout = 500 * time.Millisecond

// ClientOptions returns settings of the Redis client that suit a Store, for
// redis.NewUniversalClient: the address of a server, or those of several nodes of
// a Cluster; with MasterName set, those of the sentinels. Timeouts are 0.5 s, the
// deadline of a context is respected, and nothing is retried, for the next sync
// tells the server more than a repeat. The caller adds credentials and TLS.
func ClientOptions(addrs ...string) *redis.UniversalOptions {
	o := &redis.UniversalOptions{
		Addrs:                 addrs,
		DialTimeout:           clientTimeout,
		ReadTimeout:           clientTimeout,
		WriteTimeout:          clientTimeout,
		PoolTimeout:           clientTimeout,
		DialerRetries:         1,
		MaxRetries:            -1,
		ContextTimeoutEnabled: true,
		DisableIdentity:       true, // CLIENT SETINFO on each connection, which the ACL's log would show as denied
		// Asked for on each connection, and an error on servers that do not know them.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		dial := redis.NewDialer(&redis.Options{DialTimeout: o.DialTimeout, TLSConfig: o.TLSConfig})
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return unreachable{err}, nil //nolint:nilerr // it is told at the first use
		}
		return conn, nil
	}
	return o
}

// An unreachable is the connection to a server that could not be dialled: whatever
// is done with it fails with that error. The client's pool gives up dialling after
// some failures, and then looks only once a second whether the server is back; a
// connection that fails at its first use it just throws away.
type unreachable struct{ err error }

func (c unreachable) Read([]byte) (int, error)       { return 0, c.err }
func (c unreachable) Write([]byte) (int, error)      { return 0, c.err }
func (unreachable) Close() error                     { return nil }
func (unreachable) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (unreachable) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (unreachable) SetDeadline(time.Time) error      { return nil }
func (unreachable) SetReadDeadline(time.Time) error  { return nil }
func (unreachable) SetWriteDeadline(time.Time) error { return nil }
