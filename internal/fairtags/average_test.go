package fairtags_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/fairtags"
)

// The numbers are those of FoundationDB's tests of tag quotas: 5 transactions a second of 6 pages, then of 12.
func TestTheAverageCostFollowsTheCalls(t *testing.T) {
	var a fairtags.Average
	_, known := a.Cost()
	require.False(t, known)
	after := func(seconds int, cost, calls float64) float64 {
		for range seconds {
			a = a.Next(time.Second, cost, calls)
		}
		average, known := a.Cost()
		require.True(t, known)
		return average
	}
	require.InDelta(t, 6, after(5, 30, 5), 1e-9) // both are known equally well, so their ratio is right from the beginning
	require.InDelta(t, 6, after(60, 30, 5), 1e-9)
	require.InDelta(t, 5, a.Calls(), 0.05)
	require.InDelta(t, 100./6, 100/after(1, 30, 5), 1e-9, "the target of a total of 100 pages a second")
	require.Less(t, after(1, 60, 5), 9.)
	require.InDelta(t, 12, after(20, 60, 5), 1.2)
	require.InDelta(t, 12, after(60, 60, 5), 0.05)
	before := a
	require.Equal(t, before, a.Next(0, 1000, 1))
	require.Equal(t, before, a.Next(-time.Second, 1000, 1))
}

func TestFewCallsHaveNoAverageCost(t *testing.T) {
	var a fairtags.Average
	for range 100 {
		a = a.Next(time.Second, 6, 0.9)
	}
	_, known := a.Cost()
	require.False(t, known)
	for range 100 {
		a = a.Next(time.Second, 6.6, 1.1)
	}
	cost, known := a.Cost()
	require.True(t, known)
	require.InDelta(t, 6, cost, 0.2)
	for range 200 {
		a = a.Next(time.Second, 0, 0)
	}
	_, known = a.Cost()
	require.False(t, known)
}

// A level that follows its trend too closely swings: FoundationDB's IgnoreWorstZone ends at 1.67 calls a second, which is little enough to
// be taken for none if it swung by half.
func TestTheAverageDoesNotSwing(t *testing.T) {
	var a fairtags.Average
	for second := range 120 {
		rate := 5.
		if second >= 60 {
			rate = 10. / 6
		}
		a = a.Next(time.Second, 6*rate, rate)
		require.Greater(t, a.Calls(), min(1.25, float64(second)))
		require.Less(t, a.Calls(), 5.5)
	}
}

// Without the trend an average lags by ten seconds' worth behind what rises steadily.
func TestTheAverageDoesNotLagBehindATrend(t *testing.T) {
	for _, step := range []time.Duration{time.Second / 4, time.Second, 2 * time.Second} {
		var a fairtags.Average
		for at := time.Duration(0); at < 2*time.Minute; at += step {
			a = a.Next(step, 0, (100+10*at.Seconds())*step.Seconds())
		}
		require.InDelta(t, 100+10*(120-step.Seconds()), a.Calls(), 3, "each %v", step)
	}
}

// How often it is asked does not matter much.
func TestTheAverageKnowsHowLongItTook(t *testing.T) {
	var often, seldom fairtags.Average
	for range 30 {
		seldom = seldom.Next(2*time.Second, 60, 10)
		for range 20 {
			often = often.Next(100*time.Millisecond, 3, 0.5)
		}
	}
	require.InDelta(t, often.Calls(), seldom.Calls(), 0.25)
	require.InDelta(t, 5, seldom.Calls(), 0.25)
	cost, ok := seldom.Cost()
	require.True(t, ok)
	require.InDelta(t, 6, cost, 0.1)
}
