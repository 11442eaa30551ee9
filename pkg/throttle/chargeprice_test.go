package throttle

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A limiter of another package whose price of a charge is nothing is not asked for it.
func TestChargeOfNoPriceAsksNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		empty := full(t, 1)
		take(t, empty, 1)
		require.ErrorIs(t, Charge(hidden{empty}, 5), ErrNotCharged)
		require.NoError(t, Charge(Weigh(hidden{empty}, func(n int) int { return n - 5 }), 5))
	})
}

// A charge of nothing says how long a pause holds callers back, though nobody knows when a slot is free then.
func TestChargeOfNothingInAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := flight(t, 1)
		take(t, f, 1)
		pauseFor(t, f, 7*time.Second)
		var e *Error
		require.ErrorAs(t, Charge(f, 0), &e)
		require.Equal(t, ReasonPause, e.Reason)
		require.InDelta(t, 7.5*1e9, float64(e.RetryAfter), 1e9, "with a stagger")
	})
}
