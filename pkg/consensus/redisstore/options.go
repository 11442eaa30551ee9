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

// DefaultPrefix is the default prefix of all key names, inside the braces.
const defaultPrefix = "numathrottle"

// An Option changes how a Store works. An invalid option makes every Sync and Leave fail with a *driver.RequestError that names it.
type Option func(*Store)

// WithPrefix sets the prefix of all key names, inside the braces: 1 to 128 bytes without braces and NUL. Stores with different prefixes
// share nothing. Defaults to DefaultPrefix.
func WithPrefix(prefix string) Option {
	return func(s *Store) {
		if prefix == "" || len(prefix) > 128 || strings.ContainsAny(prefix, "{}\x00") {
			s.refuse("WithPrefix", fmt.Sprintf("%.40q", prefix), "1 to 128 bytes without braces and NUL")
		}
		s.prefix = prefix
	}
}

// WithLogger sets the logger for warnings about a server that evicts keys. Defaults to slog.Default().
func WithLogger(logger *slog.Logger) Option {
	return func(s *Store) {
		if logger == nil {
			s.refuse("WithLogger", "nil", "a logger")
		}
		s.logger = logger
	}
}

// WithLongestLease lowers the longest lease allowed to the processors of the server's pools. A pool without memory is frozen for one and a
// half times that lease. Use it only if no processor with the same server and prefix has a longer lease. Requests with a longer lease fail
// with a *driver.RequestError. Allowed are whole milliseconds from 1ms to [driver.MaxLease], the default.
func WithLongestLease(d time.Duration) Option {
	return func(s *Store) {
		if d < time.Millisecond || d > driver.MaxLease || d%time.Millisecond != 0 {
			s.refuse("WithLongestLease", d.String(), "whole milliseconds from 1ms to "+driver.MaxLease.String())
		}
		s.longest = d
	}
}

// WithDurable says that the server loses no answered write, not even when it is killed. It must be a single server that writes every change
// to disk before it answers (appendonly yes, appendfsync always), without a replica that could take its place. Then a restart freezes no
// pool. Without WithDurable a restarted server counts as one that may have lost writes, because Redis does not report it. All Stores of the
// same server and prefix must agree. If it is not true, the bound can break after a restart.
func WithDurable() Option { return func(s *Store) { s.life = crand.Text() } }

// clientTimeout bounds each step of a request. It is below the sync interval, so a server that does not answer costs one sync.
const clientTimeout = 500 * time.Millisecond

// ClientOptions returns settings of the Redis client that suit a Store, for redis.NewUniversalClient. It takes the address of a server or of
// several nodes of a Cluster; with MasterName set, of the sentinels. Timeouts are 0.5 s, and context deadlines are respected. Nothing is
// retried: the next sync tells the server more than a repeat. The caller adds credentials and TLS.
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
		// Requested on each connection, and an error on servers that do not know them.
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

// An unreachable is the connection to a server that could not be dialled: every operation fails with that error. After some failed dials,
// the client's pool only checks once a second whether the server is back. But it just discards a connection that fails at its first use.
type unreachable struct{ err error }

func (c unreachable) Read([]byte) (int, error)       { return 0, c.err }
func (c unreachable) Write([]byte) (int, error)      { return 0, c.err }
func (unreachable) Close() error                     { return nil }
func (unreachable) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (unreachable) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (unreachable) SetDeadline(time.Time) error      { return nil }
func (unreachable) SetReadDeadline(time.Time) error  { return nil }
func (unreachable) SetWriteDeadline(time.Time) error { return nil }
