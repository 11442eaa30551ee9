package benchmarks

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/internal/world"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/natsstore"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/redisstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A backend is a server that keeps pools.
type backend struct {
	name string
	// open connects a processor. The benchmark closes the connection at its end.
	open func(b testing.TB) consensus.Store
	// syncs counts the syncs that the server has answered; nil: it does not count.
	syncs func(ctx context.Context) (int64, error)
}

// backends starts a Redis and a NATS server for pools whose lease is at most longest.
func backends(b *testing.B, longest time.Duration) []backend {
	b.Helper()
	server, natsServer := testenv.Redis(b), testenv.NATS(b)
	return []backend{
		{
			"redis",
			func(b testing.TB) consensus.Store {
				b.Helper()
				client := redis.NewUniversalClient(redisstore.ClientOptions(server.Addr()))
				b.Cleanup(func() { require.NoError(b, client.Close()) })
				return redisstore.New(client, redisstore.WithLongestLease(longest))
			},
			func(ctx context.Context) (int64, error) {
				calls, err := server.Commands(ctx)
				return calls["evalsha"] + calls["eval"], err
			},
		},
		{"nats", func(b testing.TB) consensus.Store {
			b.Helper()
			nc, err := nats.Connect(natsServer.URL(), natsstore.ConnectOptions()...)
			require.NoError(b, err)
			b.Cleanup(nc.Close)
			store, err := natsstore.New(nc, natsstore.WithLongestLease(longest), natsstore.WithLogger(quiet))
			require.NoError(b, err)
			return store
		}, nil},
	}
}

var quiet = slog.New(slog.DiscardHandler)

// BenchmarkSync measures one sync, by the number of processors in the pool; every answer lists all of them.
func BenchmarkSync(b *testing.B) {
	memory := memstore.New()
	all := append([]backend{{"memory", func(testing.TB) consensus.Store { return memory }, nil}}, backends(b, consensus.MaxLease)...)
	for _, be := range all {
		for _, n := range []int{1, 10, 100, 1000} {
			b.Run(fmt.Sprint(be.name, "/", n), func(b *testing.B) {
				store, pool := be.open(b), rand.Text()
				members := make([]member, n)
				for i := range members {
					members[i] = member{id: "processor-" + strconv.Itoa(i), incarnation: rand.Text()}
					_, err := members[i].sync(b.Context(), store, pool, n)
					require.NoError(b, err)
				}
				var took []time.Duration
				for b.Loop() {
					began := time.Now()
					live, err := members[len(took)%n].sync(b.Context(), store, pool, n)
					took = append(took, time.Since(began))
					require.NoError(b, err)
					require.Equal(b, n, live, "the machine is too slow to keep all alive")
				}
				reportTimes(b, took)
			})
		}
	}
}

// A member is a processor reduced to its requests.
type member struct {
	id, incarnation                   string
	seq, lastSeq, lastNonce, revision uint64
	lastTime                          int64
	share                             consensus.Share
}

// sync does one sync in a pool of n, and returns the number of processors in the answer.
func (m *member) sync(ctx context.Context, s consensus.Store, pool string, n int) (live int, err error) {
	m.seq++
	req := driver.Request{
		Pool: pool, ID: m.id, Incarnation: m.incarnation, Lease: consensus.DefaultLease, Revision: m.revision,
		Seq: m.seq, Nonce: mathrand.Uint64(), LastSeq: m.lastSeq, LastNonce: m.lastNonce, LastTime: m.lastTime,
		Report: driver.Report{InUse: m.share, Wanted: driver.Whole / consensus.Share(n), Demand: driver.Whole, PoolSize: n},
	}
	answer, err := s.Sync(ctx, req)
	if err != nil {
		return 0, err
	}
	if answer.Status != driver.Granted {
		return 0, fmt.Errorf("sync of %s: %s", m.id, answer.Status)
	}
	m.lastSeq, m.lastNonce, m.lastTime = req.Seq, req.Nonce, answer.Time
	m.revision, m.share = answer.Revision, answer.Share
	return len(answer.Roster), nil
}

// BenchmarkPool lets four processors share a limit through a store. In each 16 goroutines always wait.
//
//   - granted: the used part of Limit.Rate; the target is 0.99
//   - worst: the largest second as a part of the bound, which is max, burst and processors, or max of a hard limit; at most 1
//   - syncs: the requests of a processor to Redis in a sync interval; at most 1.05
func BenchmarkPool(b *testing.B) {
	for _, be := range backends(b, consensus.MinLease) {
		for _, l := range []throttle.Limit{{Max: 50}, {Max: 1_000}, {Max: 20_000}, {Max: 1_000, Hard: true}} {
			b.Run(fmt.Sprintf("%s/%d/hard=%t", be.name, l.Max, l.Hard), func(b *testing.B) {
				const n, length = 4, 20 * time.Second
				p := openPool(b, be.open, l, consensus.MinLease, n)
				l := p[0].limiter.Limit() // with its defaults
				most := float64(l.Max + l.Burst + n)
				if l.Hard {
					most = float64(l.Max)
				}
				for b.Loop() {
					w := begin(b.Context(), n, 16, func(ctx context.Context, i int) error {
						_, err := p[i].limiter.Acquire(ctx, 1)
						return err
					})
					time.Sleep(3 * time.Second) // a steady state
					from := w.now()
					before := asked(b, be)
					time.Sleep(length)
					to := w.now()
					syncs := float64(asked(b, be)-before) / n / ((to - from).Seconds() / wire.Interval(consensus.MinLease, n).Seconds())
					grants := w.end()
					b.ReportMetric(float64(between(grants, from, to))/l.Rate()/(to-from).Seconds(), "granted")
					b.ReportMetric(float64(worstSecond(grants))/most, "worst")
					if be.syncs != nil {
						b.ReportMetric(syncs, "syncs")
					}
				}
			})
		}
	}
}

func asked(b *testing.B, be backend) int64 {
	b.Helper()
	if be.syncs == nil {
		return 0
	}
	n, err := be.syncs(b.Context())
	require.NoError(b, err)
	return n
}

// A processor is one of a pool in this process, with its own connection.
type processor struct {
	store   *mortal
	limiter *throttle.Throttle
}

// openPool joins n processors and waits until they hold the limit.
func openPool(b testing.TB, open func(testing.TB) consensus.Store, l throttle.Limit, lease time.Duration, n int) (p []*processor) {
	b.Helper()
	name := rand.Text()
	var members []*consensus.Member
	for i := range n {
		store := open(b)
		pusher, ok := store.(driver.Pusher)
		require.True(b, ok)
		pr := &processor{store: &mortal{world.NewLink(store), pusher}}
		m, err := consensus.Join(b.Context(), pr.store, name, consensus.WithID("processor-"+strconv.Itoa(i)), consensus.WithLease(lease),
			consensus.WithOnStoreLoss(consensus.Stop), consensus.WithLogger(quiet))
		require.NoError(b, err)
		pr.limiter, err = throttle.New(l, throttle.WithSharer(m), throttle.OnClose(m.Leave))
		require.NoError(b, err)
		b.Cleanup(func() { require.NoError(b, pr.limiter.Close()) })
		p, members = append(p, pr), append(members, m)
	}
	require.Eventually(b, func() bool {
		var held consensus.Share
		for _, m := range members {
			v := m.View()
			held += v.Share
			if !v.Agreed || v.Live != n {
				return false
			}
		}
		return held >= driver.Whole*97/100
	}, time.Minute, 20*time.Millisecond, "the pool is not settled")
	return p
}

// A mortal is the store of a processor that can be killed: from then on it says nothing.
type mortal struct {
	*world.Link
	driver.Pusher
}

// Push implements driver.Pusher.
func (m *mortal) Push(ctx context.Context, pool string, news []byte) error {
	if m.Dead.Load() {
		return driver.ErrNoPush
	}
	return m.Pusher.Push(ctx, pool, news)
}

// A work is goroutines of pods that acquire one token after the other.
type work struct {
	began   time.Time
	halt    []context.CancelFunc // by pod
	running sync.WaitGroup
	tracks  [][]time.Duration // the moments of grants, by goroutine
}

// begin starts goroutines in each pod. A limiter that fails is asked again after 10 ms.
func begin(ctx context.Context, pods, goroutines int, acquire func(ctx context.Context, pod int) error) *work {
	w := &work{began: time.Now(), tracks: make([][]time.Duration, pods*goroutines)}
	for pod := range pods {
		ctx, halt := context.WithCancel(ctx)
		w.halt = append(w.halt, halt)
		for i := range goroutines {
			track := &w.tracks[pod*goroutines+i]
			w.running.Go(func() {
				for ctx.Err() == nil {
					if err := acquire(ctx, pod); err == nil {
						*track = append(*track, w.now())
					} else {
						pause(ctx, 10*time.Millisecond)
					}
				}
			})
		}
	}
	return w
}

func (w *work) now() time.Duration { return time.Since(w.began) }

// end stops the work and returns the moments of all grants, sorted.
func (w *work) end() []time.Duration {
	for _, halt := range w.halt {
		halt()
	}
	w.running.Wait()
	grants := slices.Concat(w.tracks...)
	slices.Sort(grants)
	return grants
}

// pause waits for d, or returns false when ctx ends before.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// worstSecond returns the most of the sorted moments in any window of a second, half open.
func worstSecond(moments []time.Duration) (most int) {
	first := 0
	for i, m := range moments {
		for m-moments[first] >= time.Second {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// between counts the sorted moments in [from, to).
func between(moments []time.Duration, from, to time.Duration) int {
	a, _ := slices.BinarySearch(moments, from)
	b, _ := slices.BinarySearch(moments, to)
	return b - a
}

func TestWindows(t *testing.T) {
	const ms = time.Millisecond
	require.Zero(t, worstSecond(nil))
	require.Equal(t, 1, worstSecond([]time.Duration{0, time.Second}), "the end is outside")
	require.Equal(t, 3, worstSecond([]time.Duration{0, 900 * ms, 1100 * ms, 1899 * ms, 3000 * ms}))
	require.Equal(t, 2, between([]time.Duration{1, 2, 3, 4}, 2, 4), "from is inside, to is not")
}
