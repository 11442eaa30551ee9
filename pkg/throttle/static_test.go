package throttle_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

func TestReplicasDividesTheLimit(t *testing.T) {
	for _, tc := range []struct {
		replicas int
		share    int64
		perHour  int64 // of a limit of 90 per second
	}{
		{replicas: 1, share: throttle.WholeShare, perHour: 90 * 3600},
		{replicas: 3, share: 333_333_333, perHour: 30 * 3600},
		{replicas: 1000, share: 1_000_000, perHour: 324},
		{replicas: 100_000, share: 10_000, perHour: 3},
		{replicas: 1_000_000, share: 1000, perHour: 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, err := throttle.Replicas(tc.replicas)
			require.NoError(t, err)
			th, err := throttle.New(throttle.Limit{Max: 90, Burst: 90}, throttle.WithSharer(s))
			require.NoError(t, err)
			defer th.Close()
			require.Equal(t, tc.share, th.Status().Lease.Share)

			// Drawn before the bucket is full. The share does not end, for
			// nothing renews it in this hour.
			var granted int64
			for began := time.Now(); time.Since(began) < time.Hour; {
				time.Sleep(100 * time.Millisecond)
				for {
					if _, ok := th.TryAcquire(1); !ok {
						break
					}
					granted++
				}
			}
			require.LessOrEqual(t, granted, tc.perHour)
			require.GreaterOrEqual(t, float64(granted), 0.99*float64(tc.perHour)-1)
		})
	}
}

func TestReplicasServesSeveralThrottles(t *testing.T) {
	s, err := throttle.Replicas(4)
	require.NoError(t, err)
	for range 3 {
		th, err := throttle.New(throttle.Limit{Max: 10}, throttle.WithSharer(s))
		require.NoError(t, err)
		require.Equal(t, throttle.WholeShare/4, th.Status().Lease.Share)
		require.NoError(t, th.Close())
	}
}

func TestReplicasOutOfRange(t *testing.T) {
	for _, n := range []int{-1, 0, 1_000_001} {
		s, err := throttle.Replicas(n)
		require.Nil(t, s)
		require.ErrorContains(t, err, "allowed: 1 to 1000000")
	}
}
