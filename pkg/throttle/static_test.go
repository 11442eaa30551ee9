package throttle_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

func TestReplicasServesSeveralThrottles(t *testing.T) {
	s, err := throttle.Replicas(4)
	require.NoError(t, err)
	for range 3 {
		th, err := throttle.New(throttle.Limit{Max: 10}, throttle.WithSharer(s))
		require.NoError(t, err)
		require.Equal(t, int64(limit.WholeShare/4), th.Status().Lease.Share)
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
