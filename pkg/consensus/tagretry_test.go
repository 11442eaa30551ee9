package consensus_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A crowd is a random pool: its limit and quotas, and its callers, each of which has at most one call at a time.
type crowd struct {
	limit   throttle.Limit
	quotas  throttle.Quotas
	pods    int
	callers []drawer
}

// A drawer of a crowd draws n tokens of a tag at a pod, again and again.
type drawer struct {
	pod      int
	tag      string
	n        int
	deadline time.Duration
}

func newCrowd(r *rand.Rand) crowd {
	c := crowd{limit: throttle.Limit{Max: 100, Burst: 40, Hard: r.IntN(2) == 0}, pods: 1 + r.IntN(4)}
	c.quotas.Tags = map[string]throttle.Quota{}
	tags := []string{"a", "b", "c", "d"}
	for _, tag := range tags[:1+r.IntN(4)] {
		q := throttle.Quota{Reserved: r.IntN(3) * 6, Weight: 1 + r.IntN(3)}
		if r.IntN(2) == 0 {
			q.Total = 20 + r.IntN(40)
			q.Burst = 40
		}
		if q.Reserved == 0 && r.IntN(4) == 0 {
			q.Class = throttle.ClassBatch
		}
		c.quotas.Tags[tag] = q
	}
	for range 2 + r.IntN(20) {
		c.callers = append(c.callers, drawer{
			pod: r.IntN(c.pods), tag: tags[r.IntN(len(tags))], n: []int{1, 1, 5, 20, 40}[r.IntN(5)],
			deadline: []time.Duration{time.Millisecond, interval / 2, 2 * time.Second, 10 * time.Second, time.Minute}[r.IntN(5)],
		})
	}
	return c
}

// most is how long a caller can be told to stay away: as long as the whole limit takes for all callers, or the total for those of the tag, and
// two intervals.
func (c *crowd) most(tag string) time.Duration {
	all, own := 0, 0
	for _, o := range c.callers {
		all += o.n
		if o.tag == tag {
			own += o.n
		}
	}
	rate := float64(c.limit.Max)
	if c.limit.Hard {
		rate = float64(c.limit.Max+1-c.limit.Burst) * 12 / 13
	}
	needs := float64(all) / rate
	if total := c.quotas.Tags[tag].Total; total > 0 {
		needs = max(needs, float64(own)/float64(total))
	}
	return time.Duration(needs*float64(time.Second)) + 2*wire.Interval(driver.DefaultLease, c.pods)
}

// call makes the calls of a caller. After a refusal it waits as long as it is told, but for a second at most.
func (c *crowd) call(p *matrixPool, of drawer, refused func(*throttle.Error)) {
	for p.ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(p.ctx, of.deadline)
		_, err := p.pods[of.pod].ForTag(of.tag).Acquire(ctx, of.n)
		cancel()
		if e, ok := errors.AsType[*throttle.Error](err); ok {
			refused(e)
			select {
			case <-p.ctx.Done():
			case <-time.After(min(max(e.RetryAfter, time.Millisecond), time.Second)):
			}
		}
	}
}

// TestRetryAfterIsNoMoreThanTheQueueNeeds: in no pool is a caller told to come again later than the whole limit, or its tag's total, takes for
// all calls that wait, and two intervals.
func TestRetryAfterIsNoMoreThanTheQueueNeeds(t *testing.T) {
	testkit.SkipRace(t, "it measures")
	for seed := range uint64(testkit.Fewer(40)) {
		c := newCrowd(rand.New(rand.NewPCG(seed, 1)))
		synctest.Test(t, func(t *testing.T) {
			p := newMatrixPool(t, c.pods, c.limit, c.quotas)
			time.Sleep(2 * driver.DefaultLease) // it was new, and frozen
			worst := map[string]string{}
			over := map[string]time.Duration{}
			for _, of := range c.callers {
				go c.call(p, of, func(e *throttle.Error) {
					p.mu.Lock()
					defer p.mu.Unlock()
					if late := e.RetryAfter - c.most(of.tag) - time.Microsecond; late > over[of.tag] {
						over[of.tag], worst[of.tag] = late, fmt.Sprintf("%+v: %+v", of, e)
					}
				})
			}
			time.Sleep(2 * time.Minute)
			p.mu.Lock()
			defer p.mu.Unlock()
			require.Empty(t, worst, "seed %d: %+v", seed, c)
		})
	}
}
