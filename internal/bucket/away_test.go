package bucket_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/bucket"
)

func TestAwayIsDueByTheSecond(t *testing.T) {
	var none *bucket.Away
	require.Zero(t, none.Due(0, time.Minute))
	var a bucket.Away
	at := func(d time.Duration) int64 { return int64(d) }
	a.Note(0, at(1500*time.Millisecond), 2)
	a.Note(0, at(10*time.Second), 3)
	a.Note(0, at(time.Hour), 5) // as far ahead as it looks
	require.Zero(t, a.Due(0, 900*time.Millisecond))
	require.InDelta(t, 2, a.Due(0, 2*time.Second), 0)
	require.InDelta(t, 5, a.Due(0, time.Minute), 0)
	require.InDelta(t, 3, a.Due(at(2*time.Second), time.Minute), 0, "what is over is not due")
	require.InDelta(t, 10, a.Due(0, time.Hour), 0)
	require.InDelta(t, 5, a.Due(at(bucket.MostAway), time.Second), 0)
	a.Note(at(time.Hour), at(time.Hour), 1)
	require.InDelta(t, 1, a.Due(at(time.Hour), time.Hour), 0, "seconds are used again")
}
