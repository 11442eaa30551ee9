package consensus_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/internal/world"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A matrixPool is a pool of real members and limiters on one store, in virtual time.
type matrixPool struct {
	t     *testing.T
	store *world.Server
	limit throttle.Limit
	quota throttle.Quotas
	bare  bool // without quotas
	pods  []*throttle.Throttle
	links []*world.Link
	ctx   context.Context //nolint:containedctx // it ends with the pool, before its limiters are closed

	mu   sync.Mutex
	used map[string]*tagUse
}

// A tagUse is what the pool used of one tag. level is how much more it used than the total earns, from whenever that was most.
type tagUse struct {
	rate         float64 // of the total, in tokens per second; 0: none
	sum, calls   int64
	bySize       map[int]int64
	level, worst float64
	at           time.Time
	largest      int
}

func newMatrixPool(t *testing.T, pods int, l throttle.Limit, q throttle.Quotas) *matrixPool {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	store := world.NewServer()
	store.Forgets = q.Tags["a"].Budgets != nil
	p := &matrixPool{t: t, store: store, limit: l, quota: q, ctx: ctx, used: map[string]*tagUse{}}
	t.Cleanup(func() {
		cancel()
		for i, th := range p.pods {
			p.links[i].Hang.Store(false)
			_ = th.Close()
		}
	})
	for range pods {
		p.join()
	}
	return p
}

// join adds a pod.
func (p *matrixPool) join(opts ...consensus.Option) *throttle.Throttle {
	p.t.Helper()
	link := world.NewLink(p.store)
	opts = append([]consensus.Option{consensus.WithID(fmt.Sprintf("p%02d", len(p.pods))), consensus.WithLogger(quiet)}, opts...)
	m, err := consensus.Join(p.ctx, link, "pool", opts...)
	require.NoError(p.t, err)
	with := []throttle.Option{throttle.WithSharer(m), throttle.OnClose(m.Leave)}
	if !p.bare {
		with = append(with, throttle.WithQuotas(p.quota))
	}
	th, err := throttle.New(p.limit, with...)
	require.NoError(p.t, err)
	p.pods, p.links = append(p.pods, th), append(p.links, link)
	return th
}

// note counts a call of a tag that got its tokens.
func (p *matrixPool) note(tag string, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.of(tag)
	now := time.Now()
	u.level = max(0, u.level-u.rate*now.Sub(u.at).Seconds()) + float64(n)
	u.worst, u.at, u.largest = max(u.worst, u.level), now, max(u.largest, n)
	u.sum += int64(n)
	u.bySize[n] += int64(n)
	u.calls++
}

func (p *matrixPool) of(tag string) *tagUse {
	u := p.used[tag]
	if u == nil {
		u = &tagUse{at: time.Now(), bySize: map[int]int64{}}
		if q := p.quota.Tags[tag]; q.Total > 0 {
			u.rate = float64(q.Total) / max(q.Per, time.Second).Seconds()
		}
		p.used[tag] = u
	}
	return u
}

// closed starts callers at a pod that draw as fast as they can: each the next of sizes in turn.
func (p *matrixPool) closed(th *throttle.Throttle, tag string, callers int, sizes ...int) {
	for i := range callers {
		go func() {
			for k := i; ; k++ {
				n := sizes[k%len(sizes)]
				if _, err := th.ForTag(tag).Acquire(p.ctx, n); err != nil {
					return
				}
				p.note(tag, n)
			}
		}()
	}
}

// open starts calls at a pod at a rate in tokens per second, each of which waits until it has its tokens.
func (p *matrixPool) open(th *throttle.Throttle, tag string, rate float64, sizes ...int) {
	go func() {
		for k := 0; ; k++ {
			n := sizes[k%len(sizes)]
			select {
			case <-p.ctx.Done():
				return
			default:
			}
			go func() {
				if _, err := th.ForTag(tag).Acquire(p.ctx, n); err == nil {
					p.note(tag, n)
				}
			}()
			_ = world.Sleep(p.ctx, time.Duration(float64(n)/rate*float64(time.Second)))
		}
	}()
}

// over is what a tag uses per second in d.
func (p *matrixPool) over(d time.Duration, tag string) float64 {
	sum := func() int64 {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.of(tag).sum
	}
	before := sum()
	time.Sleep(d)
	return float64(sum()-before) / d.Seconds()
}

// within fails if a tag has used more in any time than its total allows: Q1.
func (p *matrixPool) within(tag string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	u, q := p.of(tag), p.quota.Tags[tag]
	burst := float64(max(q.Burst, 1))
	if q.Burst == 0 {
		burst = max(1, u.rate/10)
	}
	interval := wire.Interval(driver.DefaultLease, len(p.pods)).Seconds()
	require.LessOrEqual(p.t, u.worst, u.rate*3.2*interval+burst+float64(u.largest), "%s used more than its total", tag)
}

// What a pod has drawn ahead of a budget is lost when it crashes: at most four intervals' worth.
func TestWhatACrashCostsABudget(t *testing.T) {
	testkit.SkipRace(t, "it measures")
	testkit.SkipShort(t, "many pools")
	for _, total := range []int{0, 50} {
		for _, callers := range []int{0, 8} {
			for _, size := range []int{1, 10} {
				for phase := range 8 {
					synctest.Test(t, func(t *testing.T) {
						p := newMatrixPool(t, 1, throttle.Limit{Max: 50}, throttle.Quotas{Tags: map[string]throttle.Quota{
							"a": {Total: total, Budgets: []throttle.Budget{{Amount: 1e9, Per: "day"}}},
						}})
						if callers > 0 {
							p.closed(p.pods[0], "a", callers, size)
						} else {
							p.open(p.pods[0], "a", 49, size)
						}
						time.Sleep(30*time.Second + time.Duration(phase)*interval/8)
						synctest.Wait()
						lost := -p.of("a").sum
						p.store.Record(func(r *driver.Record) { lost += r.TagBuckets[0].Spent[0].Tokens })
						most := int64(200)
						if total == 0 && size > 1 { // calls pile up at the limit, and the budget alone bounds what is drawn for them
							most = 400
						}
						require.LessOrEqual(t, lost, most, "total %d, %d callers, calls of %d", total, callers, size)
					})
				}
			}
		}
	}
}

// TestMatrixOfNames: names that each ask for a quarter of their total, on one pod or on ten, get it, and a tag with a quota by its name gets its own.
func TestMatrixOfNames(t *testing.T) {
	testkit.SkipRace(t, "it measures")
	testkit.SkipShort(t, "many pools")
	const names, every = 150, time.Second
	for _, pods := range []int{1, 10} {
		t.Run(fmt.Sprint(pods), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newMatrixPool(t, pods, throttle.Limit{Max: 600}, throttle.Quotas{
					Tags:  map[string]throttle.Quota{"acme": {Reserved: 100, Total: 100}},
					Match: []limit.QuotaPattern{{Tag: "free/*", Quota: throttle.Quota{Total: 4}}},
				})
				for _, th := range p.pods {
					p.closed(th, "acme", 4, 1)
				}
				var free atomic.Int64
				for i := range names {
					tag := fmt.Sprint("free/", i)
					go func() {
						_ = world.Sleep(p.ctx, time.Duration(i)*every/names)
						for k := 0; p.ctx.Err() == nil; k++ {
							go func() {
								if _, err := p.pods[(i+k)%pods].ForTag(tag).Acquire(p.ctx, 1); err == nil {
									free.Add(1)
								}
							}()
							_ = world.Sleep(p.ctx, every)
						}
					}()
				}
				time.Sleep(30 * time.Second)
				before := free.Load()
				require.GreaterOrEqual(t, p.over(30*time.Second, "acme"), 95.0)
				p.within("acme")
				require.GreaterOrEqual(t, float64(free.Load()-before)/30, 0.95*names)
			})
		})
	}
}
