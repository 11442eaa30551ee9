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

// A store that refuses at once is asked most often. Even then a request names every
// one that was sent within the last lease, or clones could not be told apart.
func TestUnansweredRequestsOfOneLeaseAreAllNamed(t *testing.T) {
	p := content(t, 0)
	for now := time.Second; now < 5*DefaultLease; {
		p.Poke(now)
		now = max(now+1, p.Next(now, 0))
		req := p.Request(now, uint64(now), Whole)
		p.Failed(now, req.Seq)
		if len(req.Unanswered) < MaxUnanswered {
			require.Len(t, req.Unanswered, int(req.Seq-req.LastSeq-1), "all are named")
			continue
		}
		// The nonce is the time at which it was sent.
		require.Less(t, req.Unanswered[0].Nonce, uint64(now-DefaultLease))
	}
	req := p.Request(6*DefaultLease, 1, Whole)
	require.Len(t, req.Unanswered, MaxUnanswered)
	require.Equal(t, req.Seq-1, req.Unanswered[MaxUnanswered-1].Seq)
}

// What a processor gives up while the pool is frozen nobody else can have, and it
// would not come back before the freeze ends.
func TestNothingIsGivenUpInAFrozenPool(t *testing.T) {
	for frozen, want := range map[time.Duration]Share{0: Whole / 400, time.Minute: 490_000_000} {
		p := content(t, frozen)
		p.cfg.Policy = Fair
		p.split.wants = nil
		req := p.Request(2*time.Second, 9, 0) // no demand at all
		require.InDelta(t, int64(want), int64(req.Tags[0].InUse), 1, "frozen for %v", frozen)
		require.Equal(t, req.Tags[0].InUse, p.Held(2*time.Second), "what is reported is in force")
	}
}
