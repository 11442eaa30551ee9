package ceiling

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling/ramp"
	"github.com/numaproj-contrib/numathrottle/internal/ceiling/state"
)

// The limit in force is the override, or the lowest configured one, and no more than may be.
func TestLimitInForce(t *testing.T) {
	own := Rate{100, time.Second}
	for name, c := range map[string]struct {
		override, lowest Rate
		hard             bool
		want             Rate
	}{
		"as configured":           {want: own},
		"another is lower":        {lowest: Rate{50, time.Second}, want: Rate{50, time.Second}},
		"another is higher":       {lowest: Rate{101, time.Second}, want: own},
		"lowered":                 {override: Rate{5, time.Minute}, lowest: Rate{50, time.Second}, want: Rate{5, time.Minute}},
		"raised":                  {override: Rate{300, 0}, want: Rate{300, time.Second}},
		"raised too far":          {override: Rate{6401, time.Second}, want: Rate{6400, time.Second}},
		"hard, raised":            {override: Rate{101, time.Second}, hard: true, want: own},
		"hard, lowered":           {override: Rate{99, time.Second}, hard: true, want: Rate{99, time.Second}},
		"hard, another is higher": {lowest: Rate{101, time.Second}, hard: true, want: own},
	} {
		l := Law{Config: Config{Limit: own, Hard: c.hard, Burst: 10}, Override: c.override, Lowest: c.lowest}
		require.Equal(t, c.want, l.Limit(), name)
		require.InDelta(t, c.want.Tokens(time.Second), l.At(0, 0), 1e-9, name)
	}
	require.Zero(t, (&Law{Override: Rate{5, time.Second}}).At(0, 0), "there is no limit")
}

// The ceiling is the lowest of the three, and a hard limit leaves each processor a token.
func TestCeilingIsTheLowest(t *testing.T) {
	l := Law{Config: ramped}
	l.Adapts, l.Reserved = true, 1
	l.Settle(state.Present{Now: began, Epoch: began})
	require.InDelta(t, 10, l.At(began, began), 1e-9, "the ramp")
	l.Backoff, _ = l.NextBackoff(refused(began))
	require.InDelta(t, 20*0.49, l.At(began, began), 1e-6, "the backoff")
	require.InDelta(t, 10, l.Granted(began, began), 1e-9)
	l.Override = Rate{5, time.Second}
	require.InDelta(t, 5, l.At(began, began), 1e-9, "the override: what is accepted keeps its rate")
	l.Override = Rate{}
	l.Hard, l.Burst, l.Others = true, 4, 1
	require.InDelta(t, 10, l.At(began, began), 1e-3, "two processors, of which each has a burst of one")
}

// A single process makes its own steps by the same law.
func TestSingleProcess(t *testing.T) {
	l := Law{Config: ramped}
	require.InDelta(t, 10, l.Alone(ramp.Step{}, 0), 1e-9)
	require.InDelta(t, 15, l.Alone(ramp.Step{Now: 30 * second}, 31*second), 0.01)
	require.True(t, l.Moves())
	require.InDelta(t, 20, l.Alone(ramp.Step{Now: 61 * second}, 62*second), 1e-9)
	require.False(t, l.Moves())
	part := adaptive.Part(100, 0)
	require.Equal(t, int64(10_000_000), part.Reserved, "one of a hundred")
	require.InDelta(t, 500_000_500, adaptive.Part(100, 0.5).Reserved, 1, "so much that no rounding costs the token")
}

func TestRateBelow(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const longest = int64(31 * 24 * time.Hour / time.Microsecond)
	random := func() Rate {
		return Rate{1 + rng.Int64N(maxTokens*MaxRaise), time.Duration(1000+rng.Int64N(longest)) * time.Microsecond}
	}
	require.True(t, Rate{1, time.Second}.Below(Rate{61, time.Minute}))
	require.False(t, Rate{1, time.Second}.Below(Rate{60, time.Minute}))
	for range 10_000 {
		a, b := random(), random()
		x, y := a.Tokens(time.Hour), b.Tokens(time.Hour)
		if x < y*(1-1e-9) {
			require.True(t, a.Below(b), "%v %v", a, b)
			require.False(t, b.Below(a), "%v %v", a, b)
		}
	}
}
