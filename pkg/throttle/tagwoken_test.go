package throttle

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

// A countingClock is the machine's clock, and counts the timers that are made with it.
type countingClock struct{ timers atomic.Int64 }

func (c *countingClock) Now() time.Time { return time.Now() }

func (c *countingClock) AfterFunc(d time.Duration, f func()) sharing.Timer {
	return time.AfterFunc(d, func() {
		c.timers.Add(1)
		f()
	})
}

// Callers of tags with totals that together are more than the limit are woken when their turn comes, and do not look by themselves: however
// many wait, the limit is used, by all tags alike, and it takes no more timers for a grant.
func TestWaitersAreWokenAndDoNotPoll(t *testing.T) {
	testkit.SkipRace(t, "it measures")
	long(t)
	for _, callers := range []int{10, 100} {
		inBubble(t, func(t *testing.T, ctx context.Context) {
			const limit, tags, d = 2000, 100, 5 * time.Second
			quotas := map[string]Quota{}
			for i := range tags {
				quotas[fmt.Sprint("tag-", i)] = Quota{Total: 5 * limit / (2 * tags)}
			}
			clock := &countingClock{}
			th := whole(t, Limit{Max: limit}, WithQuotas(tagsOf(quotas)), withClock(clock))
			granted := make([]atomic.Int64, tags)
			for i := range tags {
				for range callers {
					go func() {
						for {
							if _, err := th.ForTag(fmt.Sprint("tag-", i)).Acquire(ctx, 1); err != nil {
								return
							}
							granted[i].Add(1)
						}
					}()
				}
			}
			time.Sleep(2 * time.Second)
			before, timers := make([]int64, tags), clock.timers.Load()
			for i := range granted {
				before[i] = granted[i].Load()
			}
			time.Sleep(d)
			all := int64(0)
			for i := range granted {
				n := granted[i].Load() - before[i]
				require.InDelta(t, limit/tags*d.Seconds(), n, 5, "tag %d", i)
				all += n
			}
			require.InEpsilon(t, limit*d.Seconds(), all, 0.01)
			require.Less(t, float64(clock.timers.Load()-timers)/float64(all), 2.5,
				"timers for each grant, of %d callers: one at the limit, one at the tag", callers)
		})
	}
}
