package shell

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// These tests join real Members and Throttles that have quotas, over a store in memory and in virtual time, and judge
// what was granted to each tag from outside: by when it was granted.

// A tenant is a tag that asks for tokens at one pod: so many calls per second, of so many tokens each.
type tenant struct {
	tag  string
	pod  int
	rate float64
	cost int
	// from and until are when it asks, since the pool began.
	from, until time.Duration
}

// A grantOf is tokens that were granted to a tag.
type grantOf struct {
	at  time.Duration
	tag string
	n   int
}

// A tagPool is a pool of pods with quotas.
type tagPool struct {
	began  time.Time
	pods   []*throttle.Throttle
	mu     sync.Mutex
	grants []grantOf
	errs   map[string]int
}

// newTagPool starts pods that share one limit, and ends them with the test.
func newTagPool(t *testing.T, pods int, limit throttle.Limit, q throttle.Quotas) *tagPool {
	t.Helper()
	store := memstore.New()
	p := &tagPool{began: time.Now(), errs: map[string]int{}}
	for i := range pods {
		m, err := consensus.Join(t.Context(), store, "pool", consensus.WithID(fmt.Sprint("pod-", i)))
		require.NoError(t, err)
		th, err := throttle.New(limit, throttle.WithSharer(m), throttle.WithQuotas(q), throttle.WithName("limit"),
			throttle.OnClose(m.Leave))
		require.NoError(t, err)
		p.pods = append(p.pods, th)
	}
	return p
}

func (p *tagPool) close(t *testing.T) {
	t.Helper()
	for _, th := range p.pods {
		require.NoError(t, th.Close())
	}
}

// run lets tenants ask, each call in a goroutine of its own that waits for two seconds at most, for as long as d.
func (p *tagPool) run(ctx context.Context, d time.Duration, tenants ...tenant) {
	var wg sync.WaitGroup
	for _, o := range tenants {
		wg.Go(func() { p.ask(ctx, &wg, o, d) })
	}
	wg.Wait()
}

func (p *tagPool) ask(ctx context.Context, wg *sync.WaitGroup, o tenant, d time.Duration) {
	time.Sleep(o.from)
	if o.until == 0 {
		o.until = d
	}
	l := p.pods[o.pod].ForTag(o.tag)
	gap := time.Duration(float64(time.Second) / o.rate)
	for time.Since(p.began) < o.until {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
			permit, err := l.Acquire(ctx, max(o.cost, 1))
			p.mu.Lock()
			defer p.mu.Unlock()
			if err != nil {
				p.errs[o.tag]++
				return
			}
			p.grants = append(p.grants, grantOf{time.Since(p.began), o.tag, permit.N()})
		})
		time.Sleep(gap)
	}
}

// between counts the tokens granted to a tag in a span; all tags when it is empty.
func (p *tagPool) between(tag string, from, until time.Duration) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range p.grants {
		if g.at >= from && g.at < until && (tag == "" || g.tag == tag) {
			n += g.n
		}
	}
	return n
}

// worst is the most that a tag was granted in any window of length w.
func (p *tagPool) worst(tag string, w time.Duration) (most int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.SortFunc(p.grants, func(a, b grantOf) int { return int(a.at - b.at) })
	sum, first := 0, 0
	for _, g := range p.grants {
		if g.tag == tag {
			sum += g.n
		}
		for p.grants[first].at <= g.at-w {
			if p.grants[first].tag == tag {
				sum -= p.grants[first].n
			}
			first++
		}
		most = max(most, sum)
	}
	return most
}

// The interval of a pool with the default lease and few pods, and what a draw is good for.
const (
	tagInterval = 1100 * time.Millisecond
	tagValid    = 2 * tagInterval
)

// totalBound is Q1: the most that a window may see of a total.
func totalBound(total float64, w time.Duration, burst, largest int) int {
	return int(total*(w.Seconds()+tagValid.Seconds()*1.0833+tagInterval.Seconds())) + burst + largest
}

// A total holds over the pool, wherever the tag is asked for, and the pool is fully used by the others.
func TestTotalOfATagOverManyPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTagPool(t, 4, throttle.Limit{Max: 400}, throttle.Quotas{Tags: map[string]throttle.Quota{"capped": {Total: 60}}})
		var tenants []tenant
		for i := range 4 {
			tenants = append(tenants, tenant{tag: "capped", pod: i, rate: 100}, tenant{tag: "hog", pod: i, rate: 200})
		}
		p.run(t.Context(), 40*time.Second, tenants...)
		for _, w := range []time.Duration{time.Second, 5 * time.Second, 20 * time.Second} {
			require.LessOrEqual(t, p.worst("capped", w), totalBound(60, w, 6, 1), "in %s", w)
		}
		used := p.between("capped", 15*time.Second, 35*time.Second)
		require.InDelta(t, 60*20, used, 60, "the total is used")
		require.GreaterOrEqual(t, p.between("", 15*time.Second, 35*time.Second), 400*20*97/100, "the pool is fully used")
		p.close(t)
	})
}

// Q7: where nothing goes wrong all of a budget is used, however many pods hold some of it when it ends.
func TestAllOfABudgetIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTagPool(t, 3, throttle.Limit{Max: 400}, throttle.Quotas{Tags: map[string]throttle.Quota{
			"spent": {Total: 400, Budgets: []throttle.Budget{{Amount: 2000, Per: "day"}}},
		}})
		var tenants []tenant
		for i := range 3 { // other tags draw as well, so that some lots run out before they are used up
			tenants = append(tenants, tenant{tag: "spent", pod: i, rate: 150}, tenant{tag: "other", pod: i, rate: 20})
		}
		p.run(t.Context(), 25*time.Second, tenants...)
		require.Equal(t, 2000, p.between("spent", 0, 30*time.Second))
		p.close(t)
	})
}

// What is reserved comes within four intervals, though it is asked for at one pod of four of which each is flooded.
func TestReservedAtOnePodAmongHogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTagPool(t, 4, throttle.Limit{Max: 400}, throttle.Quotas{Tags: map[string]throttle.Quota{"gold": {Reserved: 200}}})
		tenants := []tenant{{tag: "gold", pod: 2, rate: 190, from: 20 * time.Second}}
		for i := range 4 {
			tenants = append(tenants, tenant{tag: "hog", pod: i, rate: 300})
		}
		p.run(t.Context(), 45*time.Second, tenants...)
		require.Greater(t, p.between("hog", 10*time.Second, 20*time.Second), 400*10*97/100, "before, the hog has it all")
		from := 20*time.Second + 4*tagInterval
		for at := from; at < 40*time.Second; at += time.Second {
			require.GreaterOrEqual(t, p.between("gold", at, at+time.Second), 190*97/100, "at %s", at)
		}
		require.GreaterOrEqual(t, p.between("", 26*time.Second, 44*time.Second), 400*18*97/100)
		p.close(t)
	})
}

// Quiet tags beside a hog wait for themselves alone.
func TestAHogDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTagPool(t, 1, throttle.Limit{Max: 100}, throttle.Quotas{Tags: map[string]throttle.Quota{"quiet": {}, "spent": {Total: 1}}})
		p.run(t.Context(), 30*time.Second,
			tenant{tag: "hog", rate: 300}, tenant{tag: "quiet", rate: 20}, tenant{tag: "spent", rate: 20})
		require.Zero(t, p.errs["quiet"], "no quiet call ran out of time")
		require.Positive(t, p.errs["hog"])
		require.Positive(t, p.errs["spent"])
		require.InDelta(t, 20*20, p.between("quiet", 10*time.Second, 30*time.Second), 8)
		p.close(t)
	})
}

// A thousand names that nobody knows are one tag: what is known keeps what is its own.
func TestUnknownNamesAreOneTag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTagPool(t, 2, throttle.Limit{Max: 200}, throttle.Quotas{
			Tags: map[string]throttle.Quota{"a": {}, "b": {}}, Other: throttle.Quota{Total: 50},
		})
		tenants := []tenant{{tag: "a", pod: 0, rate: 150}, {tag: "b", pod: 1, rate: 150}}
		for i := range 50 {
			tenants = append(tenants, tenant{tag: fmt.Sprint("name-", i), pod: i % 2, rate: 4})
		}
		p.run(t.Context(), 30*time.Second, tenants...)
		for _, tag := range []string{"a", "b"} {
			require.GreaterOrEqual(t, p.between(tag, 10*time.Second, 30*time.Second), 70*20, tag)
		}
		others := 0
		for i := range 50 {
			others += p.between(fmt.Sprint("name-", i), 10*time.Second, 30*time.Second)
		}
		require.LessOrEqual(t, others, totalBound(50, 20*time.Second, 5, 1))
		require.Greater(t, others, 40*20)
		p.close(t)
	})
}
