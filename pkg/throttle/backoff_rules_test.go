package throttle

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A lease says Adapted exactly while the Throttle uses a part of it, whenever the lease comes.
func TestBackoffIsPartOfTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 100, Burst: 100, Adaptive: true}, 1)
		time.Sleep(time.Second)
		take(t, th, 15).Report(OutcomeAccepted)
		take(t, th, 5).Report(OutcomeRefused)
		parts := map[bool]int{}
		for range 2000 {
			time.Sleep(10 * time.Millisecond)
			for ok := true; ok; { // all of it is used
				_, ok = th.TryAcquire(1)
			}
			s.h.Lease(limit.Lease{Share: wholeShare})
			st := th.Status()
			parts[st.Lease.Adapted]++
			require.Equal(t, st.Backoff.Part < 1, st.Lease.Adapted)
			require.Equal(t, int64(st.Backoff.Part*float64(wholeShare)), st.Lease.Share)
		}
		require.Len(t, parts, 2, "it comes back to the whole")
	})
}

// After Close no report counts, and nothing rises any more.
func TestBackoffEndsWithClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, Limit{Max: 100, Burst: 100, Adaptive: true})
		time.Sleep(time.Second)
		take(t, th, 15).Report(OutcomeAccepted)
		late := take(t, th, 5)
		take(t, th, 5).Report(OutcomeRefused)
		th.Report(-5, time.Time{}, OutcomeRefused)
		time.Sleep(300 * time.Millisecond)
		require.NoError(t, th.Close())
		before := th.Status()
		time.Sleep(100 * time.Millisecond)
		late.Report(OutcomeRefused)
		th.onBackoff() // it was due while Close had the lock
		after := th.Status()
		require.Equal(t, before.Lease, after.Lease)
		require.Equal(t, [2]int64{15, 5}, [2]int64{after.Backoff.Accepted, after.Backoff.Refused})
	})
}
