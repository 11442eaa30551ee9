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
		hard := whole(t, Limit{Max: 100, Burst: 10, Hard: true})
		other := whole(t, Limit{Max: 1, Per: time.Hour, Burst: 5})
		time.Sleep(6 * time.Hour) // both are full
		both := All(hard, other)
		for range 5 {
			take(t, both, 1)
		}
		for range 1000 {
			deny(t, both, 1)
		}
		take(t, hard, 5, "nothing is lost by refusals")
		deny(t, hard, 1, "and nothing gained")

		// A draw above what a hard limit grants at once is refused for good.
		_, err := All(hard, other).Acquire(t.Context(), 11)
		requireReason(t, ReasonTooLarge, err)

		// Others draw between a draw and its return: it is credited only if a bucket
		// that never drew it would not have overflowed.
		time.Sleep(time.Second) // full
		permit, ok := rateSource{&hard.rateLimiter}.Draw(5)
		require.True(t, ok)
		time.Sleep(50 * time.Millisecond) // earns four, and would have overflowed
		take(t, hard, 9)
		rateSource{&hard.rateLimiter}.Undraw(permit)
		deny(t, hard, 2, "the bucket would have held ten, and one after that draw")
		take(t, hard, 1)
	})
}

func requireReason(t *testing.T, want Reason, err error) {
	t.Helper()
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, want, e.Reason)
}
