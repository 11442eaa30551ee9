package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// groups is the number of hash tags that the pools are spread over. All processors must agree on it, because it determines the key names.
const groups = 16

// A Store keeps pools in Redis. It is safe for concurrent use. Each method blocks for at most one round trip (two if the server does not
// know the script yet), and returns when its context ends if the client has ContextTimeoutEnabled.
type Store struct {
	client  redis.UniversalClient
	prefix  string
	logger  *slog.Logger
	longest time.Duration
	life    string // durable: name for the data's life if it has none yet
	fault   error  // a *driver.RequestError of the first invalid option
	// policyReported is set once a server has reported its eviction policy.
	policyReported atomic.Bool
	// unsharded is set if the servers of a Cluster have no sharded channels.
	unsharded atomic.Bool

	readTimeout time.Duration // of the client
	base        time.Time     // origin of local times
	clocks      [groups]serverClock

	listening sync.Mutex
	listeners map[string]*listener // by pool
}

var _ driver.Store = (*Store)(nil)

// New returns a store that uses the client: a *redis.Client, also one made for Sentinel, or a *redis.ClusterClient. It sends nothing to the
// server. The caller closes the client after the last use of the store. [ClientOptions] has settings for it.
func New(client redis.UniversalClient, opts ...Option) *Store {
	s := &Store{client: client, prefix: defaultPrefix, logger: slog.Default(), longest: driver.MaxLease, base: time.Now()}
	if client == nil {
		s.refuse("client", "nil", "a Redis client")
	}
	s.readTimeout = readTimeoutOf(client)
	for _, opt := range opts {
		opt(s)
	}
	return s
}

func (s *Store) refuse(field, value, allowed string) {
	if s.fault == nil {
		s.fault = &driver.RequestError{Field: field, Value: value, Allowed: allowed}
	}
}

// Sync implements [driver.Store]. It returns a *driver.RequestError for a malformed request, an invalid option, or a lease above the longest
// (see [WithLongestLease]) in the request or on record. The error wraps [driver.ErrWrongAnswer] if the pool's key has other content, which
// stays unchanged. It wraps [driver.ErrOverdue] if the server read the request too late for the context's deadline and did not execute it.
// Other errors are those of the client or the server, and temporary.
func (s *Store) Sync(ctx context.Context, req driver.Request) (driver.Answer, error) {
	if err := cmp.Or(s.fault, req.Validate(), s.checkLease(req.Lease)); err != nil {
		return driver.Answer{}, err
	}
	pool, marker := s.keys(req.Pool)
	wantsPolicy := !s.policyReported.Load()
	reply, clock, sent, err := s.run(ctx, req.Pool, req.Patience, func(expires int64) (any, error) {
		return syncScript.Run(ctx, s.client, syncKeys(pool, marker, &req), syncArgs(&req, s.longest, wantsPolicy, s.life, expires)...).Result()
	})
	if err != nil {
		return driver.Answer{}, explain("sync", req.Pool, s.prefix, err)
	}
	answer, policy, err := parseSync(reply, &req)
	if err != nil {
		return driver.Answer{}, fmt.Errorf("redisstore: sync of pool %q: %w", req.Pool, err)
	}
	if answer.Status == driver.Granted {
		clock.observe(answer.Wall, sent)
	}
	if answer.Lease > s.longest {
		return driver.Answer{}, &driver.RequestError{
			Field: "Lease", Value: answer.Lease.String() + " in the pool", Allowed: "at most " + s.longest.String(),
		}
	}
	if wantsPolicy && policy != "" {
		s.checkPolicy(ctx, policy)
	}
	return answer, nil
}

// Leave implements [driver.Store]. It returns the errors of Sync.
func (s *Store) Leave(ctx context.Context, l driver.Leave) error {
	if err := cmp.Or(s.fault, l.Validate()); err != nil {
		return err
	}
	pool, _ := s.keys(l.Pool)
	reply, err := leaveScript.Run(ctx, s.client, []string{pool}, leaveArgs(&l)...).Result()
	if err != nil {
		return explain("leave", l.Pool, s.prefix, err)
	}
	if n, ok := reply.(int64); !ok || n < 0 || n > 1 {
		return fmt.Errorf("redisstore: leave of pool %q: %w: not 0 or 1", l.Pool, driver.ErrWrongAnswer)
	}
	return nil
}

// Close implements [driver.Store]. It does nothing and returns nil: the store holds only the client, which belongs to the caller.
func (s *Store) Close() error { return nil }

func (s *Store) checkLease(lease time.Duration) error {
	if lease > s.longest {
		return &driver.RequestError{Field: "Lease", Value: lease.String(), Allowed: "at most " + s.longest.String()}
	}
	return nil
}

// keys returns the names of the pool's key and of the marker of its group.
func (s *Store) keys(pool string) (poolKey, markerKey string) {
	tag := "{" + s.prefix + ":" + strconv.Itoa(groupOf(pool)) + "}:"
	return tag + "pool:" + pool, tag + "marker"
}

// groupOf returns the group of a pool.
func groupOf(pool string) int { return int(crc32.ChecksumIEEE([]byte(pool)) % groups) }

// tagBucketsKey returns the key of a pool's tag buckets, given the pool's key.
func tagBucketsKey(pool string) string { return strings.Replace(pool, "}:pool:", "}:tills:", 1) }

// namesKey and sketchKey return the keys of the tag buckets of names that match a pattern, and of the sketch of spending by names without a tag bucket.
func namesKey(pool string) string  { return strings.Replace(pool, "}:pool:", "}:names:", 1) }
func sketchKey(pool string) string { return strings.Replace(pool, "}:pool:", "}:sketch:", 1) }

// syncKeys returns the keys of a sync. Processors without quotas do not need the keys of names.
func syncKeys(pool, marker string, req *driver.Request) []string {
	keys := []string{pool, marker, tagBucketsKey(pool)}
	if req.Busy != "" || len(req.Draws) > 0 {
		keys = append(keys, namesKey(pool), sketchKey(pool))
	}
	return keys
}

// checkPolicy warns, once per store, about a server that evicts keys.
func (s *Store) checkPolicy(ctx context.Context, policy string) {
	if s.policyReported.Swap(true) || policy == "noeviction" {
		return
	}
	s.logger.WarnContext(ctx, "redis may evict the pools' records when its memory is full, which freezes the pools; "+
		"set maxmemory-policy to noeviction", slog.String("maxmemory_policy", policy))
}

// explain adds context to the error of a script. The scripts mark faults in the data, and information that the server refuses to give.
func explain(operation, pool, prefix string, err error) error {
	if reply, ok := errors.AsType[redis.Error](err); ok {
		text := reply.Error()
		if what, ok := strings.CutPrefix(text, "NUMATHROTTLE_DATA "); ok {
			return fmt.Errorf("redisstore: %s of pool %q: %w: %s", operation, pool, driver.ErrWrongAnswer, what)
		}
		if strings.Contains(text, "WRONGTYPE") {
			return fmt.Errorf("redisstore: %s of pool %q: %w: a key of another type", operation, pool, driver.ErrWrongAnswer)
		}
		if what, ok := strings.CutPrefix(text, "NUMATHROTTLE_INFO "); ok {
			return fmt.Errorf("redisstore: %s of pool %q: the server does not tell its run_id and state (an ACL user needs +info): %s",
				operation, pool, what)
		}
	}
	if grant := lacking(operation, err.Error(), prefix); grant != "" {
		return fmt.Errorf("redisstore: %s of pool %q: the ACL user lacks a permission: grant %s: %w", operation, pool, grant, err)
	}
	return fmt.Errorf("redisstore: %s of pool %q: %w", operation, pool, err)
}
