package bucket_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/engine/bucket"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
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

// While callers are away the report is of a longer time, part of it, or of what is expected back: the platform decides who gets them next.
func TestTheReportWhileCallersAreAway(t *testing.T) {
	report := func(away float64, used ...float64) int64 {
		var d bucket.Demand
		sum, got := 0.0, int64(0)
		for i, u := range used {
			sum += u
			now := bucket.Totals{At: int64(i+1) * int64(time.Second), Used: sum, Earned: 1000 * float64(i+1)}
			got = d.Report(now, bucket.Backlog{Away: away, ShortAt: -int64(time.Hour)}, time.Second, 1000.0/float64(time.Second))
		}
		return got
	}
	part := func(of float64) float64 { return of * float64(limit.WholeShare) }
	require.InDelta(t, part(0.1), report(0, 600, 600, 600, 600, 600, 100), part(0.001), "with nobody away only the last second counts")
	require.InDelta(t, part(0.9*(4*600+100)/5000), report(50, 600, 600, 600, 600, 600, 100), part(0.001))
	require.InDelta(t, part(0.05), report(50, 600, 600, 600, 600, 600, 0), part(0.001), "what is expected back")
	require.Zero(t, report(0, 600, 600, 600, 600, 600, 0))
}
