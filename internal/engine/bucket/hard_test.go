package bucket

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// Buckets of all processors hold at most C together, and one processor in Burst
// can still draw.
func TestHardCapacity(t *testing.T) {
	for _, l := range []Config{{Max: 1}, {Max: 3, Burst: 3}, {Max: 1000}, {Max: 7, Burst: 7}, {Max: 1e9, Burst: 1e9}, {Max: 1000, Burst: 1000}} {
		l.Hard = true
		l.Per = time.Second
		if l.Burst == 0 {
			l.Burst = HardBurst(l.Max, l.Per)
		}
		b := made(l)
		for _, n := range []int64{1, 2, 3, 7, 97, 1000} {
			each := b.hardCapacity(limit.WholeShare / n)
			require.LessOrEqual(t, n*each, b.HardUnits())
			require.LessOrEqual(t, b.Tokens(b.HardUnits()), float64(l.Burst)+l.hardSlack()+1e-9)
			if n <= int64(l.Burst) {
				require.GreaterOrEqual(t, each, b.Units(1), "%d processors share %+v", n, l)
			}
			for _, tokens := range []int{1, l.Burst/2 + 1, l.Burst} {
				share := b.HardShare(b.Units(tokens))
				require.GreaterOrEqual(t, b.hardCapacity(share), b.Units(tokens))
				require.Less(t, b.hardCapacity(share-1), b.Units(tokens), "the smallest that does")
			}
		}
	}
}

// The rate of a hard limit is the largest by which a window holds no more than Max, less what nobody notices.
func TestHardRate(t *testing.T) {
	const fast = 13.0 / 12 // a clock that runs so fast
	for _, c := range []Config{
		{Max: 1, Burst: 1}, {Max: 3, Burst: 2}, {Max: 1000, Burst: 100}, {Max: 1000, Burst: 1000}, {Max: 1e9, Burst: 1e8}, {Max: 1e9, Burst: 10},
	} {
		c.Hard, c.Per = true, time.Second
		b := made(c)
		window := b.Tokens(b.HardUnits()) + c.PerPeriod()*fast
		require.Less(t, window, float64(c.Max+1))
		require.InEpsilon(t, float64(c.Max+1), window, 1e-6)
		require.Equal(t, c.Burst, c.MaxCost())
	}
	require.InEpsilon(t, 901/fast, Config{Max: 1000, Burst: 100, Hard: true}.PerPeriod(), 1e-6)
	require.Zero(t, Config{Hard: true}.PerPeriod(), "no limit has no rate")
	require.InDelta(t, 1000, Config{Max: 1000, Burst: 100}.PerPeriod(), 0)
	require.Equal(t, 1000, Config{Max: 1000, Burst: 100}.MaxCost())
	require.Equal(t, 5000, Config{Max: 1000, Burst: 5000}.MaxCost())
}

// A token more than the burst is little; see hardSlack.
func TestHardSlack(t *testing.T) {
	for burst, slack := range map[int]float64{1000: 0.001, 400_000: 0.4, 500_000: 0.5, 1e9: 0.5} {
		b := made(Config{Max: burst, Burst: burst, Hard: true})
		require.InDelta(t, float64(burst)+slack, b.Tokens(b.HardUnits()), b.Tokens(1))
		require.InDelta(t, slack, b.config.hardSlack(), 1e-9)
	}
}

func TestHardBurst(t *testing.T) {
	for _, tc := range []struct {
		most  int
		per   time.Duration
		burst int
	}{
		{1, time.Second, 1},
		{2, time.Second, 1},
		{3, time.Second, 2},
		{14, time.Second, 7},
		{40, time.Second, 8},
		{90, time.Second, 9},
		{1000, time.Second, 100},
		{5000, time.Minute, 100},
		{100_000, time.Minute, 166},
		{100_000, time.Second, 10_000},
		{100_000, 10 * time.Millisecond, 10_000},
	} {
		require.Equal(t, tc.burst, HardBurst(tc.most, tc.per), "%+v", tc)
	}
	require.Equal(t, 250, EarnedIn(time.Second/4, 1000, time.Second))
	require.Equal(t, 0, EarnedIn(time.Second, 59, time.Minute))
	require.Equal(t, 1, EarnedIn(time.Second, 60, time.Minute))
}
