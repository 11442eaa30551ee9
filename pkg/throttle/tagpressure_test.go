package throttle

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A pressure is callers of one tag that come at a rate in tokens per second, with costs in turn, and give up after a while.
type pressure struct {
	tags     []string
	offered  float64
	costs    []int
	deadline time.Duration // 0: they are patient
	cancel   bool          // they are cancelled then, and say no deadline before
}

// press has callers come for d, and returns how many tokens they got in the second half of it.
func (p pressure) press(ctx context.Context, of func(tags ...string) Limiter, d time.Duration) *atomic.Int64 {
	granted := &atomic.Int64{}
	began := time.Now()
	go func() {
		next := began
		for i := 0; time.Since(began) < d && ctx.Err() == nil; i++ {
			n := p.costs[i%len(p.costs)]
			go func() {
				call, cancel := ctx, context.CancelFunc(func() {})
				switch {
				case p.cancel:
					call, cancel = context.WithCancel(ctx)
					time.AfterFunc(p.deadline, cancel)
				case p.deadline > 0:
					call, cancel = context.WithTimeout(ctx, p.deadline)
				}
				defer cancel()
				permit, err := of(p.tags...).Acquire(call, n)
				if err != nil {
					return
				}
				if since := time.Since(began); since > d/2 && since <= d {
					granted.Add(int64(n))
				}
				permit.Settle(n)
			}()
			next = next.Add(time.Duration(float64(n) / p.offered * float64(time.Second)))
			time.Sleep(time.Until(next))
		}
	}()
	return granted
}

// Whatever a tag is offered and whenever its callers give up, it gets what patient callers of it would get. The others
// ask for more than there is all the time.
func TestImpatientCallersCostTheirTagNothing(t *testing.T) {
	testkit.SkipRace(t, "it measures")
	long(t)
	const limit, d = 100, 12 * time.Second
	kinds := map[string]struct {
		quota Quota
		tags  []string
		with  func(t *testing.T) []Limiter
		gets  float64
	}{
		"reserved":       {quota: Quota{Reserved: 25}, tags: []string{"a"}, gets: 25},
		"total":          {quota: Quota{Total: 15, Reserved: 15, Burst: 4}, tags: []string{"a"}, gets: 15},
		"total above":    {quota: Quota{Total: 40, Reserved: 25}, tags: []string{"a"}, gets: 25},
		"two tags":       {quota: Quota{Reserved: 25}, tags: []string{"a", "model"}, gets: 25},
		"two with total": {quota: Quota{Total: 15, Reserved: 15, Burst: 4}, tags: []string{"a", "model"}, gets: 15},
		"with slots":     {quota: Quota{Reserved: 25}, tags: []string{"a"}, gets: 25, with: func(t *testing.T) []Limiter { return []Limiter{flight(t, 1000)} }},
		"two limits": {quota: Quota{Reserved: 25}, tags: []string{"a"}, gets: 25, with: func(t *testing.T) []Limiter {
			return []Limiter{whole(t, Limit{Max: 1000})}
		}},
	}
	patiences := []pressure{{deadline: time.Second}, {deadline: 100 * time.Millisecond}, {deadline: 300 * time.Millisecond, cancel: true}}
	for i, name := range slices.Sorted(maps.Keys(kinds)) {
		kind := kinds[name]
		for j, load := range []float64{0.95, 1.05, 1.5, 20} {
			p := patiences[(i+j)%len(patiences)]
			t.Run(fmt.Sprintf("%s/%gx/%v/cancelled %v", name, load, p.deadline, p.cancel), func(t *testing.T) {
				t.Parallel()
				inBubble(t, func(t *testing.T, ctx context.Context) {
					th := quotaed(t, Limit{Max: limit}, tagsOf(map[string]Quota{"a": kind.quota, "model": {Total: 95}, "b": {}, "c": {}}))
					var others []Limiter
					if kind.with != nil {
						others = kind.with(t)
					}
					for _, tag := range []string{"b", "c"} {
						pressure{tags: []string{tag}, offered: 1.5 * limit, costs: []int{1}, deadline: time.Second}.press(ctx, th.ForTags, d)
					}
					p.tags, p.offered, p.costs = kind.tags, load*kind.gets, []int{1, 2, 1}
					got := p.press(ctx, func(tags ...string) Limiter {
						if len(others) == 0 {
							return th.ForTags(tags...)
						}
						return All(append([]Limiter{th.ForTags(tags...)}, others...)...)
					}, d)
					time.Sleep(d + 2*time.Second)
					want := min(load, 1) * kind.gets
					require.GreaterOrEqual(t, float64(got.Load())/(d/2).Seconds(), 0.95*want)
				})
			})
		}
	}
}

// A call that gives up spends nothing of a budget, and takes no slot.
func TestImpatientCallersSpendNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		const budget = 500
		q := Quota{Total: 100, Budgets: []Budget{{Amount: budget, Per: limit.PeriodDay}}}
		th := quotaed(t, Limit{Max: 400}, tagsOf(map[string]Quota{"a": q}))
		slots := flight(t, 5)
		l := All(th.ForTag("a"), PerCall(slots))
		for range 200 { // they wait for a slot, for the total, and for nothing
			go func() {
				call, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
				defer cancel()
				if p, err := l.Acquire(call, 3); err == nil {
					time.Sleep(time.Second)
					p.Cancel()
				}
			}()
		}
		time.Sleep(10 * time.Second)
		granted := 0
		for {
			call, cancel := context.WithTimeout(ctx, time.Minute)
			p, err := l.Acquire(call, 1)
			cancel()
			if err != nil {
				var e *Error
				require.ErrorAs(t, err, &e)
				require.Equal(t, ReasonBudget, e.Reason)
				break
			}
			granted++
			p.Settle(1)
		}
		require.Equal(t, budget, granted)
		synctest.Wait()
		requireNobody(t, th)
	})
}
