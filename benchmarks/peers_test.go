package benchmarks

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"github.com/throttled/throttled/v2"
	goredisstore "github.com/throttled/throttled/v2/store/goredisstore.v9"
	"go.uber.org/ratelimit"
	"golang.org/x/time/rate"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/redisstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

const (
	peerPods       = 4
	peerGoroutines = 16 // in each pod; they always wait
)

// A waiter waits until one call may be made.
type waiter func(ctx context.Context) error

// A peer is one way to limit pods.
type peer struct {
	name string
	// open makes a limiter for each pod. kill ends what a limiter does by itself, as a kill of the process would; it may be nil.
	open func(b testing.TB, e *peerEnv) (pods []waiter, kill func(pod int))
}

// A peerEnv is the environment of the pods of a peer: their limit, and the store if they use one. The burst is 100 ms worth.
type peerEnv struct {
	max    int
	server *servers.Redis
	lease  time.Duration
	key    string       // of the limit in the store
	sent   atomic.Int64 // commands
	uses   bool         // the store
}

// Divided limiters have a quarter of the limit in each pod; shared ones ask the store for each call.
var peers = []peer{
	{"numathrottle", openOurs},
	{"x-time-rate", divided(func(part int) waiter { return rate.NewLimiter(rate.Limit(part), part/10).Wait })},
	{"uber-go", divided(func(part int) waiter { // it has a slack of ten calls, by default
		limiter := ratelimit.New(part)
		return func(ctx context.Context) error { limiter.Take(); return ctx.Err() }
	})},
	{"failsafe-go", divided(func(part int) waiter { return ratelimiter.NewSmooth[any](uint(part), time.Second).AcquirePermit })},
	{"redis_rate", shared(askRedisRate)},
	{"throttled", shared(askThrottled)},
	{"counter", shared(askCounter)},
}

func openOurs(b testing.TB, e *peerEnv) (pods []waiter, kill func(pod int)) {
	b.Helper()
	e.uses = true
	p := openPool(b, func(b testing.TB) consensus.Store {
		b.Helper()
		client := e.connect(b)
		return redisstore.New(client, redisstore.WithLongestLease(e.lease))
	}, throttle.Limit{Max: e.max}, e.lease, peerPods)
	for _, pr := range p {
		pods = append(pods, func(ctx context.Context) error { _, err := pr.limiter.Acquire(ctx, 1); return err })
	}
	return pods, func(pod int) { p[pod].store.Dead.Store(true) }
}

func divided(open func(part int) waiter) func(testing.TB, *peerEnv) ([]waiter, func(int)) {
	return func(_ testing.TB, e *peerEnv) (pods []waiter, _ func(int)) {
		for range peerPods {
			pods = append(pods, open(e.max/peerPods))
		}
		return pods, nil
	}
}

// An asker asks for one call: it may be made, or the limiter is asked again later.
type asker func(ctx context.Context) (again time.Duration, err error)

// shared gives each pod a connection to the one counter of all. A refused caller asks again when the limiter says so, after a millisecond at
// least, and up to a tenth later, so that callers fall out of step.
func shared(open func(b testing.TB, client redis.UniversalClient, e *peerEnv) asker) func(testing.TB, *peerEnv) ([]waiter, func(int)) {
	return func(b testing.TB, e *peerEnv) (pods []waiter, _ func(int)) {
		b.Helper()
		e.uses = true
		for range peerPods {
			ask := open(b, e.connect(b), e)
			pods = append(pods, func(ctx context.Context) error {
				for {
					again, err := ask(ctx)
					if err != nil || again == 0 {
						return err
					}
					again = max(again, time.Millisecond)
					if !pause(ctx, again+mathrand.N(again/10)) {
						return context.Cause(ctx)
					}
				}
			})
		}
		return pods, nil
	}
}

func askRedisRate(_ testing.TB, client redis.UniversalClient, e *peerEnv) asker {
	limiter := redis_rate.NewLimiter(client)
	limit := redis_rate.Limit{Rate: e.max, Burst: e.max / 10, Period: time.Second}
	return func(ctx context.Context) (time.Duration, error) {
		res, err := limiter.Allow(ctx, e.key, limit)
		if err != nil || res.Allowed > 0 {
			return 0, err
		}
		return max(res.RetryAfter, 1), nil
	}
}

func askThrottled(b testing.TB, client redis.UniversalClient, e *peerEnv) asker {
	b.Helper()
	store, err := goredisstore.NewCtx(client, "throttled:")
	require.NoError(b, err)
	limiter, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerSec(e.max), MaxBurst: e.max/10 - 1})
	require.NoError(b, err)
	limiter.SetMaxCASAttemptsLimit(1000) // by default it gives up after ten
	return func(ctx context.Context) (time.Duration, error) {
		limited, res, err := limiter.RateLimitCtx(ctx, e.key, 1)
		if err != nil || !limited {
			return 0, err
		}
		return max(res.RetryAfter, 1), nil
	}
}

// askCounter counts the calls of each second of the wall clock, as many do by hand.
func askCounter(_ testing.TB, client redis.UniversalClient, e *peerEnv) asker {
	return func(ctx context.Context) (time.Duration, error) {
		now := time.Now()
		second := now.Truncate(time.Second)
		key := fmt.Sprint("counter:", e.key, ":", second.Unix())
		n, err := client.Incr(ctx, key).Result()
		if err != nil || n > int64(e.max) {
			return second.Add(time.Second).Sub(now), err
		}
		if n == 1 {
			err = client.Expire(ctx, key, 10*time.Second).Err()
		}
		return 0, err
	}
}

// connect returns a client of the server that counts its commands.
func (e *peerEnv) connect(b testing.TB) redis.UniversalClient {
	b.Helper()
	client := redis.NewUniversalClient(redisstore.ClientOptions(e.server.Addr()))
	client.AddHook(sentHook{&e.sent})
	b.Cleanup(func() { require.NoError(b, client.Close()) })
	return client
}

// A sentHook counts the commands that a client sends.
type sentHook struct{ sent *atomic.Int64 }

func (sentHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h sentHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.sent.Add(1)
		return next(ctx, cmd)
	}
}

func (h sentHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		h.sent.Add(int64(len(commands)))
		return next(ctx, commands)
	}
}

// BenchmarkPeers gives alternatives the same work, one after the other. Four pods share a limit, each with its own limiter and connection,
// in one process; all stores are the same Redis. Figures are parts of the limit, and commands and the store's processor time (of a core).
//
//   - all, hot: all pods have work, or only one of them, for its first 8 s
//   - draw: single draws at a tenth of the limit in all
//   - killed: one of four busy pods is killed; the grants of the first 5 s, and of those until 20 s
//   - away: the store stands still for 3 s; the grants meanwhile, and those until 20 s
func BenchmarkPeers(b *testing.B) {
	server := testenv.Redis(b)
	for _, p := range peers {
		for _, limit := range []int{1_000, 20_000} {
			b.Run(fmt.Sprint(p.name, "/", limit, "/all"), func(b *testing.B) {
				e := &peerEnv{max: limit, server: server}
				e.measure(b, p, peerPods, time.Second, 10*time.Second, nil)
			})
			b.Run(fmt.Sprint(p.name, "/", limit, "/hot"), func(b *testing.B) {
				e := &peerEnv{max: limit, server: server}
				e.measure(b, p, 1, 0, 8*time.Second, nil)
			})
		}
		b.Run(p.name+"/1000/draw", func(b *testing.B) {
			e := &peerEnv{max: 1000, server: server}
			e.measureDraws(b, p)
		})
		b.Run(p.name+"/1000/killed", func(b *testing.B) {
			e := &peerEnv{max: 1000, server: server}
			e.measure(b, p, peerPods, 2*time.Second, 20*time.Second, func(w *work, kill func(int)) {
				w.halt[peerPods-1]()
				if kill != nil {
					kill(peerPods - 1)
				}
			}, 5*time.Second)
		})
		b.Run(p.name+"/1000/away", func(b *testing.B) {
			e := &peerEnv{max: 1000, server: server}
			e.measure(b, p, peerPods, 2*time.Second, 20*time.Second, func(*work, func(int)) {
				require.NoError(b, server.Stop(b.Context()))
				time.Sleep(3 * time.Second)
				require.NoError(b, server.Continue())
			}, 3*time.Second)
		})
	}
}

func (e *peerEnv) open(b *testing.B, p peer) ([]waiter, func(int)) {
	b.Helper()
	e.key, e.lease = rand.Text(), consensus.DefaultLease
	return p.open(b, e)
}

// measure lets busy pods draw, and judges a time after they have settled. A fault happens at its start. The grants until soon after it
// are reported apart.
func (e *peerEnv) measure(b *testing.B, p peer, busy int, settle, length time.Duration, fault func(w *work, kill func(int)), soon ...time.Duration) {
	b.Helper()
	pods, kill := e.open(b, p)
	for b.Loop() {
		w := begin(b.Context(), busy, peerGoroutines, func(ctx context.Context, pod int) error { return pods[pod](ctx) })
		time.Sleep(settle)
		sent, from := e.sent.Load(), w.now()
		cpu, err := e.server.CPUTime(b.Context())
		require.NoError(b, err)
		if fault != nil {
			fault(w, kill)
		}
		time.Sleep(from + length - w.now())
		to := w.now()
		after, err := e.server.CPUTime(b.Context())
		require.NoError(b, err)
		sent = e.sent.Load() - sent
		grants := w.end()
		part := func(from, to time.Duration) float64 {
			return float64(between(grants, from, to)) / float64(e.max) / (to - from).Seconds()
		}
		if e.uses && fault == nil {
			b.ReportMetric(float64(sent)/float64(max(between(grants, from, to), 1)), "commands/grant")
			b.ReportMetric((after-cpu).Seconds()/(to-from).Seconds(), "store-cpu")
		}
		for _, d := range soon {
			b.ReportMetric(part(from, from+d), fmt.Sprintf("first-%s", d))
			from += d
		}
		b.ReportMetric(part(from, to), "granted")
		b.ReportMetric(float64(worstSecond(grants))/float64(e.max), "worst")
	}
}

// measureDraws times single draws, one after the other in all pods, where nobody lacks tokens.
func (e *peerEnv) measureDraws(b *testing.B, p peer) {
	b.Helper()
	pods, _ := e.open(b, p)
	var took []time.Duration
	for b.Loop() {
		time.Sleep(10 * time.Second / time.Duration(e.max))
		began := time.Now()
		require.NoError(b, pods[len(took)%peerPods](b.Context()))
		took = append(took, time.Since(began))
	}
	reportTimes(b, took)
}

// Every limiter lets calls of every pod through.
func TestPeers(t *testing.T) {
	server := testenv.Redis(t)
	for _, p := range peers {
		t.Run(p.name, func(t *testing.T) {
			e := &peerEnv{max: 400, server: server, key: rand.Text(), lease: consensus.MinLease}
			pods, _ := p.open(t, e)
			require.Len(t, pods, peerPods)
			before := e.sent.Load()
			for _, wait := range pods {
				for range 3 {
					require.NoError(t, wait(t.Context()))
				}
			}
			if e.uses && p.name != "numathrottle" {
				require.GreaterOrEqual(t, e.sent.Load()-before, int64(12), "it asks for each call")
			}
		})
	}
}
