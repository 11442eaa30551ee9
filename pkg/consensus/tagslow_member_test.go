package consensus_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A destination accepts so many calls per second, with a burst of a tenth of a second.
type destination struct {
	mu    sync.Mutex
	rate  float64
	level float64
	at    time.Time
}

func (d *destination) can(rate float64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rate = rate
}

func (d *destination) call() throttle.Outcome {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	d.level = min(d.level+d.rate*now.Sub(d.at).Seconds(), max(1, d.rate/10))
	if d.at = now; d.level < 1 {
		return throttle.OutcomeRefused
	}
	d.level--
	return throttle.OutcomeAccepted
}

// A caller counts what became of a tag's calls.
type caller struct{ accepted, refused atomic.Int64 }

// A slowPool is a pool of real members whose limit of 1,000 per second is adaptive.
type slowPool struct{ *matrixPool }

func newSlowPool(t *testing.T, n int, q throttle.Quotas) *slowPool {
	t.Helper()
	t.Cleanup(func() { time.Sleep(time.Second) }) // for the calls under way
	return &slowPool{newMatrixPool(t, n, throttle.Limit{Max: 1000, Adaptive: true}, q)}
}

// call starts callers of a tag at one processor, whose calls take 20 ms. A nil destination accepts them all.
func (p *slowPool) call(t *testing.T, at int, tag string, d *destination, callers int) *caller {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	return p.callUntil(ctx, at, tag, d, callers)
}

// callUntil is call until ctx ends.
func (p *slowPool) callUntil(ctx context.Context, at int, tag string, d *destination, callers int) *caller {
	c := &caller{}
	for range callers {
		go func() {
			for {
				permit, err := p.pods[at].ForTag(tag).Acquire(ctx, 1)
				if err != nil {
					return
				}
				o, count := throttle.OutcomeAccepted, &c.accepted
				if d != nil {
					o = d.call()
				}
				if o != throttle.OutcomeAccepted {
					count = &c.refused
				}
				time.Sleep(20 * time.Millisecond)
				permit.Report(o)
				count.Add(1)
			}
		}()
	}
	return c
}

// everywhere is call at all processors.
func (p *slowPool) everywhere(t *testing.T, tag string, d *destination, callers int) (all []*caller) {
	t.Helper()
	for i := range p.pods {
		all = append(all, p.call(t, i, tag, d, callers))
	}
	return all
}

// became is what became of calls per second in the next d.
func became(d time.Duration, callers ...*caller) (accepted, refused float64) {
	sum := func() (a, r int64) {
		for _, c := range callers {
			a, r = a+c.accepted.Load(), r+c.refused.Load()
		}
		return a, r
	}
	a, r := sum()
	time.Sleep(d)
	a2, r2 := sum()
	return float64(a2-a) / d.Seconds(), float64(r2-r) / d.Seconds()
}

func tagOf(th *throttle.Throttle, tag string) throttle.TagStatus {
	for _, s := range th.Status().Tags {
		if s.Tag == tag {
			return s
		}
	}
	return throttle.TagStatus{}
}

// use is what operators see of a tag of a limit of 1,000 per second.
func (p *slowPool) use(t *testing.T, q throttle.Quotas, tag string) protocol.TagUse {
	t.Helper()
	view, err := protocol.LoadOverview(t.Context(), p.store, "pool")
	require.NoError(t, err)
	var roster []driver.RosterRow
	for i := range view.Processors {
		roster = append(roster, view.Processors[i].RosterRow)
	}
	for _, u := range protocol.PlanTags(roster, q, 1000) {
		if u.Tag == tag {
			return u
		}
	}
	return protocol.TagUse{}
}

// limiting is how often in a minute operators are told once a second that the service limits a tag.
func (p *slowPool) limiting(t *testing.T, q throttle.Quotas, tag string) (n int) {
	t.Helper()
	for range 60 {
		time.Sleep(time.Second)
		if p.use(t, q, tag).By == "limiting" {
			n++
		}
	}
	return n
}

// A tag that the service refuses is slowed down alone over the whole pool. What it cannot use goes to the others, and operators see why.
func TestATagIsSlowedDownOverThePool(t *testing.T) {
	testkit.SkipRace(t, "it measures; TestOneBadProcessorSlowsNobodyElse runs with it")
	testkit.SkipShort(t, "TestOneBadProcessorSlowsNobodyElse runs")
	synctest.Test(t, func(t *testing.T) {
		q := throttle.Quotas{Tags: map[string]throttle.Quota{"a": {}, "b": {}}}
		p := newSlowPool(t, 3, q)
		d := &destination{rate: 1e6, at: time.Now()}
		a, b := p.everywhere(t, "a", d, 16), p.everywhere(t, "b", nil, 40)
		time.Sleep(10 * time.Second)
		got, _ := became(10*time.Second, a...)
		require.InDelta(t, 500, got, 20)

		d.can(60)
		time.Sleep(20 * time.Second)
		got, refused := became(time.Minute, a...)
		others, _ := became(30*time.Second, b...)
		require.GreaterOrEqual(t, got, 48.0)
		require.Less(t, refused, got/15)
		require.Greater(t, others, 900.0, "they get what it cannot use")
		require.Greater(t, p.limiting(t, q, "a"), 45, "of a minute's looks: for a moment it can have all that it asks for")
		for _, th := range p.pods {
			require.Positive(t, tagOf(th, "a").Limiting)
			require.Zero(t, th.Status().Lease.Cuts, "the limit has not fallen")
			require.InDelta(t, 1, th.Status().Backoff.Part, 0)
		}

		d.can(1e6)
		time.Sleep(30 * time.Second)
		for range 6 { // a probe that meets the end of the refusals may cost some seconds more
			if got, _ = became(10*time.Second, a...); got > 480 {
				break
			}
		}
		require.InDelta(t, 500, got, 20, "it comes back with the service")
	})
}

// Whatever the service refuses, a tag gets what is reserved for it, also where it asks at one processor alone.
func TestASlowTagKeepsWhatIsReserved(t *testing.T) {
	testkit.SkipRace(t, "it measures; TestOneBadProcessorSlowsNobodyElse runs with it")
	testkit.SkipShort(t, "TestOneBadProcessorSlowsNobodyElse runs")
	synctest.Test(t, func(t *testing.T) {
		q := throttle.Quotas{Tags: map[string]throttle.Quota{"a": {Reserved: 120}, "b": {}}}
		p := newSlowPool(t, 3, q)
		d := &destination{rate: 30, at: time.Now()}
		a := p.everywhere(t, "a", d, 8)
		b := p.everywhere(t, "b", nil, 20)
		time.Sleep(30 * time.Second)
		got, refused := became(20*time.Second, a...)
		others, _ := became(5*time.Second, b...)
		require.InDelta(t, 120, got+refused, 12)
		require.Greater(t, others, 840.0, "and no more")
		require.Greater(t, p.limiting(t, q, "a"), 45)

		alone := newSlowPool(t, 3, q)
		one := alone.call(t, 1, "a", d, 8)
		alone.everywhere(t, "b", nil, 20)
		time.Sleep(30 * time.Second)
		got, refused = became(10*time.Second, one)
		require.InDelta(t, 120, got+refused, 12)
	})
}

// What is reserved moves with the demand: a processor that is left alone with it gets it all.
func TestWhatIsReservedForASlowTagMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := throttle.Quotas{Tags: map[string]throttle.Quota{"a": {Reserved: 120}, "b": {}}}
		p := newSlowPool(t, 2, q)
		d := &destination{rate: 10, at: time.Now()}
		stays := p.call(t, 0, "a", d, 8)
		ctx, cancel := context.WithCancel(t.Context())
		goes := p.callUntil(ctx, 1, "a", d, 8)
		p.everywhere(t, "b", nil, 20)
		time.Sleep(30 * time.Second)
		got, refused := became(20*time.Second, stays, goes)
		require.InDelta(t, 120, got+refused, 12)
		cancel()
		time.Sleep(10 * time.Second)
		got, refused = became(20*time.Second, stays)
		require.InDelta(t, 120, got+refused, 12)
	})
}

// A processor whose calls are refused for a reason of its own slows the tag nowhere else.
func TestOneBadProcessorSlowsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := throttle.Quotas{Tags: map[string]throttle.Quota{"a": {}, "b": {}}}
		p := newSlowPool(t, 2, q)
		bad := p.call(t, 0, "a", &destination{rate: 5, at: time.Now()}, 16)
		good := p.call(t, 1, "a", nil, 16)
		b := p.everywhere(t, "b", nil, 20)
		time.Sleep(20 * time.Second)
		got, refused := became(20*time.Second, bad)
		require.Less(t, got+refused, 8.0)
		got, _ = became(10*time.Second, good)
		others, _ := became(10*time.Second, b...)
		require.InDelta(t, 500, got, 30, "all of its part")
		require.InDelta(t, 490, others, 30)
		require.Positive(t, tagOf(p.pods[0], "a").Limiting)
		require.Zero(t, tagOf(p.pods[1], "a").Limiting)
		require.NotEqual(t, "limiting", p.use(t, q, "a").By, "it gets its part of the limit")
	})
}

// Where calls of all tags are refused alike the limit falls for all.
func TestThePoolsLimitFallsForAllTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := throttle.Quotas{Tags: map[string]throttle.Quota{"a": {}, "b": {}, "c": {}}}
		p := newSlowPool(t, 3, q)
		d := &destination{rate: 200, at: time.Now()}
		var all []*caller
		for tag := range q.Tags {
			all = append(all, p.everywhere(t, tag, d, 16)...)
		}
		time.Sleep(30 * time.Second)
		got, refused := became(20*time.Second, all...)
		require.InDelta(t, 180, got, 30)
		require.Less(t, refused, got/10)
		require.Positive(t, p.pods[0].Status().Lease.Cuts)
		require.Less(t, p.pods[0].Status().Lease.Ceiling, 950.0) // it rises between cuts
	})
}

// A slow tag keeps to its total too, and comes back to it.
func TestASlowTagKeepsToItsTotal(t *testing.T) {
	testkit.SkipRace(t, "it measures; TestOneBadProcessorSlowsNobodyElse runs with it")
	testkit.SkipShort(t, "TestOneBadProcessorSlowsNobodyElse runs")
	synctest.Test(t, func(t *testing.T) {
		q := throttle.Quotas{Tags: map[string]throttle.Quota{"a": {Total: 90}, "b": {}}}
		p := newSlowPool(t, 3, q)
		d := &destination{rate: 1e6, at: time.Now()}
		a := p.everywhere(t, "a", d, 8)
		p.everywhere(t, "b", nil, 10)
		time.Sleep(10 * time.Second)
		got, _ := became(20*time.Second, a...)
		require.InDelta(t, 90, got, 6)
		d.can(30)
		time.Sleep(20 * time.Second)
		got, refused := became(30*time.Second, a...)
		require.InDelta(t, 27, got, 5)
		require.Less(t, refused, got/8)
		d.can(1e6)
		time.Sleep(30 * time.Second)
		got, _ = became(20*time.Second, a...)
		require.InDelta(t, 90, got, 6)
	})
}
