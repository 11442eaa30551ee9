package consensus_test

import (
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
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A greedy holder begins calls for all that it may whenever it was asked something, and
// at the last moment before its share falls. They end all at once, and what it wants
// changes from one moment to the next.
type greedy struct {
	mu           sync.Mutex
	rng          *rand.Rand
	share, inUse int64
}

func (g *greedy) Lease(l limit.Lease) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.grab()
	g.share = l.Share
}

func (g *greedy) grab() { g.inUse = max(g.inUse, g.share) }

func (g *greedy) Report(window time.Duration) (r sharing.Report) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if window > 0 {
		if g.rng.IntN(2) == 0 {
			g.inUse = 0
		}
		r.Demand = int64(g.rng.IntN(2)) * limit.WholeShare
		return r
	}
	r.InUse = g.inUse
	g.grab()
	return r
}

func (*greedy) Terms() sharing.Terms                         { return sharing.Terms{} }
func (*greedy) SetPauses([]throttle.Paused)                  {}
func (*greedy) ReportTags(time.Duration) []sharing.TagReport { return nil }
func (*greedy) GrantTags([]sharing.TagGrant)                 {}

// What is reported in use is never less than what is, though calls begin up to the last
// moment: the lower share is in force before anybody looks.
func TestNoCallBeginsUnseen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := world.NewServer()
		var holders []*greedy
		for i, id := range []string{"a", "b", "c"} {
			m, err := consensus.Join(t.Context(), s, "pool", consensus.WithID(id), consensus.WithLogger(quiet))
			require.NoError(t, err)
			holders = append(holders, &greedy{rng: rand.New(rand.NewPCG(uint64(i), 1))})
			m.Attach(holders[len(holders)-1])
			defer func() { _ = m.Leave(t.Context()) }()
		}
		for range 10_000 {
			time.Sleep(10 * time.Millisecond)
			total := int64(0)
			for _, h := range holders {
				h.mu.Lock()
				total += h.inUse
				h.mu.Unlock()
			}
			require.LessOrEqual(t, total, int64(limit.WholeShare))
		}
	})
}

// Of an in-flight limit there is nothing to override, and who tries is told.
func TestOverrideOfAnInFlightLimitIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := world.NewServer()
		m, err := consensus.Join(t.Context(), s, "pool", consensus.WithID("a"), consensus.WithLogger(quiet))
		require.NoError(t, err)
		f, err := throttle.NewInFlight(10, throttle.WithSharer(m), throttle.OnClose(m.Leave))
		require.NoError(t, err)
		defer func() { _ = f.Close() }()
		time.Sleep(2 * time.Second)
		err = protocol.SaveOverride(t.Context(), s, "pool", protocol.Override{Max: 5})
		require.ErrorContains(t, err, "calls in flight, and only a limit of tokens can be overridden")
	})
}
