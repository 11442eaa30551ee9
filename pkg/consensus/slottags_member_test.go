package consensus_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/world"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A greedyOfTag is a greedy holder of slots with one tag, which has a total. Whatever it is asked or told, it has begun all calls that it may
// just before and does so just after.
type greedyOfTag struct {
	greedy

	total, allowed, running int64
	lease                   limit.Lease
	quotas                  limit.Quotas
}

const greedySlots = 16

func (g *greedyOfTag) begin() {
	switch now := time.Now(); {
	case now.After(g.lease.Until.Add(2 * time.Second)):
		g.running = 0 // calls that outlive the removal of a claim are not counted
	case now.Before(g.lease.Until):
		g.running = max(g.running, min(g.allowed, int64(sharing.SlotsOf(g.lease.Share, greedySlots))))
	}
}

func (g *greedyOfTag) change(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.begin()
	f()
	g.begin()
}

func (g *greedyOfTag) Terms() sharing.Terms {
	return sharing.Terms{Slots: greedySlots, Quotas: &g.quotas}
}

func (g *greedyOfTag) SetQuotas(limit.Quotas) {}

func (g *greedyOfTag) Lease(l limit.Lease) { g.change(func() { g.lease = l }) }

func (g *greedyOfTag) GrantSlots(grants []sharing.TagSlotGrant) {
	g.change(func() {
		for _, grant := range grants {
			g.allowed = grant.Granted
		}
	})
}

func (g *greedyOfTag) ReportSlots(int64, int, int) (out []sharing.TagSlotReport) {
	g.change(func() {
		if g.rng.IntN(3) == 0 {
			g.running = 0 // its calls end
		}
		r := sharing.TagSlotReport{Tag: "acme", Total: g.total, Wanted: int64(g.rng.IntN(8)), Demand: 8}
		g.allowed = min(g.allowed, r.Wanted)
		g.begin()
		r.Running, r.InUse = g.running, max(g.running, g.allowed)
		out = append(out, r)
	})
	return out
}

func (g *greedyOfTag) Report(time.Duration) (r sharing.Report) {
	g.change(func() {
		r.Demand, r.InUse = limit.WholeShare, sharing.ShareOf(int(min(g.running, greedySlots)), greedySlots)
	})
	return r
}

// G15: however greedy processors are, and however their messages are lost and late, a tag's calls keep to its total.
func TestGreedyProcessorsKeepToTheTotalOfATag(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rng, store := rand.New(rand.NewPCG(seed, 7)), memstore.New()
				quotas := limit.Quotas{Tags: map[string]limit.Quota{"acme": {Total: 5}}}.WithDefaults(0)
				var links []*world.Link
				var pods []*greedyOfTag
				for i := range 3 {
					link := world.NewLink(store)
					m, err := consensus.Join(t.Context(), link, "pool",
						consensus.WithID(fmt.Sprint("p", i)), consensus.WithLogger(quiet), consensus.WithOnStoreLoss(consensus.Stop))
					require.NoError(t, err)
					g := &greedyOfTag{total: 5, quotas: quotas}
					g.rng = rand.New(rand.NewPCG(seed, uint64(i)))
					m.Attach(g)
					t.Cleanup(func() {
						ctx, end := context.WithTimeout(context.Background(), time.Second)
						defer end()
						_ = m.Leave(ctx)
					})
					links, pods = append(links, link), append(pods, g)
				}
				used := map[int64]bool{}
				for range 6000 {
					time.Sleep(100 * time.Millisecond)
					if link := links[rng.IntN(len(links))]; rng.IntN(60) == 0 {
						link.Cut.Store(rng.IntN(3) == 0)
						link.Lose.Store(int64(rng.IntN(3)))
						link.Takes.Store(rng.Int64N(int64(time.Second / 2)))
						link.Returns.Store(rng.Int64N(int64(time.Second / 4)))
					}
					sum := int64(0)
					for _, g := range pods {
						g.change(func() { sum += g.running })
					}
					used[sum] = true
					require.LessOrEqual(t, sum, int64(5))
				}
				require.True(t, used[5], "all of it is used")
			})
		})
	}
}

// inFlight counts calls in flight by tag, over all limiters.
type inFlight struct {
	mu        sync.Mutex
	now, most map[string]int
}

func (c *inFlight) add(tag string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now[tag] += n
	c.most[tag] = max(c.most[tag], c.now[tag])
}

func (c *inFlight) of(tag string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now[tag]
}

// highest is the most of a tag since the last call.
func (c *inFlight) highest(tag string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	most := c.most[tag]
	c.most[tag] = 0
	return most
}

// calls keeps so many callers of a tag calling at a limiter, until the test ends.
func (c *inFlight) calls(t *testing.T, f *throttle.InFlight, tag string, callers int, length time.Duration) {
	ctx, end := context.WithCancel(context.Background())
	var all sync.WaitGroup
	t.Cleanup(all.Wait)
	t.Cleanup(end)
	for range callers {
		all.Go(func() {
			for {
				p, err := f.ForTag(tag).Acquire(ctx, 1)
				if err != nil {
					return
				}
				c.add(tag, 1)
				_ = world.Sleep(ctx, length)
				c.add(tag, -1)
				p.Settle(1)
			}
		})
	}
}

// Real limiters in a pool: G15 for a tag with a total, G16 for what is reserved, and a total that is lowered while calls are in flight.
func TestSlotsOfTagsOverAPoolOfLimiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, count := memstore.New(), &inFlight{now: map[string]int{}, most: map[string]int{}}
		quotas := throttle.Quotas{Tags: map[string]throttle.Quota{"acme": {Reserved: 4}, "capped": {Total: 3}}}
		var pods []*throttle.InFlight
		for i := range 4 {
			m, err := consensus.Join(t.Context(), store, "pool", consensus.WithID(fmt.Sprint("p", i)), consensus.WithLogger(quiet))
			require.NoError(t, err)
			f, err := throttle.NewInFlight(16, throttle.WithSharer(m), throttle.WithQuotas(quotas), throttle.OnClose(m.Leave))
			require.NoError(t, err)
			t.Cleanup(func() { _ = f.Close() })
			pods = append(pods, f)
			count.calls(t, f, "", 40, 30*time.Second)
			count.calls(t, f, "capped", 10, 2*time.Second)
		}
		time.Sleep(80 * time.Second)
		require.Equal(t, 16, count.of("")+count.of("capped"), "what is reserved is lent")
		require.Contains(t, []int{2, 3}, count.highest("capped"))

		count.calls(t, pods[1], "acme", 8, time.Minute)
		time.Sleep(31*time.Second + 2*interval)
		require.GreaterOrEqual(t, count.of("acme"), 4, "all calls of others have ended since")

		require.NoError(t, protocol.SaveQuota(t.Context(), store, "pool", "capped", &throttle.Quota{Total: 1}, false))
		time.Sleep(2*time.Second + 2*interval)
		require.LessOrEqual(t, count.of("capped"), 1)
		require.LessOrEqual(t, count.highest("capped"), 3)
		time.Sleep(2 * time.Minute)
		require.LessOrEqual(t, count.highest("capped"), 1)
	})
}

// A recorder of slots is a holder that notes in which order it is asked and told.
type recorderOfSlots struct {
	greedyOfTag

	calls []string
}

func (r *recorderOfSlots) note(call string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call)
}

func (r *recorderOfSlots) SetQuotas(limit.Quotas) { r.note("quotas") }

func (r *recorderOfSlots) GrantSlots(g []sharing.TagSlotGrant) {
	r.note("slots")
	r.greedyOfTag.GrantSlots(g)
}

func (r *recorderOfSlots) Lease(l limit.Lease) {
	r.note("lease")
	r.greedyOfTag.Lease(l)
}

func (r *recorderOfSlots) ReportSlots(turn int64, rank, live int) []sharing.TagSlotReport {
	r.note("report on tags")
	return r.greedyOfTag.ReportSlots(turn, rank, live)
}

func (r *recorderOfSlots) Report(window time.Duration) sharing.Report {
	r.note(fmt.Sprint("report over ", window > 0))
	return r.greedyOfTag.Report(window)
}

// What a report on tags gives up is in force before anybody looks at the use, and an answer's slots are before its lease.
func TestOrderOfReportsAndGrantsOfSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		m, err := consensus.Join(t.Context(), store, "pool", consensus.WithLogger(quiet), consensus.WithOnStoreLoss(consensus.Stop))
		require.NoError(t, err)
		r := &recorderOfSlots{greedyOfTag: greedyOfTag{total: 5, quotas: limit.Quotas{Tags: map[string]limit.Quota{"acme": {Total: 5}}}.WithDefaults(0)}}
		r.rng = rand.New(rand.NewPCG(1, 1))
		m.Attach(r)
		time.Sleep(10 * time.Second)
		require.NoError(t, protocol.SaveQuota(t.Context(), store, "pool", "acme", &throttle.Quota{Total: 4}, false))
		time.Sleep(10 * time.Second)
		require.NoError(t, m.Leave(t.Context()))
		seen := map[string]int{}
		for i, call := range r.calls[:len(r.calls)-1] {
			seen[call]++
			switch next := r.calls[i+1]; call {
			case "report on tags":
				require.Equal(t, "report over true", next)
			case "slots":
				require.Equal(t, "lease", next)
			case "quotas":
				require.Contains(t, []string{"slots", "lease"}, next)
			}
		}
		require.Greater(t, seen["slots"], 15)
		require.Greater(t, seen["report on tags"], 15)
		require.Equal(t, 2, seen["quotas"])
	})
}
