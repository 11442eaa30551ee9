package throttle

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/race"
)

// A load is callers of one tag: so many at a time that wait again and again, or so many calls per second.
type load struct {
	tag     string
	callers int
	rate    int
	n       int
	granted atomic.Int64

	mu    sync.Mutex
	waits []time.Duration
}

// waited notes a wait.
func (l *load) waited(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waits = append(l.waits, d)
}

// forget forgets the waits so far.
func (l *load) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waits = nil
}

// p99 is the wait that one of a hundred is longer than.
func (l *load) p99() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.waits)
	return l.waits[len(l.waits)*99/100]
}

func (l *load) run(ctx context.Context, th Tagger) {
	call := func() {
		began := time.Now()
		if p, err := th.ForTag(l.tag).Acquire(ctx, max(l.n, 1)); err == nil {
			l.granted.Add(int64(p.N()))
			l.waited(time.Since(began))
		}
	}
	for range l.callers {
		go func() {
			for ctx.Err() == nil {
				if _, err := th.ForTag(l.tag).Acquire(ctx, max(l.n, 1)); err == nil {
					l.granted.Add(int64(max(l.n, 1)))
				}
			}
		}()
	}
	if l.rate > 0 {
		go func() {
			for ctx.Err() == nil {
				call()
				time.Sleep(time.Second / time.Duration(l.rate))
			}
		}()
	}
}

// runLoads runs loads for warm, and then for d, of which it returns the rates.
func runLoads(th Tagger, warm, d time.Duration, loads ...*load) (rates []float64) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, l := range loads {
		l.run(ctx, th)
	}
	time.Sleep(warm)
	before := make([]int64, len(loads))
	for i, l := range loads {
		before[i] = l.granted.Load()
		l.forget()
	}
	time.Sleep(d)
	for i, l := range loads {
		rates = append(rates, float64(l.granted.Load()-before[i])/d.Seconds())
	}
	cancel()
	time.Sleep(time.Second)
	return rates
}

// A quiet tag beside one with a thousand callers that wait is served as if it were alone; without quotas it stands behind them all.
func TestQuietTagBesideAHog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, q := range map[string]*Quotas{"fifo": nil, "lanes": {}} {
			var opts []Option
			if q != nil {
				q.Tags = map[string]Quota{"hog": {}, "quiet": {}}
				opts = append(opts, WithQuotas(*q))
			}
			th := whole(t, Limit{Max: 200}, opts...)
			quiet := &load{tag: "quiet", rate: 5}
			rates := runLoads(th, 5*time.Second, 60*time.Second, &load{tag: "hog", callers: 1000}, quiet)
			t.Log(name, rates, quiet.p99())
			if q == nil {
				require.Greater(t, quiet.p99(), 4*time.Second)
			} else {
				require.Less(t, quiet.p99(), 12*time.Millisecond, "two tokens of the limit")
				require.InDelta(t, 195, rates[0], 2, "the rest is the hog's")
			}
			require.NoError(t, th.Close())
		}
	})
}

// The same for tags with totals, whose callers wait as attempts on the quota and the limit.
func TestQuietTagBesideAHogWithTotals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := quotaed(t, Limit{Max: 200}, tagsOf(map[string]Quota{"hog": {Total: 1000}, "quiet": {Total: 100, Burst: 10}}))
		quiet := &load{tag: "quiet", rate: 5}
		rates := runLoads(th, 5*time.Second, 20*time.Second, &load{tag: "hog", callers: 300}, quiet)
		require.Less(t, quiet.p99(), 20*time.Millisecond)
		require.InDelta(t, 195, rates[0], 3)
	})
}

// Who has tokens reserved gets them, whatever others do; what is left is divided by weight.
func TestReservedAndWeights(t *testing.T) {
	race.Skip(t, "it measures; TestQuietTagBesideAHog runs with it")
	synctest.Test(t, func(t *testing.T) {
		th := quotaed(t, Limit{Max: 200}, tagsOf(map[string]Quota{"r": {Reserved: 120}, "light": {Weight: 1}, "heavy": {Weight: 3}}))
		heavy, light := &load{tag: "heavy", callers: 300}, &load{tag: "light", callers: 300}
		rates := runLoads(th, 6*time.Second, 30*time.Second, &load{tag: "r", callers: 50}, light, heavy)
		t.Log(rates)
		require.GreaterOrEqual(t, rates[0], 0.99*120)
		require.InDelta(t, 200, rates[0]+rates[1]+rates[2], 2)
		require.Greater(t, rates[2], 2*rates[1])
	})
}

// What is reserved comes within four seconds after it is asked for, though others have hundreds of callers waiting.
func TestReservedComesSoon(t *testing.T) {
	race.Skip(t, "it measures; TestQuietTagBesideAHog runs with it")
	inBubble(t, func(t *testing.T, ctx context.Context) {
		th := quotaed(t, Limit{Max: 200}, tagsOf(map[string]Quota{"r": {Reserved: 150}, "hog": {}}))
		hog, r := &load{tag: "hog", callers: 2000}, &load{tag: "r", callers: 300}
		hog.run(ctx, th)
		time.Sleep(10 * time.Second)
		r.run(ctx, th)
		time.Sleep(4 * time.Second)
		for range 10 {
			before := r.granted.Load()
			time.Sleep(time.Second)
			require.GreaterOrEqual(t, r.granted.Load()-before, int64(148))
		}
	})
}

// The lower class has what the higher one leaves, but never nothing.
func TestBatchComesAfterInteractive(t *testing.T) {
	race.Skip(t, "it measures; TestQuietTagBesideAHog runs with it")
	synctest.Test(t, func(t *testing.T) {
		th := quotaed(t, Limit{Max: 200}, tagsOf(map[string]Quota{"i": {}, "b": {Class: Batch}}))
		rates := runLoads(th, 5*time.Second, 30*time.Second, &load{tag: "i", callers: 300}, &load{tag: "b", callers: 300})
		t.Log(rates)
		require.InDelta(t, 190, rates[0], 4)
		require.InDelta(t, 10, rates[1], 4)
		rates = runLoads(th, 5*time.Second, 30*time.Second, &load{tag: "b", callers: 300})
		require.InDelta(t, 200, rates[0], 2, "alone it has all")
	})
}

// Draws that do not wait keep to the rates too while somebody else lacks tokens.
func TestDrawsThatDoNotWaitStandBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := quotaed(t, Limit{Max: 100}, tagsOf(map[string]Quota{"hog": {}, "quiet": {Reserved: 20}, "low": {Class: Batch}}))
		var hog, quiet, asked int
		for i := range 30_000 {
			if i == 5000 {
				hog, quiet, asked = 0, 0, 0
			}
			if _, ok := th.ForTag("hog").TryAcquire(1); ok {
				hog++
			}
			if i%100 == 50 {
				asked++
				if _, ok := th.ForTag("quiet").TryAcquire(1); ok {
					quiet++
				}
			}
			time.Sleep(time.Millisecond)
		}
		t.Log(hog, quiet, asked)
		require.Greater(t, quiet, asked*9/10, "ten a second of twenty that are reserved")
		require.Greater(t, hog, 80*25)
	})
}

// A large draw is served although small ones of other tags come all the time, and nothing of the limit is lost meanwhile.
func TestLargeDrawBesideSmallOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := quotaed(t, Limit{Max: 100, Burst: 10}, tagsOf(map[string]Quota{"large": {}, "small": {}}))
		small := &load{tag: "small", rate: 20}
		rates := runLoads(th, 5*time.Second, 60*time.Second, &load{tag: "large", callers: 3, n: 60}, small)
		t.Log(rates, small.p99())
		require.InDelta(t, 100, rates[0]+rates[1], 3)
		require.Greater(t, rates[1], 15.0)
	})
}

// Without quotas the order is that of arrival.
func TestOrderWithoutQuotas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, Limit{Max: 100})
		var mu sync.Mutex
		var order []int
		for i := range 50 {
			go func() {
				_, err := th.ForTag(fmt.Sprint(i%3)).Acquire(context.Background(), 1+i%4)
				assert.NoError(t, err)
				mu.Lock()
				defer mu.Unlock()
				order = append(order, i)
			}()
			synctest.Wait()
		}
		time.Sleep(10 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		require.Len(t, order, 50)
		require.True(t, slices.IsSorted(order))
	})
}

// Draws on several limits with quotas, of several tags, in whatever order, never wait for each other for ever.
func TestDrawsOnSeveralLimitsWithQuotasAllEnd(t *testing.T) {
	for seed := range uint64(race.Fewer(100)) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			names := []string{"a", "b", "c", "", "x"}
			quotas := func() Quotas {
				q := Quotas{Tags: map[string]Quota{}}
				for _, name := range []string{"a", "b", "c"} {
					q.Tags[name] = Quota{Weight: 1 + r.IntN(5), Reserved: r.IntN(10)}
					if r.IntN(2) == 0 {
						q.Tags[name] = Quota{Total: 20 + r.IntN(30), Burst: 1 + r.IntN(20), Reserved: r.IntN(10)}
					}
				}
				return q
			}
			var limits []Tagger
			for range 3 {
				limit := Limit{Max: 50 + r.IntN(100), Burst: 1 + r.IntN(30)}
				if r.IntN(4) == 0 {
					th := whole(t, limit)
					limits = append(limits, th)
					defer th.Close()
					continue
				}
				limits = append(limits, quotaed(t, limit, quotas()))
			}
			slots := flight(t, 3)
			var served atomic.Int64
			calls := 60
			for range calls {
				var of []Limiter
				for _, i := range r.Perm(3)[:1+r.IntN(3)] {
					of = append(of, limits[i].ForTag(names[r.IntN(len(names))]))
				}
				if r.IntN(3) == 0 {
					of = append(of, slots)
				}
				n, wait := 1+r.IntN(12), time.Duration(r.IntN(500))*time.Millisecond
				upTo, used := r.IntN(4) == 0, r.IntN(15)
				go func() {
					time.Sleep(wait)
					l := All(of...)
					draw := l.Acquire
					if upTo {
						draw = l.AcquireUpTo
					}
					p, err := draw(context.Background(), min(n, 3+n*min(len(of), 1)))
					if err == nil || reasonOf(err) == ReasonTooLarge {
						served.Add(1)
						time.Sleep(20 * time.Millisecond)
						p.Settle(used)
					}
				}()
			}
			time.Sleep(5 * time.Minute)
			require.EqualValues(t, calls, served.Load(), "seed %d", seed)
		})
	}
}
