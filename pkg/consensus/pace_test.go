package consensus

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// content returns a processor that holds a little less than it wants, in a pool
// that is frozen for some time or not at all.
func content(t *testing.T, frozen time.Duration) *Processor {
	t.Helper()
	p := NewProcessor(ProcessorConfig{Pool: "p", ID: "a", Policy: Even}, "1")
	for i := range uint64(2) {
		req := p.Request(time.Duration(i)*time.Second, i, Whole)
		require.NoError(t, p.Take(time.Duration(i)*time.Second, Answer{
			Seq: req.Seq, Nonce: i, Lease: DefaultLease, Frozen: frozen, Revision: 1,
			Tags: []TagAnswer{{Share: 490_000_000, Live: 2, PoolSize: 2, Agreed: true, Roster: []RosterRow{
				{ID: "a", Claim: 490_000_000, Demand: Whole, PoolSize: 2},
				{ID: "b", Claim: 510_000_000, Demand: Whole, PoolSize: 2},
			}}},
		}, ""))
	}
	require.Less(t, p.held, p.want)
	return p
}

func TestNextIsOneIntervalAwayWhenNothingIsToBeHad(t *testing.T) {
	p := content(t, 0)
	require.InDelta(t, 2*time.Second, p.Next(time.Second, 1), float64(time.Millisecond))
	require.InDelta(t, 1950*time.Millisecond, p.Next(time.Second, 0), float64(time.Millisecond), "the spread is a twentieth")
}

func TestNextIsTheEndOfAFreeze(t *testing.T) {
	require.Equal(t, time.Second+300*time.Millisecond, content(t, 300*time.Millisecond).Next(time.Second, 1))
}
