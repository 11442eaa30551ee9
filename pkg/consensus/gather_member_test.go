package consensus_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Draws that need twice the part of the burst that a busy pod has come on each of them, and hold up nobody: with quotas and without, patient
// or not, with a tag or none, and of two limits. What is reserved stays so. A draw of the whole burst comes unless it is reserved for others.
func TestLargeDrawsOfAHardLimit(t *testing.T) {
	testkit.SkipRace(t, "it measures")
	testkit.SkipShort(t, "many pools")
	const pods, watched = 4, 100
	for name, c := range map[string]struct {
		bare       bool
		reserved   int
		big, small string        // tags
		size       int           // of the large draws; a few more on each further pod
		within     time.Duration // their deadlines; 0: none
		other      bool          // they also need another limit
		never      bool
	}{
		"no quotas":          {bare: true, size: 40},
		"the whole burst":    {bare: true, size: 77},
		"tags":               {big: "big", small: "small", size: 40},
		"reserved":           {reserved: 100, big: "big", small: "small", size: 40},
		"above the reserved": {reserved: 100, big: "big", small: "small", size: 77, never: true},
		"of one tag":         {reserved: 100, big: "big", small: "big", size: 40},
		"without a tag":      {reserved: 100, size: 40},
		"impatient":          {reserved: 100, big: "big", small: "small", size: 40, within: 5 * time.Second},
		"two limits":         {reserved: 100, big: "big", small: "small", size: 40, other: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newMatrixPool(t, 0, throttle.Limit{Max: 520, Burst: 80, Hard: true}, throttle.Quotas{Tags: map[string]throttle.Quota{
					"acme": {Reserved: c.reserved}, "big": {}, "small": {},
				}})
				p.bare = c.bare
				for i := range pods {
					th := p.join()
					p.closed(th, c.small, 10, 1)
					if c.reserved > 0 && i%2 == 0 {
						p.open(th, "acme", 50, 2)
					}
					large := th.ForTag(c.big)
					if c.other {
						second, err := throttle.New(throttle.Limit{Max: 200, Burst: 100})
						require.NoError(t, err)
						large = throttle.All(large, second)
					}
					for range 3 {
						go func() {
							for p.ctx.Err() == nil {
								ctx, cancel := p.ctx, func() {}
								if c.within > 0 {
									ctx, cancel = context.WithTimeout(p.ctx, c.within)
								}
								if _, err := large.Acquire(ctx, c.size+i); err == nil {
									p.note(c.big, c.size+i)
								}
								cancel()
							}
						}()
					}
				}
				bySize := func() map[int]float64 {
					p.mu.Lock()
					defer p.mu.Unlock()
					sums := map[int]float64{}
					for _, u := range p.used {
						for size, n := range u.bySize {
							sums[size] += float64(n) / watched
						}
					}
					return sums
				}
				time.Sleep(30 * time.Second)
				before := bySize()
				time.Sleep(watched * time.Second)
				rates, all := bySize(), 0.0
				for size := range rates {
					rates[size] -= before[size]
					all += rates[size]
				}
				require.Greater(t, all, 0.93*p.limit.Rate())
				require.Greater(t, rates[1], 0.4*p.limit.Rate())
				if c.reserved > 0 {
					require.Greater(t, rates[2], 0.99*float64(c.reserved))
				}
				for i := range pods {
					require.Equal(t, c.never, rates[c.size+i] == 0, "pod %d: %v", i, rates)
				}
			})
		})
	}
}
