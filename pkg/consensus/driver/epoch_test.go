package driver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

func TestAPoolBeginsAnewWhenAllRowsAreRemoved(t *testing.T) {
	tr := newTrial(t)
	tr.at.Remembers = remembers
	sync := func(a *actor, after time.Duration) Answer {
		tr.wait(after)
		return a.sync()
	}
	a, b, d := tr.actor("a"), tr.actor("b"), tr.actor("d")
	sync(a, 0)
	tr.wait(time.Second)
	a.leave()
	sync(b, time.Second)
	began := sync(b, time.Second).Epoch
	// A processor has died long ago. As long as its row is there, the pool goes on.
	tr.record.Rows[1].LastSeen -= micros(wire.Removal(longest) - 3*time.Second)
	for range 9 {
		require.Equal(t, began, sync(d, 2*time.Second).Epoch)
	}
	require.Len(t, tr.record.Rows, 1)
	// Only a row that is removed in the very step leaves nobody.
	tr.record.Rows[0].LastSeen -= micros(wire.Removal(longest))
	ans := sync(tr.actor("e"), time.Second)
	require.Equal(t, ans.Time, ans.Epoch)
	require.Equal(t, time.Second, ans.Silence)
}

func TestNoTwoLivesBeginAtTheSameTime(t *testing.T) {
	tr := newTrial(t)
	tr.at.Remembers = remembers
	began := tr.actor("a").sync().Epoch
	for _, id := range []string{"b", "c", "d"} {
		tr.record.Rows = nil // all have left and are removed, and the clock has not moved
		tr.wait(time.Hour)
		ans := tr.actor(id).sync()
		require.Equal(t, began+1, ans.Epoch)
		require.Equal(t, t0, ans.Time)
		began = ans.Epoch
	}
}

func TestAPoolThatGoesOnKeepsItsBeginning(t *testing.T) {
	tr := newTrial(t)
	tr.at.Remembers = remembers
	began := tr.actor("a").sync().Epoch
	tr.wait(time.Second)
	require.Equal(t, began, tr.actor("b").sync().Epoch)
}
