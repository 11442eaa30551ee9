package fairtags_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/fairtags"
)

func TestAZoneTakesWhatACutLeaves(t *testing.T) {
	for _, c := range []struct{ accepted, refused, ratio float64 }{
		{0, 0, inf},
		{98, 2, inf}, // as many as may be refused
		{97.9, 2.1, 0.85},
		{90, 10, 0.85},
		{80, 20, 0.56},
		{50, 50, 0.49},
		{0, 100, 0.49},
		{math.NaN(), -1, inf},
		{math.NaN(), inf, 0.49},
	} {
		requireRate(t, c.ratio, fairtags.Ratio(c.accepted, c.refused), c)
	}
}

// requireRate is InDelta for numbers that can be infinite.
func requireRate(t *testing.T, want, got float64, of any) {
	t.Helper()
	if math.IsInf(want, 1) {
		require.True(t, math.IsInf(got, 1), "%v: %g", of, got)
		return
	}
	require.InDelta(t, want, got, 1e-9, "%v", of)
}

func TestTheWorstZoneLimitsATag(t *testing.T) {
	zone := func(calls, ratio float64) fairtags.Zone { return fairtags.Zone{Calls: calls, Ratio: ratio} }
	for name, c := range map[string]struct {
		zones []fairtags.Zone
		want  float64
	}{
		"none":                               {nil, inf},
		"healthy ones":                       {[]fairtags.Zone{zone(5, inf), zone(5, inf)}, inf},
		"one":                                {[]fairtags.Zone{zone(10, 0.7)}, 70},
		"the worse of two":                   {[]fairtags.Zone{zone(5, 0.7), zone(5, 0.5)}, 50},
		"the worst of three is ignored":      {[]fairtags.Zone{zone(3, 0.5), zone(3, inf), zone(3, inf)}, inf},
		"not the second worst":               {[]fairtags.Zone{zone(3, 0.5), zone(3, 0.7), zone(3, inf)}, 70},
		"two that are as bad":                {[]fairtags.Zone{zone(3, 0.5), zone(3, 0.5), zone(3, inf)}, 50},
		"one that hardly takes calls":        {[]fairtags.Zone{zone(999, inf), zone(9, 0.5)}, inf},
		"nor does it count among three":      {[]fairtags.Zone{zone(500, 0.5), zone(500, inf), zone(9, inf)}, 50},
		"one that takes a hundredth":         {[]fairtags.Zone{zone(99, inf), zone(1, 0.5)}, 50},
		"one that takes none":                {[]fairtags.Zone{zone(0, 0.5)}, inf},
		"a ratio below 0 lets nothing pass":  {[]fairtags.Zone{zone(1, -1)}, 0},
		"a zone that can take more than now": {[]fairtags.Zone{zone(1, 1.5)}, 150},
	} {
		requireRate(t, c.want, fairtags.Limiting(100, c.zones), name)
	}
}

func TestATagThatMakesMostOfTheRefusedCallsIsLimitedAlone(t *testing.T) {
	for _, c := range []struct {
		refused []float64
		culprit int
	}{
		{nil, -1},
		{[]float64{0, 0}, -1},
		{[]float64{5}, 0},
		{[]float64{5, 6}, 1},
		{[]float64{5, 5}, -1},
		{[]float64{4, 5, 2}, -1},
		{[]float64{math.NaN(), 1, -9}, 1},
	} {
		require.Equal(t, c.culprit, fairtags.Culprit(c.refused), "%v", c.refused)
	}
}

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
	var a fairtags.Average
	for second := range 120 {
		a = a.Next(time.Second, 0, 100+10*float64(second))
	}
	require.InDelta(t, 100+10*119, a.Calls(), 15)
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
}
