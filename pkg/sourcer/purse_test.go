package sourcer

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A note that goes back unused was for no read: a limit on reads gets its token back too.
func TestAnUnusedNoteIsCancelled(t *testing.T) {
	for used, want := range map[int]int64{0: 1, 2: 0} {
		synctest.Test(t, func(t *testing.T) {
			messages, err := throttle.New(throttle.Limit{Max: 100, Burst: 100})
			require.NoError(t, err)
			reads, err := throttle.New(throttle.Limit{Max: 100, Burst: 100})
			require.NoError(t, err)
			time.Sleep(time.Second)
			permit, err := throttle.All(messages, throttle.PerCall(reads)).Acquire(t.Context(), 5)
			require.NoError(t, err)
			require.Empty(t, purse{}.add(permit).spend(used).trim(0))
			require.EqualValues(t, 5-used, messages.Status().Returned)
			require.Equal(t, want, reads.Status().Returned)
			require.NoError(t, messages.Close())
			require.NoError(t, reads.Close())
		})
	}
}
