package throttle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Debt is told as the time in which the share in force earns it.
func TestDebt(t *testing.T) {
	c := &manualClock{now: time.Unix(1_800_000_000, 0)}
	th := whole(t, Limit{Max: 100, Burst: 10}, WithClock(c))
	c.advance(time.Second)
	require.Zero(t, rateHolder{th}.Report(0).Debt)
	p := take(t, th, 10)
	require.Zero(t, rateHolder{th}.Report(0).Debt, "an empty bucket owes nothing")
	p.Settle(10 + 50)
	require.InDelta(t, 500*time.Millisecond, rateHolder{th}.Report(0).Debt, float64(time.Millisecond))
	th.setLease(Lease{Share: WholeShare / 2, Until: c.Now().Add(time.Second)})
	require.InDelta(t, time.Second, rateHolder{th}.Report(0).Debt, float64(time.Millisecond), "half the share earns it in twice the time")
	c.advance(500 * time.Millisecond)
	require.InDelta(t, 500*time.Millisecond, rateHolder{th}.Report(0).Debt, float64(time.Millisecond))
	c.advance(500 * time.Millisecond)
	require.NotZero(t, rateHolder{th}.Report(0).Debt, "the lease was over a moment before all was paid")
	th.setLease(Lease{})
	require.EqualValues(t, never, rateHolder{th}.Report(0).Debt, "without a share it is never earned")

	unlimited := whole(t, Limit{})
	require.Zero(t, rateHolder{unlimited}.Report(0).Debt)
}
