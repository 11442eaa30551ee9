package throttle

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A caller that read the clock and was then held up must not draw by that
// reading on a lease that has come and gone meanwhile.
func TestStaleClockReadingDoesNotOutliveALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 1000, Burst: 100}, 1)
		time.Sleep(time.Second)
		stale := int64(time.Since(th.gate.Base))
		time.Sleep(time.Second)
		s.lend(1, time.Second)
		time.Sleep(time.Second)
		_, ok := th.bucket.Draw(th.bucket.Units(1), stale)
		require.False(t, ok)
	})
}

// And it must not see less than nothing when the lease is newer than its reading.
func TestStaleClockReadingOnANewerLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 1000, Burst: 100}, 0)
		stale := int64(time.Since(th.gate.Base))
		time.Sleep(time.Second)
		s.give(1)
		_, ok := th.bucket.Draw(th.bucket.Units(1), stale)
		require.False(t, ok)
		time.Sleep(10 * time.Millisecond)
		_, ok = th.bucket.Draw(th.bucket.Units(5), stale)
		require.True(t, ok)
	})
}
