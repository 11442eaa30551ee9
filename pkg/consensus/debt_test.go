package consensus_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A processor that owes tokens does not hand on a share that it has used ahead.
func TestLeaveWithDebt(t *testing.T) {
	for _, c := range []struct {
		name string
		debt int // tokens, at 500 per second
		// from and to are when the other may have the share.
		from, to time.Duration
	}{
		{"none", 0, 0, interval + interval/5},
		{"that is soon paid", 1000, 2 * time.Second, 2*time.Second + interval + interval/5},
		{"that takes too long", 20_000, driver.DefaultLease, wire.Removal(driver.DefaultLease) + 2*interval},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, nodes := pool(t, 2, 8)
				left, other := nodes[0], nodes[1]
				permit, err := left.th.Acquire(t.Context(), 1)
				require.NoError(t, err)
				left.stop()
				synctest.Wait()
				permit.Settle(1 + c.debt)
				began := time.Now()
				go func() { _ = left.th.Close() }()
				within(t, c.to, "the whole limit in use", func() bool { return other.share() >= 0.99 })
				require.GreaterOrEqual(t, time.Since(began), c.from-interval/5)
			})
		})
	}
}
