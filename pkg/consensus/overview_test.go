package consensus_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/internal/world"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

func overview(t *testing.T, s driver.Store) protocol.Overview {
	t.Helper()
	o, err := protocol.LoadOverview(t.Context(), s, "pool")
	require.NoError(t, err)
	require.Equal(t, "pool", o.Pool)
	return o
}

func TestOverview(t *testing.T) {
	eachServer(t, func(t *testing.T, s *world.Server) {
		_, err := protocol.LoadOverview(t.Context(), s, "pool")
		require.ErrorIs(t, err, driver.ErrNoPool)
		limited(t, s, "a", throttle.Limit{Max: 600, Per: time.Minute}, 2)
		hard := limited(t, s, "b", throttle.Limit{Max: 1000, Hard: true}, 0)
		time.Sleep(10 * time.Second)

		o := overview(t, s)
		require.Len(t, o.Processors, 2)
		require.True(t, o.Agreed)
		require.Equal(t, 2, o.PoolSize)
		require.Equal(t, "600 1m0s", spell(o.Max, o.Per), "the lowest limit is in force")
		require.Zero(t, o.Override)
		require.Zero(t, o.Ramp)
		a, b := o.Processors[0], o.Processors[1]
		require.Equal(t, "a 600 1m0s", a.ID+" "+spell(a.Max, a.Per))
		require.Equal(t, "b 1000 1s", b.ID+" "+spell(b.Max, b.Per))
		require.True(t, b.Hard)
		require.False(t, a.Hard)
		require.Greater(t, a.Claim, driver.Whole*9/10)
		require.Greater(t, a.Demand, b.Demand)
		require.Equal(t, 2, a.Waiting)
		require.Equal(t, throttle.ReasonLimit, a.Throttled)
		require.InDelta(t, 1, a.Used, 0.1)
		require.Equal(t, protocol.Standing{Granted: 0.831693}, b.Standing, "it is idle")
		require.Equal(t, "600 per 1m (a) counts; 1000 per 1s, hard (b)", protocol.Disagreement(o.Settings, false))

		require.NoError(t, protocol.SaveOverride(t.Context(), s, "pool", protocol.Override{Max: 300}))
		hard.stop()
		hard.link.Cut.Store(true)
		time.Sleep(5 * time.Second)
		o = overview(t, s)
		require.Equal(t, protocol.Override{Max: 300, Per: time.Minute}, o.Override)
		require.Equal(t, "300 1m0s", spell(o.Max, o.Per))
		require.Less(t, o.Processors[0].Silent, 2*interval)
		require.InDelta(t, 5, o.Processors[1].Silent.Seconds(), 2.1, "it was cut off")
	})
}

// Calls in flight have no note of a rate, and tell operators all the same.
func TestOverviewOfCallsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		for i, slots := range []int{30, 20} {
			m, err := consensus.Join(t.Context(), s, "pool", consensus.WithID(fmt.Sprint("p", i)), consensus.WithLogger(quiet))
			require.NoError(t, err)
			f, err := throttle.NewInFlight(slots, throttle.WithSharer(m), throttle.OnClose(m.Leave))
			require.NoError(t, err)
			defer func() { require.NoError(t, f.Close()) }()
			if i == 0 {
				permit, err := f.Acquire(t.Context(), 3)
				require.NoError(t, err)
				defer permit.Cancel()
			}
		}
		time.Sleep(5 * time.Second)
		o := overview(t, s)
		require.Equal(t, 20, o.Slots)
		require.Zero(t, o.Max)
		require.Equal(t, 30, o.Processors[0].Slots)
		require.InDelta(t, 0.1, o.Processors[0].Used, 0.001)
		require.Equal(t, protocol.Standing{Slots: 20}, o.Processors[1].Standing)
		require.Len(t, o.Settings, 2)
	})
}

// A freeze is told by those who know of it, and is over when its time is.
func TestOverviewOfAFreeze(t *testing.T) {
	eachServer(t, func(t *testing.T, s *world.Server) {
		busy(t, s, 2, thousand)
		s.Wipe()
		time.Sleep(2 * time.Second)
		o := overview(t, s)
		require.NotEmpty(t, o.FrozenBy)
		require.InDelta(t, wire.Removal(driver.MinLease).Seconds()-2, o.Frozen.Seconds(), 15)
		require.Positive(t, o.Frozen)
		time.Sleep(wire.Removal(driver.MaxLease) + 5*time.Second)
		require.Zero(t, overview(t, s).Frozen)
	})
}

func spell(tokens int, per time.Duration) string { return fmt.Sprint(tokens, " ", per) }

func TestOverviewShowsTheRamp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		n := limited(t, s, "a", tenToTwenty, 1)
		time.Sleep(30 * time.Second)
		o := overview(t, s)
		require.InDelta(t, n.ceiling(), o.Ramp, 0.3)
		require.Equal(t, time.Second, o.RampPer)
		require.Empty(t, o.Unreadable)
	})
}

func TestOverviewNamesWhatItCannotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		limited(t, s, "a", throttle.Limit{Max: 10}, 0)
		time.Sleep(time.Second)
		for _, name := range []string{"limit", "ramp", "other"} {
			_, err := s.Save(t.Context(), "pool", driver.DocumentReport{Name: name, Version: 1 << 20, Body: []byte("2 of a later version")})
			require.NoError(t, err)
		}
		o := overview(t, s)
		require.Equal(t, []string{"limit", "ramp"}, o.Unreadable)
		require.Len(t, o.Documents, 3)
		require.Equal(t, 10, o.Max)
	})
}
