package consensus_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

func overview(t *testing.T, s consensus.Store) consensus.Overview {
	t.Helper()
	o, err := consensus.LoadOverview(t.Context(), s, "pool")
	require.NoError(t, err)
	require.Equal(t, "pool", o.Pool)
	return o
}

func TestOverview(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		_, err := consensus.LoadOverview(t.Context(), s, "pool")
		require.ErrorIs(t, err, consensus.ErrNoPool)
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
		require.Greater(t, a.Claim, consensus.Whole*9/10)
		require.Greater(t, a.Demand, b.Demand)

		require.NoError(t, consensus.SaveOverride(t.Context(), s, "pool", consensus.Override{Max: 300}))
		hard.stop()
		hard.link.cut.Store(true)
		time.Sleep(5 * time.Second)
		o = overview(t, s)
		require.Equal(t, consensus.Override{Max: 300, Per: time.Minute}, o.Override)
		require.Equal(t, "300 1m0s", spell(o.Max, o.Per))
		require.Less(t, o.Processors[0].Silent, 2*interval)
		require.InDelta(t, 5, o.Processors[1].Silent.Seconds(), 2.1, "it was cut off")
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
