package throttle

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// What All draws from a hard limit and gives back at once because another limit
// refuses counts for nothing; what it wins counts as any draw.
func TestAllWithAHardLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hard, err := New(Limit{Max: 100, Burst: 10, Hard: true})
		require.NoError(t, err)
		other, err := New(Limit{Max: 1, Per: time.Hour, Burst: 5})
		require.NoError(t, err)
		time.Sleep(6 * time.Hour) // both are full
		both := All(hard, other)
		for range 5 {
			_, ok := both.TryAcquire(1)
			require.True(t, ok)
		}
		for range 1000 {
			_, ok := both.TryAcquire(1)
			require.False(t, ok)
		}
		_, ok := hard.TryAcquire(5)
		require.True(t, ok, "nothing is lost by refusals")
		_, ok = hard.TryAcquire(1)
		require.False(t, ok, "and nothing gained")

		// A draw above what a hard limit grants at once is refused for good.
		_, err = All(hard, other).Acquire(t.Context(), 11)
		requireReason(t, ReasonTooLarge, err)

		// Others draw between a draw and its return: it is credited only if a bucket
		// that never drew it would not have overflowed.
		time.Sleep(time.Second) // full
		permit, ok := rateSource{hard}.take(5)
		require.True(t, ok)
		time.Sleep(50 * time.Millisecond) // earns four, and would have overflowed
		_, ok = hard.TryAcquire(9)
		require.True(t, ok)
		rateSource{hard}.untake(permit)
		_, ok = hard.TryAcquire(2)
		require.False(t, ok, "the bucket would have held ten, and one after that draw")
		_, ok = hard.TryAcquire(1)
		require.True(t, ok)
	})
}

func requireReason(t *testing.T, want Reason, err error) {
	t.Helper()
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, want, e.Reason)
}
