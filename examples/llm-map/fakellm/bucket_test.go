package fakellm

import (
	"testing"
	"time"
	_ "time/tzdata" // the same zones on every machine

	"github.com/stretchr/testify/require"
)

func TestBucket(t *testing.T) {
	now := time.Unix(0, 0)
	b := newBucket(600, time.Minute, 10*time.Second, now) // 10 a second, up to 100
	require.True(t, b.has(100))
	require.False(t, b.has(101))
	_, ok := b.wait(101)
	require.False(t, ok, "more than it holds never comes")
	b.take(95)
	wait, ok := b.wait(10)
	require.True(t, ok)
	require.Equal(t, 500*time.Millisecond, wait)
	require.Equal(t, 9500*time.Millisecond, b.full())

	b.advance(now.Add(wait))
	require.True(t, b.has(10))
	b.advance(now) // times that go back change nothing
	require.Equal(t, 10, b.remaining())
	b.punish(500)
	require.InDelta(t, -100, b.level, 1e-9, "the debt of refused calls has a bound")
	b.take(500)
	require.InDelta(t, -600, b.level, 1e-9, "that of served ones has none")
	b.punish(1)
	require.InDelta(t, -600, b.level, 1e-9)
	b.take(-5000)
	require.InDelta(t, 100, b.level, 1e-9, "nor does it hold more than it can")

	unlimited := newBucket(0, time.Minute, time.Minute, now)
	unlimited.take(1e9)
	require.True(t, unlimited.has(1e9))
}

func TestWorstAndSum(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	charges := []Charge{
		{At: at(0), Requests: 1, Tokens: 100},
		{At: at(30), Requests: 1, Tokens: 50},
		{At: at(59), Tokens: -40},
		{At: at(60), Requests: 1, Tokens: 80},
		{At: at(200), Requests: 1, Tokens: 10},
	}
	requests, tokens := Worst(charges, time.Minute)
	require.Equal(t, 2, requests)
	require.Equal(t, 150, tokens, "a window is half open")
	requests, tokens = Sum(charges, at(30), at(60))
	require.Equal(t, 1, requests)
	require.Equal(t, 10, tokens)
}

// A day of 23 and one of 25 hours end at midnight, too.
func TestDailyBucket(t *testing.T) {
	zone, err := time.LoadLocation("America/Los_Angeles")
	require.NoError(t, err)
	for _, c := range []struct {
		from time.Time
		day  time.Duration
	}{
		{time.Date(2026, 3, 8, 0, 0, 0, 0, zone), 23 * time.Hour},
		{time.Date(2026, 11, 1, 0, 0, 0, 0, zone), 25 * time.Hour},
		{time.Date(2026, 11, 2, 0, 0, 0, 0, zone), 24 * time.Hour},
	} {
		b := newDailyBucket(50, zone, c.from)
		b.take(50)
		wait, ok := b.wait(1)
		require.True(t, ok)
		require.Equal(t, c.day, wait)
		b.advance(c.from.Add(wait - time.Nanosecond))
		require.False(t, b.has(1), "it earns nothing")
		b.advance(c.from.Add(wait))
		require.Equal(t, 50, b.remaining())
		_, ok = b.wait(51)
		require.False(t, ok)
	}
}
