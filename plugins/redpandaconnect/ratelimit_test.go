package redpandaconnect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	_ "github.com/redpanda-data/benthos/v4/public/components/io"
	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A stream of Connect, whose messages pass the rate limit.
type stream struct {
	*service.Stream

	mu    sync.Mutex
	times []time.Time // when messages passed
}

// newStream builds a stream with four threads that offers messages without an end.
func newStream(t *testing.T, limit string) (*stream, error) {
	t.Helper()
	b, s := service.NewStreamBuilder(), new(stream)
	b.SetThreads(4)
	if err := errors.Join(
		b.SetLoggerYAML("level: OFF"),
		b.AddInputYAML(`generate: {interval: "", mapping: 'root = "hello"'}`),
		b.AddProcessorYAML("rate_limit: {resource: shared}"),
		b.AddRateLimitYAML("label: shared\nnumathrottle: {"+limit+"}"),
		b.AddConsumerFunc(func(context.Context, *service.Message) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.times = append(s.times, time.Now())
			return nil
		}),
	); err != nil {
		return nil, err
	}
	var err error
	s.Stream, err = b.Build()
	return s, err
}

// run runs the stream until it is stopped. The result has the error when it ends.
func (s *stream) run(t *testing.T) <-chan error {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- s.Run(context.WithoutCancel(t.Context())) }()
	return ended
}

func (s *stream) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, s.StopWithin(30*time.Second))
}

func (s *stream) passed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.times)
}

func (s *stream) waitFor(t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return s.passed() >= n }, time.Minute, 10*time.Millisecond)
}

func TestAStreamKeepsTheLimit(t *testing.T) {
	s, err := newStream(t, "max: 50, per: 1s, burst: 5")
	require.NoError(t, err)
	began := time.Now()
	s.run(t)
	s.waitFor(t, 55)
	require.GreaterOrEqual(t, time.Since(began), 900*time.Millisecond, "the time that the tokens take")
	s.stop(t)
}

// A stream shares the limit with another process, and goes on when the store is gone.
func TestAStreamSharesAPool(t *testing.T) {
	t.Setenv("NUMATHROTTLE_LEASE", "3s")
	redis := testenv.Redis(t)
	other, err := numathrottle.Open(t.Context(), numathrottle.Config{
		Limit: throttle.Limit{Max: 50, Burst: 5}, Store: "redis://" + redis.Addr(), Pool: "orders", ID: "other", Lease: 3 * time.Second,
	})
	require.NoError(t, err)
	var theirs atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if _, err := other.Acquire(context.Background(), 1); err != nil {
				return
			}
			theirs.Add(1)
		}
	}()
	t.Cleanup(func() {
		require.Error(t, other.Close(), "the pool cannot be left")
		<-ended
	})
	s, err := newStream(t, fmt.Sprintf("max: 50, burst: 5, pool: orders, store: %q", "redis://"+redis.Addr()))
	require.NoError(t, err)
	s.run(t)
	s.waitFor(t, 100)
	require.Eventually(t, func() bool { return theirs.Load() > 100 }, time.Minute, 10*time.Millisecond, "the other one has its part")
	began := time.Now()
	n := int64(s.passed()) + theirs.Load()
	require.NoError(t, redis.Kill())
	s.waitFor(t, s.passed()+150) // beyond the lease
	n = int64(s.passed()) + theirs.Load() - n
	require.LessOrEqual(t, float64(n), 50*time.Since(began).Seconds()+5+2, "the bound of a pool of two")
	require.ErrorContains(t, s.StopWithin(30*time.Second), "leaving pool")
}

// Without its store a stream waits, and a message neither passes nor fails. Connect builds a resource when a message comes: one with a fault
// lets none pass.
func TestAStreamWaits(t *testing.T) {
	for _, limit := range []string{`max: 50, pool: orders, store: "redis://127.0.0.1:1"`, `max: 50, store: "redis://127.0.0.1:1"`} {
		s, err := newStream(t, limit)
		require.NoError(t, err)
		ended := s.run(t)
		select {
		case err := <-ended:
			require.Fail(t, "the stream has ended", "%v", err)
		case <-time.After(300 * time.Millisecond):
		}
		require.Zero(t, s.passed(), limit)
		_ = s.StopWithin(time.Second) // most of it in the hope that the messages still pass
	}
}

// Connect refuses to start with a fault that its linter finds.
func TestLint(t *testing.T) {
	for fields, says := range map[string]string{
		"max: 0":              "is 0, allowed: 1 to 1000000000 tokens",
		"max: -1":             "is -1, allowed: 1 to 1000000000 tokens",
		"max: 5, burst: -3":   "is -3, allowed: 1 to 1000000000 tokens",
		"max: 5, quota: 3":    "quota",
		"max: 5, per: [1, 2]": "expected string value",
	} {
		_, err := newStream(t, fields)
		require.ErrorContains(t, err, says, fields)
	}
}

func TestTheConfigOfTheREADME(t *testing.T) {
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, conf, found := strings.Cut(string(page), "```yaml\n")
	require.True(t, found)
	conf, _, _ = strings.Cut(conf, "```")
	require.NoError(t, service.NewStreamBuilder().SetYAML(conf))
}

func build(t *testing.T, label, fields string) (*rateLimit, error) {
	t.Helper()
	conf, err := spec().ParseYAML(fields, nil)
	require.NoError(t, err)
	return newRateLimit(conf, label)
}

func TestBadFields(t *testing.T) {
	for fields, says := range map[string]string{
		"{}":                                   "max is 0, allowed: 1 to 1000000000 tokens",
		"{max: 5, per: 10000h}":                "10000h",
		"{max: 5, burst: 2000000000}":          "2000000000",
		"{max: 5, pool: a, store: ftp://host}": "ftp",
		"{max: 5, store: redis://host}":        "pool is not set, allowed with store: 1 to 256 bytes",
		"{max: 5, pool: a, store: redis://me:hunter2@host:99999}": "store has a port that is not a number from 1 to 65535",
	} {
		_, err := build(t, "shared", fields)
		require.ErrorContains(t, err, says, fields)
		require.NotContains(t, err.Error(), "hunter2")
		t.Log(err)
	}
}

// Settings of the process hold for each resource, and its fields override them.
func TestFieldsOverrideVariables(t *testing.T) {
	t.Setenv("NUMATHROTTLE_MAX", "7")
	t.Setenv("NUMATHROTTLE_PER", "1h")
	t.Setenv("NUMATHROTTLE_BURST", "3")
	for fields, want := range map[string]throttle.Limit{
		"{}":                           {Max: 7, Per: time.Hour, Burst: 3},
		"burst: 2":                     {Max: 7, Per: time.Hour, Burst: 2},
		"{max: 9, per: 1m, tag: acme}": {Max: 9, Per: time.Minute, Burst: 3},
		"{burst: 4, pool: other}":      {Max: 7, Per: time.Hour, Burst: 4},
	} {
		r, err := build(t, "fields", fields)
		require.NoError(t, err)
		require.Equal(t, want, r.lease.of.limit, fields)
		wait, err := r.Access(t.Context()) // the bucket is empty at first, and a token takes seconds
		require.NoError(t, err)
		require.Equal(t, longestWait, wait, fields)
		require.NoError(t, r.Close(t.Context()))
	}
}

// Resources of one pool share a limiter, and the last one to close closes it. Those without a pool have a limiter by label.
func TestResourcesOfOneProcess(t *testing.T) {
	var all []*rateLimit
	for _, fields := range []string{"{max: 5, pool: a}", "{max: 5, pool: a, tag: acme}", "{max: 6, pool: b}"} {
		r, err := build(t, "shared", fields)
		require.NoError(t, err)
		all = append(all, r)
	}
	one, err := build(t, "one", "max: 5")
	require.NoError(t, err)
	two, err := build(t, "two", "max: 6")
	require.NoError(t, err)
	require.Same(t, all[0].lease.of, all[1].lease.of)
	require.NotSame(t, all[0].lease.of, all[2].lease.of)
	require.NotSame(t, one.lease.of, two.lease.of)
	_, err = build(t, "shared", "{max: 7, pool: a}")
	require.ErrorContains(t, err, `the limit of pool "a" is 7 per 1s, allowed in a process that has the pool already: 5 per 1s`)

	require.NoError(t, all[0].Close(t.Context()))
	require.NoError(t, all[0].Close(t.Context()), "it counts once")
	_, err = all[1].Access(t.Context())
	require.NoError(t, err)
	for _, r := range []*rateLimit{all[1], all[2], one, two} {
		require.NoError(t, r.Close(t.Context()))
		_, err = r.Access(t.Context())
		require.ErrorIs(t, err, throttle.ErrClosed)
	}
	for _, r := range all {
		require.NotContains(t, limiters.at, r.lease.of.at)
	}
}

// Connect may lose a resource that it has just built.
func TestALostResourceIsClosed(t *testing.T) {
	kept, err := build(t, "lost", "max: 5")
	require.NoError(t, err)
	for range 3 {
		_, err := build(t, "lost", "max: 5")
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		runtime.GC()
		limiters.Lock()
		defer limiters.Unlock()
		return kept.lease.of.users == 1
	}, 20*time.Second, 10*time.Millisecond)
	require.NoError(t, kept.Close(t.Context()))
}

func newLimiter(t *testing.T, limit throttle.Limit, opts ...throttle.Option) *rateLimit {
	t.Helper()
	l, err := throttle.New(limit, opts...)
	require.NoError(t, err)
	return &rateLimit{tokens: l, lease: &lease{of: &shared{limiter: l, users: 1}}}
}

// However often Access is refused, it holds nothing: the next token is there when it said.
func TestARefusalHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newLimiter(t, throttle.Limit{Max: 2, Burst: 1})
		_, err := r.tokens.Acquire(t.Context(), 1)
		require.NoError(t, err)
		for range 20 {
			wait, err := r.Access(t.Context())
			require.NoError(t, err)
			require.Positive(t, wait)
		}
		wait, err := r.Access(t.Context())
		require.NoError(t, err)
		time.Sleep(wait)
		wait, err = r.Access(t.Context())
		require.NoError(t, err)
		require.Zero(t, wait)
	})
}

func TestAccessFailsForGood(t *testing.T) {
	r := newLimiter(t, throttle.Limit{Max: 1})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.Access(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, r.Close(t.Context()))
	require.NoError(t, r.Close(t.Context()), "again")
	_, err = r.Access(t.Context())
	require.ErrorIs(t, err, throttle.ErrClosed)
	require.True(t, strings.HasPrefix(err.Error(), "numathrottle: "), err.Error())
}

// Callers that only ask count as demand: one busy process uses the limit of a pool with an idle one.
func TestABusyProcessGetsTheShareOfAnIdleOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		var pool []*rateLimit
		for i := range 2 {
			m, err := consensus.Join(t.Context(), store, "orders", consensus.WithID(fmt.Sprintf("pod-%d", i)))
			require.NoError(t, err)
			pool = append(pool, newLimiter(t, throttle.Limit{Max: 40}, throttle.WithSharer(m), throttle.OnClose(m.Leave)))
		}
		time.Sleep(20 * time.Second) // a pool's beginning
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var calls sync.WaitGroup
		var n atomic.Int64
		for range 4 {
			calls.Go(func() {
				for ctx.Err() == nil {
					wait, err := pool[0].Access(ctx)
					if err == nil && wait == 0 {
						n.Add(1)
					}
					time.Sleep(wait)
				}
			})
		}
		calls.Wait()
		t.Logf("use %.3f", float64(n.Load())/(40*60))
		require.GreaterOrEqual(t, n.Load(), int64(0.93*40*60))
		for _, r := range pool {
			require.NoError(t, r.Close(t.Context()))
		}
	})
}

// A pool that can't be left in time is left in the background.
func TestCloseEndsWithItsContext(t *testing.T) {
	left := make(chan struct{})
	r := newLimiter(t, throttle.Limit{Max: 1}, throttle.OnClose(func(context.Context) error { <-left; return nil }))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, r.Close(ctx), context.Canceled)
	close(left)
}
