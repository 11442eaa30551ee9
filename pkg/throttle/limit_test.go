package throttle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLimitValidate(t *testing.T) {
	for _, tc := range []struct {
		name string
		l    Limit
		bad  []string // what the error must name; none for a valid limit
	}{
		{"zero is no limit", Limit{}, nil},
		{"usual", Limit{Max: 100, Per: time.Minute, Burst: 20}, nil},
		{"slowest", Limit{Max: 1, Per: 744 * time.Hour}, nil},
		{"fastest", Limit{Max: 1_000_000_000}, nil},
		{"fastest in the shortest period", Limit{Max: 1_000_000, Per: time.Millisecond}, nil},
		{"largest burst", Limit{Max: 1, Burst: 1_000_000_000}, nil},
		{"burst without max", Limit{Burst: 5}, nil},
		{"hard without max", Limit{Burst: 5, Hard: true}, nil},
		{"longest debt", Limit{Max: 1, MaxDebt: 744 * time.Hour}, nil},
		{"shortest debt", Limit{Max: 1, MaxDebt: time.Millisecond}, nil},
		{"negative max", Limit{Max: -1}, []string{"max is -1", "0 (no limit) to 1000000000"}},
		{"max too large", Limit{Max: 1_000_000_001}, []string{"max is 1000000001"}},
		{"negative per", Limit{Max: 1, Per: -time.Second}, []string{"per is -1s", "1ms to 744h"}},
		{"per too short", Limit{Max: 1, Per: time.Millisecond - 1}, []string{"per is 999.999µs"}},
		{"per too long", Limit{Max: 1, Per: 744*time.Hour + 1}, []string{"per is 744h0m0.000000001s"}},
		{"negative burst", Limit{Max: 1, Burst: -2}, []string{"burst is -2", "to 1000000000"}},
		{"burst too large", Limit{Max: 1, Burst: 1_000_000_001}, []string{"burst is 1000000001"}},
		{"faster than a billion per second", Limit{Max: 1_000_001, Per: time.Millisecond}, []string{"max per 1ms is 1000001", "1000000000 tokens per second"}},
		{"all faults at once", Limit{Max: -7, Per: 1, Burst: -8}, []string{"max is -7", "per is 1ns", "burst is -8"}},
		{"per without max", Limit{Per: -1}, []string{"per is -1ns"}},
		{"debt too long", Limit{Max: 1, MaxDebt: 744*time.Hour + 1}, []string{"maxDebt is 744h0m0.000000001s", "1ms to 744h"}},
		{"debt too short", Limit{Max: 1, MaxDebt: time.Millisecond - 1}, []string{"maxDebt is 999.999µs"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.l.Validate()
			_, fromNew := New(tc.l)
			if tc.bad == nil {
				require.NoError(t, err)
				require.NoError(t, fromNew)
				return
			}
			require.Equal(t, err, fromNew)
			for _, part := range tc.bad {
				require.ErrorContains(t, err, part)
			}
		})
	}
}

// The fastest rate is allowed in every period in which it is a whole number.
func TestLimitAllowsTheFastestRateInEveryPeriod(t *testing.T) {
	for ms := 1; ms <= 1000; ms++ {
		l := Limit{Max: ms * 1_000_000, Per: time.Duration(ms) * time.Millisecond}
		require.NoError(t, l.Validate(), "%+v", l)
		l.Max++
		require.Error(t, l.Validate(), "%+v", l)
	}
}

func TestLimitDefaults(t *testing.T) {
	for _, tc := range []struct {
		name  string
		in    Limit
		per   time.Duration
		burst int
	}{
		{"a tenth of a second's worth", Limit{Max: 1000}, time.Second, 100},
		{"at least one", Limit{Max: 3}, time.Second, 1},
		{"per minute", Limit{Max: 6000, Per: time.Minute}, time.Minute, 10},
		{"one per 31 days", Limit{Max: 1, Per: 744 * time.Hour}, 744 * time.Hour, 1},
		{"shorter than 100 ms", Limit{Max: 10, Per: time.Millisecond}, time.Millisecond, 1000},
		{"given", Limit{Max: 1000, Burst: 7}, time.Second, 7},
		{"no limit", Limit{}, time.Second, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			th := whole(t, tc.in)
			require.Equal(t, Limit{Max: tc.in.Max, Per: tc.per, Burst: tc.burst}, th.Limit())
			require.Equal(t, tc.in.Max == 0, th.Unlimited())
		})
	}
}

// extremes are the limits at the corners of what Validate allows.
var extremes = []Limit{
	{Max: 1, Per: maxPer},
	{Max: 1, Per: maxPer, Burst: maxTokens},
	{Max: 1, Per: 24 * time.Hour},
	{Max: 1, Per: minPer},
	{Max: 1},
	{Max: 100},
	{Max: 1000, Per: time.Minute, Burst: 1},
	{Max: 1_000_000, Per: minPer},
	{Max: maxTokens},
	{Max: maxTokens, Burst: maxTokens},
	{Max: maxTokens, Per: maxPer},
	{Max: maxTokens, Per: maxPer, Burst: 1},
}
