package consensus_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A processor that has little use for its share knows what it gets when it lacks tokens, and gets that much.
func TestLeaseTellsTheEvenShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		l := throttle.Limit{Max: 100}
		busy, idle := limited(t, s, "busy", l, 4), limited(t, s, "idle", l, 0)
		time.Sleep(30 * time.Second)
		lease := idle.th.Status().Lease
		require.Less(t, lease.Share, int64(limit.WholeShare/50))
		require.Equal(t, int64(limit.WholeShare/2), lease.Even)
		require.Greater(t, busy.th.Status().Lease.Share, lease.Even)
		idle.work(t, 4)
		time.Sleep(3 * time.Second)
		require.InDelta(t, lease.Even, idle.th.Status().Lease.Share, float64(limit.WholeShare)/20)
	})
}
