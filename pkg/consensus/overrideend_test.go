package consensus_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/bounds"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
)

// forAWhile saves an override that ends after d.
func forAWhile(t *testing.T, s driver.Store, tokens int, d time.Duration) {
	t.Helper()
	require.NoError(t, protocol.SaveOverride(t.Context(), s, "pool", protocol.Override{
		Max: tokens, Until: time.Now().Add(d), Reason: "a sale", By: "ann@desk",
	}))
}

func TestOverrideEndsByItself(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		nodes := busy(t, s, 3, thousand)
		forAWhile(t, s, 500, time.Minute)
		requireCeiling(t, 500, nodes...)
		o, err := protocol.LoadOverride(t.Context(), s, "pool")
		require.NoError(t, err)
		require.Equal(t, "a sale", o.Reason)
		require.Equal(t, "ann@desk", o.By)
		require.WithinDuration(t, time.Now().Add(time.Minute), o.Until, 2*time.Second)
		time.Sleep(58 * time.Second)
		requireCeiling(t, 500, nodes...)
		time.Sleep(time.Second + 2*interval)
		requireCeiling(t, 1000, nodes...)
		o, err = protocol.LoadOverride(t.Context(), s, "pool")
		require.NoError(t, err)
		require.Zero(t, o, "it is cleared on record, too")
	})
}

// The end outlives the store's memory and the processors.
func TestOverrideEndsAfterAll(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		nodes := busy(t, s, 3, thousand)
		forAWhile(t, s, 500, time.Minute)
		requireCeiling(t, 500, nodes...)
		time.Sleep(10 * time.Second)
		s.wipe()
		time.Sleep(30 * time.Second)
		late := limited(t, s, "late", thousand, 8)
		time.Sleep(10 * time.Second)
		requireCeiling(t, 500, append(nodes, late)...) // given back
		time.Sleep(10*time.Second + 2*interval)
		requireCeiling(t, 1000, append(nodes, late)...)
	})
}

// An override that ends while nobody is there is over for who comes next.
func TestOverrideEndsWhileNobodyIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		n := limited(t, s, "a", thousand, 8)
		time.Sleep(3 * time.Second)
		forAWhile(t, s, 500, time.Minute)
		requireCeiling(t, 500, n)
		time.Sleep(2 * interval) // until then nobody knows the pool's clock
		n.stop()
		require.NoError(t, n.m.Leave(t.Context()))
		time.Sleep(2 * time.Minute)
		next := limited(t, s, "b", thousand, 8)
		time.Sleep(3 * interval)
		require.InDelta(t, 1000, next.ceiling(), 0)
	})
}

func TestOverrideWithAnEndIsChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		limited(t, s, "a", thousand, 8)
		time.Sleep(3 * time.Second)
		now := time.Now()
		for want, o := range map[string]protocol.Override{
			"Until of the override is in -1s":              {Max: 5, Until: now.Add(-time.Second)},
			"allowed: the zero Time (until it is cleared)": {Max: 5, Until: now.Add(bounds.MaxPause + time.Hour)},
			`reason of the override is "a\nb"`:             {Max: 5, Reason: "a\nb"},
			`author of the override is "a\x00"`:            {Max: 5, By: "a\x00"},
		} {
			err := protocol.SaveOverride(t.Context(), s, "pool", o)
			var bad *driver.RequestError
			require.ErrorAs(t, err, &bad)
			require.ErrorContains(t, err, want)
		}
	})
}

// A store that has lost everything has another clock, by which the end is written again: it is on time for who was not there.
func TestOverrideEndsOnAnotherClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		n := limited(t, s, "a", thousand, 8)
		time.Sleep(5 * time.Second)
		forAWhile(t, s, 500, 2*time.Minute)
		requireCeiling(t, 500, n)
		time.Sleep(30 * time.Second)
		s.wipe()
		s.mu.Lock()
		s.skew = time.Hour
		s.mu.Unlock()
		time.Sleep(50 * time.Second)
		late := limited(t, s, "late", thousand, 8)
		time.Sleep(3 * time.Second)
		n.stop()
		require.NoError(t, n.m.Leave(t.Context()))
		time.Sleep(30 * time.Second)
		requireCeiling(t, 500, late)
		time.Sleep(8*time.Second + 2*interval)
		requireCeiling(t, 1000, late)
	})
}
