package consensus_test

import (
	"context"
	"fmt"
	"slices"
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
	store *server
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
	store := newServer()
	store.forgets = q.Tags["a"].Budgets != nil
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

// TestMatrixOfCosts: calls of any cost use the total as one limiter would, whatever the number of pods and callers, and however they come.
func TestMatrixOfCosts(t *testing.T) {
	testkit.SkipRace(t, "it measures")
	testkit.SkipShort(t, "many pools")
	second := func(burst int) throttle.Quota { return throttle.Quota{Total: 60, Burst: burst} }
	minute := func(burst int) throttle.Quota { return throttle.Quota{Total: 20_000, Per: time.Minute, Burst: burst} }
	loads := []struct {
		quota throttle.Quota
		sizes []int
	}{
		{second(0), []int{1}},
		{second(0), []int{7}},
		{second(0), []int{20}},
		{second(0), []int{45}},
		{second(0), []int{60}},
		{second(1), []int{60}},
		{second(0), []int{1, 60}},
		{second(0), []int{3, 50}},
		{second(0), []int{20, 30, 40, 50, 60}},
		{minute(8000), []int{2000}},
		{minute(2000), []int{2000}},
		{minute(0), []int{400}},
		{minute(8000), []int{100, 8000}},
	}
	shapes := []struct{ pods, callers int }{{4, 2}, {1, 1}, {1, 8}, {16, 1}, {4, 0}} // no callers: calls come by themselves
	for i, l := range loads {
		for _, shape := range []struct{ pods, callers int }{shapes[0], shapes[1+i%4]} {
			t.Run(fmt.Sprintf("%d-%d/%v/%dx%d", l.quota.Total, l.quota.Burst, l.sizes, shape.pods, shape.callers), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := newMatrixPool(t, shape.pods, throttle.Limit{Max: 20_000}, throttle.Quotas{Tags: map[string]throttle.Quota{"a": l.quota}})
					rate := float64(l.quota.Total) / max(l.quota.Per, time.Second).Seconds()
					for _, th := range p.pods {
						if shape.callers > 0 {
							p.closed(th, "a", shape.callers, l.sizes...)
						} else {
							p.open(th, "a", 1.2*rate/float64(shape.pods), l.sizes...)
						}
					}
					time.Sleep(20 * time.Second)
					const span = 100 * time.Second
					got := p.over(span, "a")
					p.within("a")
					edge := float64(slices.Max(l.sizes)) / span.Seconds() // a call may end just after the span
					require.GreaterOrEqual(t, got, 0.9*rate-edge, "of %.1f: %v", rate, p.of("a").bySize)
				})
			})
		}
	}
}

// Small and large calls of one tag on different pods: neither starves, and the total is used.
func TestSmallCallsNextToLargeOnes(t *testing.T) {
	testkit.SkipRace(t, "it measures")
	testkit.SkipShort(t, "many pools")
	for _, pods := range []int{2, 4, 16} {
		t.Run(fmt.Sprint(pods), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newMatrixPool(t, pods, throttle.Limit{Max: 20_000}, throttle.Quotas{Tags: map[string]throttle.Quota{"a": {Total: 60}}})
				for i, th := range p.pods {
					p.closed(th, "a", 4, []int{1, 60, 600}[min(i, 1)])
				}
				time.Sleep(20 * time.Second)
				require.GreaterOrEqual(t, p.over(200*time.Second, "a"), 0.9*60-60.0/200)
				p.within("a")
				use := p.of("a").bySize
				turns := 200.0 * 60 / float64(4*1+(pods-1)*4*60) // of one limiter that serves all callers in turn
				require.Greater(t, float64(use[1]), turns*4*1)
				require.Greater(t, use[60], int64(200*60/2))
			})
		})
	}
}

// TestMatrixNextToAHog: a tag with a total at or above its fair share gets what it would get without a total.
func TestMatrixNextToAHog(t *testing.T) {
	testkit.SkipRace(t, "it measures")
	testkit.SkipShort(t, "many pools")
	for i, q := range []throttle.Quota{{Reserved: 80, Total: 120}, {Total: 100}, {Total: 120}, {Reserved: 80, Total: 180}} {
		for j, pods := range []int{1, 3, 4, 16} {
			size := []int{1, 4, 4, 1}[(i+j)%4]
			t.Run(fmt.Sprintf("%d-%d/%dx%d", q.Reserved, q.Total, pods, size), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := newMatrixPool(t, pods, throttle.Limit{Max: 200}, throttle.Quotas{Tags: map[string]throttle.Quota{"a": q, "hog": {}}})
					for i, th := range p.pods {
						p.closed(th, "a", 4, size)
						if i == 0 || size == 1 { // the hog is everywhere, or on one pod
							p.closed(th, "hog", 8, 1)
						}
					}
					time.Sleep(20 * time.Second)
					got := p.over(60*time.Second, "a")
					p.within("a")
					least := 0.97 * 100
					if size > 1 && pods == 16 { // a batch is a call or two
						least = 0.94 * 100
					}
					if size > 1 && q.Total == 100 { // nothing that a pod gives back late can be made up for
						least = 0.88 * 100
					}
					require.GreaterOrEqual(t, got, least)
				})
			})
		}
	}
}

// TestMatrixNextToLargeCalls: a tag gets its reserved rate although large calls of another tag come to the same pod and to a second one. The
// other tag gets its total, unless the limit is hard: a pod's part of the burst is too small for its calls then.
func TestMatrixNextToLargeCalls(t *testing.T) {
	testkit.SkipRace(t, "it measures")
	testkit.SkipShort(t, "many pools")
	for _, c := range []struct {
		size int
		hard bool
	}{{20, false}, {40, false}, {40, true}, {80, true}} {
		size := c.size
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := throttle.Limit{Max: 400, Burst: 80, Hard: c.hard}
				if c.hard {
					l.Max = 520 // 407 a second
				}
				p := newMatrixPool(t, 0, l, throttle.Quotas{Tags: map[string]throttle.Quota{
					"acme": {Reserved: 150}, "a": {Total: 40}, "beta": {Total: 60}, "dash": {Reserved: 50}, "hog": {Class: throttle.ClassBatch},
				}})
				for i := range 4 {
					th := p.join(consensus.WithLease(driver.MinLease))
					p.closed(th, "hog", 10, 1)
					switch i {
					case 0:
						p.open(th, "acme", 160, 1)
						p.open(th, "a", 40, size)
					case 1:
						p.open(th, "beta", 200, 1)
						p.open(th, "dash", 50, 1)
					case 2:
						p.open(th, "beta", 100, 1)
						p.open(th, "dash", 50, 1)
						p.open(th, "gamma", 20, 1)
					case 3:
						p.open(th, "gamma", 20, 1)
						p.open(th, "a", 80, size)
					}
				}
				time.Sleep(20 * time.Second)
				before := p.of("a").sum
				got := p.over(45*time.Second, "acme")
				require.GreaterOrEqual(t, got, 0.994*150)
				if !c.hard {
					require.GreaterOrEqual(t, float64(p.of("a").sum-before)/45, 0.9*40)
				}
				p.within("a")
			})
		})
	}
}

// TestMatrixOfFreezes: callers that wait while a pool is frozen, when it is new and when the store has lost its memory, cost a budget nothing
// but what pods had for calls that waited just then: up to fifteen calls of each.
func TestMatrixOfFreezes(t *testing.T) {
	testkit.SkipRace(t, "it measures")
	testkit.SkipShort(t, "many pools")
	const amount = 4000
	for _, total := range []int{0, 100} {
		for _, size := range []int{1, 40} {
			for _, shape := range []struct{ pods, callers int }{{1, 1}, {1, 16}, {3, 1}, {3, 16}} {
				t.Run(fmt.Sprintf("%d/%d/%dx%d", total, size, shape.pods, shape.callers), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						p := newMatrixPool(t, shape.pods, throttle.Limit{Max: 100}, throttle.Quotas{Tags: map[string]throttle.Quota{
							"a": {Total: total, Budgets: []throttle.Budget{{Amount: amount, Per: "day"}}},
						}})
						for _, th := range p.pods {
							p.closed(th, "a", shape.callers, size)
						}
						time.Sleep(30 * time.Second)
						require.Less(t, p.of("a").sum, int64(amount), "not yet all")
						p.store.wipe()
						time.Sleep(5 * time.Minute)
						require.LessOrEqual(t, p.of("a").sum, int64(amount))
						require.GreaterOrEqual(t, p.of("a").sum, int64(0.98*amount)-int64(15*shape.pods*size))
					})
				})
			}
		}
	}
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
						lost := p.store.rec.TagBuckets[0].Spent[0].Tokens - p.of("a").sum
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

// Q6: unknown names together have one total over the pool, and the tags by name keep what is reserved for them.
func TestUnknownNamesShareATotalOverAPool(t *testing.T) {
	testkit.SkipRace(t, "it measures")
	synctest.Test(t, func(t *testing.T) {
		p := newMatrixPool(t, 2, throttle.Limit{Max: 200}, throttle.Quotas{
			Tags: map[string]throttle.Quota{"acme": {Reserved: 80}, "beta": {Reserved: 60}}, Other: throttle.Quota{Total: 50},
		})
		p.of("").rate = 50
		for i := range 50 {
			go func() {
				for {
					if _, err := p.pods[i%2].ForTag(fmt.Sprint("name", i)).Acquire(p.ctx, 1); err != nil {
						return
					}
					p.note("", 1)
				}
			}()
		}
		for _, th := range p.pods {
			p.closed(th, "acme", 4, 1)
			p.closed(th, "beta", 4, 1)
		}
		time.Sleep(20 * time.Second)
		require.GreaterOrEqual(t, p.over(20*time.Second, "acme"), 0.97*80)
		require.GreaterOrEqual(t, p.over(20*time.Second, "beta"), 0.97*60)
		require.InDelta(t, 50, p.over(20*time.Second, ""), 5)
		p.within("")
	})
}
