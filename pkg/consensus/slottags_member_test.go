package consensus_test

import (
	"context"
	"fmt"
	"math/rand/v2"
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
