package throttle

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/race"
)

// A tag that is paused asks for nothing, however many wait for the end of the pause and however many are refused: the plan gives its part
// to others.
func TestAPausedTagHasNoDemand(t *testing.T) {
	race.Skip(t, "it measures; TestSeveralTagsTryBesideWaiters runs with it")
	long(t)
	inBubble(t, func(t *testing.T, ctx context.Context) {
		th := whole(t, Limit{Max: 1000}, WithQuotas(Quotas{Tags: map[string]Quota{"held": {Reserved: 600}, "other": {}}}))
		(&load{tag: "held", callers: 50}).run(ctx, th)
		asked, got := tries(ctx, th.ForTag("held"), 1, time.Millisecond)
		(&load{tag: "other", callers: 50}).run(ctx, th)
		time.Sleep(5 * time.Second)
		require.InDelta(t, 400, statusOf(th, "other").Rate, 40)
		_, err := th.Pause(ctx, time.Now().Add(time.Minute), "maintenance", PauseTag("held"))
		require.NoError(t, err)
		time.Sleep(5 * time.Second)
		before := got.Load()
		require.InDelta(t, 1000, statusOf(th, "other").Rate, 10)
		require.Zero(t, statusOf(th, "held").Demand)
		time.Sleep(5 * time.Second)
		require.Equal(t, before, got.Load())
		require.Greater(t, asked.Load(), int64(5000))
		time.Sleep(55 * time.Second)
		require.InDelta(t, 400, statusOf(th, "other").Rate, 40, "and asks again when it is over")
	})
}
