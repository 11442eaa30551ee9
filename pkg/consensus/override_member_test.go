package consensus_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/bounds"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/world"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

var thousand = throttle.Limit{Max: 1000}

// busy starts n processors of one limit and gives them time to agree.
func busy(t *testing.T, s driver.Store, n int, l throttle.Limit) (nodes []*node) {
	t.Helper()
	for i := range n {
		nodes = append(nodes, limited(t, s, fmt.Sprint("p", i), l, 8))
	}
	time.Sleep(5 * time.Second)
	return nodes
}

// requireCeiling fails unless every processor has the ceiling within one interval.
func requireCeiling(t *testing.T, want float64, nodes ...*node) {
	t.Helper()
	within(t, interval+interval/10, fmt.Sprint("a ceiling of ", want), func() bool {
		for _, n := range nodes {
			if n.ceiling() != want {
				return false
			}
		}
		return true
	})
}

func TestInvalidOverrideIsRefusedWhenItIsSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := world.NewServer()
		require.ErrorIs(t, protocol.SaveOverride(t.Context(), s, "pool", protocol.Override{Max: 1}), driver.ErrNoPool)
		nodes := busy(t, s, 1, thousand)
		limited(t, s, "lower", throttle.Limit{Max: 600, Per: time.Minute}, 0)
		time.Sleep(2 * time.Second)
		for _, c := range []struct {
			o    protocol.Override
			want []string
		}{
			{protocol.Override{Max: -1}, []string{"Max is -1", "0 (no override) to 1000000000"}},
			{protocol.Override{Max: 1_000_000_001}, []string{"Max is 1000000001"}},
			{protocol.Override{Max: 1, Per: time.Microsecond}, []string{"Per is 1µs", "1ms to 744h"}},
			{protocol.Override{Max: 1, Per: time.Second + 1}, []string{"Per is 1.000000001s", "whole microseconds"}},
			{protocol.Override{Max: 1_000_000_000, Per: time.Millisecond}, []string{"Max per 1ms is 1000000000", "1000000000 tokens per second"}},
			{protocol.Override{Max: 641, Per: time.Second}, []string{"Max per 1s is 641", "at most 64 times 600 per 1m", `pod "lower"`}},
			{protocol.Override{Max: 38_401}, []string{"Max per 1m is 38401", "at most 64 times 600"}},
		} {
			err := protocol.SaveOverride(t.Context(), s, "pool", c.o)
			var re *driver.RequestError
			require.ErrorAs(t, err, &re)
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
		}
		got, err := protocol.LoadOverride(t.Context(), s, "pool")
		require.NoError(t, err)
		require.Zero(t, got, "nothing was saved")
		require.NoError(t, protocol.SaveOverride(t.Context(), s, "pool", protocol.Override{Max: 38_400}))
		requireCeiling(t, 640, nodes...)
	})
}

// Who is told of a limit that it cannot read must not go on by the old one.
func TestUnreadableOverrideRenewsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := world.NewServer()
		nodes := busy(t, s, 2, thousand)
		v, err := s.Save(t.Context(), "pool", driver.DocumentReport{
			Name: "limit", Version: driver.NextVersion(0, 7), Body: []byte(`{"max":5,"shape":"round"}`),
		})
		require.NoError(t, err)
		time.Sleep(driver.DefaultLease / 2)
		require.Greater(t, nodes[0].share(), 0.0, "the share lasts as long as its lease")
		time.Sleep(driver.DefaultLease)
		for _, n := range nodes {
			require.Zero(t, n.share())
			th, held := n.th.Throttled()
			require.True(t, held)
			require.Equal(t, throttle.ReasonUnreadable, th.Reason)
			require.Equal(t, string(protocol.StateLost), n.m.View().State, "and is not degraded")
		}
		before := nodes[0].link.Syncs.Load()
		time.Sleep(10 * interval)
		require.LessOrEqual(t, nodes[0].link.Syncs.Load()-before, int64(12), "and asks no more often than ever")
		n := limited(t, s, "new", thousand, 1)
		time.Sleep(5 * interval)
		require.Zero(t, n.share())

		_, err = s.Save(t.Context(), "pool", driver.DocumentReport{
			Name: "limit", Version: driver.NextVersion(v, 7), Base: v, Body: []byte(`{"max":5}`),
		})
		require.NoError(t, err)
		within(t, 3*interval, "shares again", func() bool { return sum(append(nodes, n)) > 0.99 })
		requireCeiling(t, 5, append(nodes, n)...)
	})
}

// Two operators at once: one of them wins, and neither is lost without an error.
func TestOverridesAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := world.NewServer()
		busy(t, s, 1, thousand)
		done := make(chan error, 4)
		for i := range cap(done) {
			go func() { done <- protocol.SaveOverride(t.Context(), s, "pool", protocol.Override{Max: 100 + i}) }()
		}
		for range cap(done) {
			err := <-done
			var conflict *driver.ConflictError
			require.True(t, err == nil || errors.As(err, &conflict), "%v", err)
		}
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
