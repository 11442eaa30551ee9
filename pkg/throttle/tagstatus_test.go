package throttle

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The Status of what ForTag returns is that of the tag: what it has in hand, what it earns, and its pause.
func TestStatusOfATag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := quotaed(t, Limit{Max: 1000, Burst: 500}, tagsOf(map[string]Quota{
			"a": {Total: 10, Burst: 5}, "b": {}, "shadowed": {Total: 10, Burst: 5, Shadow: true},
		}))
		time.Sleep(10 * time.Second)
		status := func(tags ...string) Status { return viewOf(th.ForTags(tags...)).Status() }
		figures := func(tags ...string) []float64 {
			st := status(tags...)
			return []float64{st.Tokens, st.Rate}
		}
		require.Equal(t, []float64{5, 10}, figures("a"))
		require.InDeltaSlice(t, []float64{500, 1000}, figures("b"), 0.001)
		require.InDeltaSlice(t, []float64{500, 1000}, figures("shadowed"), 0.001)
		require.Equal(t, []float64{5, 10}, figures("b", "a"), "the scarcest")
		ofA, ofB := status("a"), status("b")
		require.InDeltaSlice(t, []float64{10, 1000}, []float64{ofA.Ceiling(), ofB.Ceiling()}, 1e-9)
		require.Equal(t, []int{5, 500}, []int{ofA.Limit.Burst, ofB.Limit.Burst})

		pause := func(tag string, d time.Duration) {
			_, err := th.Pause(context.Background(), time.Now().Add(d), "test", PauseTag(tag))
			require.NoError(t, err)
		}
		pause("a", time.Minute)
		require.Equal(t, "a", status("a").Paused.Tag)
		require.Equal(t, "a", status("b", "a").Paused.Tag)
		require.Nil(t, status("b").Paused)
		require.Nil(t, th.Status().Paused)
		require.EqualValues(t, 1, status("a").Pauses)
		require.Zero(t, th.Status().Pauses)
		pause("a", 2*time.Minute) // the same one, longer
		require.EqualValues(t, 1, status("a").Pauses)
		time.Sleep(time.Hour)
		require.Nil(t, status("a").Paused)
		require.EqualValues(t, 1, status("a").Pauses)
		pause("a", time.Minute)
		require.EqualValues(t, 2, status("a").Pauses)
	})
}
