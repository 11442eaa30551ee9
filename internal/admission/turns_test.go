package admission

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTurnsFollowEachOther(t *testing.T) {
	const after, each = 100 * time.Millisecond, 50 * time.Millisecond
	now := time.Unix(0, 0)
	var line turns
	for i := range 100 {
		require.Equal(t, after+time.Duration(i)*each, line.take(now, after, each, 0), "the turn of %d", i)
	}
	now = now.Add(3 * time.Second) // the last has its turn 2.05 s later
	require.Equal(t, 2100*time.Millisecond, line.take(now, after, each, 0))
	require.Equal(t, 5*time.Second, line.take(now, 5*time.Second, each, 0), "never before the limiter has tokens")
	now = now.Add(time.Hour)
	require.Equal(t, after, line.take(now, after, each, 0), "the line is over")
}

func TestTurnsWithALead(t *testing.T) {
	const after, each, lead = time.Second, time.Second, 2500 * time.Millisecond
	var line turns
	now := time.Unix(0, 0)
	var got []time.Duration
	for range 6 {
		got = append(got, line.take(now, after, each, lead))
	}
	require.Equal(t, []time.Duration{after, after, after, 1500 * time.Millisecond, 2500 * time.Millisecond, 3500 * time.Millisecond}, got)
}

// Costs differ, and each message has the turn that its own tokens make.
func TestTurnsOfDifferentCosts(t *testing.T) {
	var line turns
	now := time.Unix(0, 0)
	require.Equal(t, time.Second, line.take(now, time.Second, time.Second, 0))
	require.Equal(t, 11*time.Second, line.take(now, time.Second, 10*time.Second, 0))
	require.Equal(t, 12*time.Second, line.take(now, time.Second, time.Second, 0))
}

func TestTurnsAreBounded(t *testing.T) {
	var line turns
	now := time.Unix(0, 0)
	for range 10_000 {
		require.LessOrEqual(t, line.take(now, time.Second, time.Minute, 0), time.Second+mostSpread)
	}
	require.Equal(t, time.Duration(math.MaxInt64), line.take(now, math.MaxInt64, time.Second, 0), "whatever the limiter says")
}
