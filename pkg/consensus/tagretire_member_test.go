package consensus_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/internal/world"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// spent returns what the budgets of a tag count as used, by the store's record.
func (p *matrixPool) spent(tag string) (tokens []int64) {
	p.store.Record(func(r *driver.Record) {
		for _, tagBucket := range slices.Concat(r.TagBuckets, r.Names.TagBuckets) {
			for _, s := range tagBucket.Spent {
				if tagBucket.Key == tagname.Key(tag) {
					tokens = append(tokens, s.Tokens)
				}
			}
		}
	})
	return tokens
}

// Budgets count what was used, and no more, once all pods have left: what was in hand or set aside is given back once, whatever the quota is
// like, and however the store answers at the end.
func TestWhoLeavesGivesBackToBudgets(t *testing.T) {
	day, hour := throttle.Budget{Amount: 100_000, Per: "day"}, throttle.Budget{Amount: 90_000, Per: "hour"}
	budget := throttle.Quota{Budgets: []throttle.Budget{day}}
	total := throttle.Quota{Total: 60, Budgets: []throttle.Budget{day}}
	hard := total
	hard.Hard, hard.Total, hard.Per = true, 600, 10*time.Second
	lower := throttle.Quota{Budgets: []throttle.Budget{{Amount: 100_000, Per: "day", Then: "batch"}, hour}}
	lose := func(f *world.Link) { f.Lose.Store(2) }
	under := func(f *world.Link) { // a sync is under way
		f.Returns.Store(int64(300 * time.Millisecond))
		for n := f.Syncs.Load(); f.Syncs.Load() == n; {
			time.Sleep(10 * time.Millisecond)
		}
	}
	away := func(d time.Duration) func(f *world.Link) {
		return func(f *world.Link) {
			f.Cut.Store(true)
			time.AfterFunc(d, func() { f.Cut.Store(false) })
		}
	}
	for name, c := range map[string]struct {
		quotas throttle.Quotas
		tag    string
		sizes  []int
		end    func(f *world.Link) // what happens to a pod's link to the store when it leaves
		lost   int64
	}{
		"a budget alone":          {quotas: throttle.Quotas{Tags: map[string]throttle.Quota{"a": budget}}},
		"large calls":             {quotas: throttle.Quotas{Tags: map[string]throttle.Quota{"a": budget}}, sizes: []int{150, 1}},
		"two, one lowers":         {quotas: throttle.Quotas{Tags: map[string]throttle.Quota{"a": lower}}},
		"with a total":            {quotas: throttle.Quotas{Tags: map[string]throttle.Quota{"a": total}}},
		"set aside":               {quotas: throttle.Quotas{Tags: map[string]throttle.Quota{"a": total}}, sizes: []int{60}},
		"hard":                    {lost: 20, quotas: throttle.Quotas{Tags: map[string]throttle.Quota{"a": hard}}, sizes: []int{3}},
		"a pattern":               {quotas: throttle.Quotas{Match: []throttle.QuotaPattern{{Tag: "free/*", Quota: budget}}}, tag: "free/x"},
		"all others":              {quotas: throttle.Quotas{Other: budget}, tag: "-"},
		"slow answers":            {quotas: throttle.Quotas{Tags: map[string]throttle.Quota{"a": budget}}, end: under},
		"the answers are cut off": {quotas: throttle.Quotas{Tags: map[string]throttle.Quota{"a": budget}}, end: away(1500 * time.Millisecond)},
		"answers are lost":        {quotas: throttle.Quotas{Tags: map[string]throttle.Quota{"a": budget}}, end: lose},
		"answers lost, set aside": {quotas: throttle.Quotas{Tags: map[string]throttle.Quota{"a": total}}, sizes: []int{60}, end: lose},
		"granted without a store": {lost: 300, quotas: throttle.Quotas{Tags: map[string]throttle.Quota{"a": budget}}, end: func(f *world.Link) {
			away(15 * time.Second)(f)
			time.Sleep(15 * time.Second)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newMatrixPool(t, 3, throttle.Limit{Max: 400}, c.quotas)
				tag, sizes := c.tag, c.sizes
				if tag == "" {
					tag = "a"
				}
				if tag == "-" {
					tag = ""
				}
				above := 2
				if strings.Contains(name, "lost") {
					above = 0 // what is owed counts twice
				}
				if sizes == nil {
					sizes = []int{7}
				}
				for _, th := range p.pods {
					p.settling(th, tag, above, sizes...)
				}
				time.Sleep(30*time.Second + 777*time.Millisecond)
				before := p.spent(tag)
				require.NotEmpty(t, before)
				for i, th := range p.pods {
					if c.end != nil {
						c.end(p.links[i])
					}
					require.NoError(t, th.Close())
				}
				synctest.Wait()
				for _, n := range p.spent(tag) {
					require.GreaterOrEqual(t, n, p.of(tag).sum)
					require.LessOrEqual(t, n, p.of(tag).sum+c.lost, "of %d when they left", before)
				}
				require.Positive(t, p.of(tag).sum)
			})
		})
	}
}

// settling starts a caller at a pod that draws as fast as it can, and uses all of what it drew, or half, or above more.
func (p *matrixPool) settling(th *throttle.Throttle, tag string, above int, sizes ...int) {
	go func() {
		for k := 0; ; k++ {
			n := sizes[k%len(sizes)]
			permit, err := th.ForTag(tag).Acquire(p.ctx, n)
			if err != nil {
				assert.ErrorIs(p.t, err, throttle.ErrClosed)
				return
			}
			used := []int{n, n / 2, n + above}[k%3]
			permit.Settle(used)
			p.note(tag, used)
		}
	}()
}

// A pod that leaves gives back for all of its tags, however many requests they take.
func TestWhoLeavesWithManyTagsGivesBackForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tags = 1500
		name := func(i int) string { return fmt.Sprintf("free/%d", i) }
		free := throttle.Quota{Budgets: []throttle.Budget{{Amount: 100_000, Per: "day"}}}
		p := newMatrixPool(t, 1, throttle.Limit{Max: 100 * tags}, throttle.Quotas{Match: []throttle.QuotaPattern{{Tag: "free/*", Quota: free}}})
		for range 3 {
			for i := range tags {
				go func() {
					if _, err := p.pods[0].ForTag(name(i)).Acquire(p.ctx, 1); err == nil {
						p.note(name(i), 1)
					}
				}()
			}
			time.Sleep(5 * time.Second)
		}
		require.NoError(t, p.pods[0].Close())
		synctest.Wait()
		used, spent := int64(0), int64(0)
		for i := range tags {
			used += p.of(name(i)).sum
			for _, n := range p.spent(name(i)) {
				spent += n
			}
		}
		require.Greater(t, used, int64(tags))
		require.Equal(t, used, spent)
	})
}
