package fakellm

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBucket(t *testing.T) {
	now := time.Unix(0, 0)
	b := newBucket(600, 10*time.Second, now) // 10 a second, up to 100
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
	b.take(500)
	require.InDelta(t, -100, b.level, 1e-9, "debt has a bound")
	b.give(500)
	require.InDelta(t, 100, b.level, 1e-9, "and so has what is given back")

	unlimited := newBucket(0, time.Minute, now)
	unlimited.take(1e9)
	require.True(t, unlimited.has(1e9))
}

func TestWorstAndSum(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	charges := []Charge{{at(0), 1, 100}, {at(30), 1, 50}, {at(59), 0, -40}, {at(60), 1, 80}, {at(200), 1, 10}}
	requests, tokens := Worst(charges, time.Minute)
	require.Equal(t, 2, requests)
	require.Equal(t, 150, tokens, "a window is half open")
	requests, tokens = Sum(charges, at(30), at(60))
	require.Equal(t, 1, requests)
	require.Equal(t, 10, tokens)
}
