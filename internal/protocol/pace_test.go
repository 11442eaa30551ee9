package protocol

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// content returns a processor that holds a little less than it wants, in a pool
// that is frozen for some time or not at all.
func content(t *testing.T, frozen time.Duration) *Processor {
	t.Helper()
	p := NewProcessor(ProcessorConfig{Pool: "p", ID: "a", Policy: Even}, "1")
	for i := range uint64(2) {
		req := p.Request(time.Duration(i)*time.Second, i, Observation{Demand: driver.Whole})
		require.NoError(t, p.Take(time.Duration(i)*time.Second, driver.Answer{
			Seq: req.Seq, Nonce: i, Lease: driver.DefaultLease, Frozen: frozen, Revision: 1,
			Grant: driver.Grant{Share: 490_000_000, Live: 2, PoolSize: 2, Agreed: true, Roster: []driver.RosterRow{
				{ID: "a", Claim: 490_000_000, Demand: driver.Whole, PoolSize: 2},
				{ID: "b", Claim: 510_000_000, Demand: driver.Whole, PoolSize: 2},
			}},
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
	p := content(t, 300*time.Millisecond)
	require.Equal(t, time.Second+300*time.Millisecond, p.Next(time.Second, 0))
	require.Equal(t, time.Second+305*time.Millisecond, p.Next(time.Second, 1), "two processors")
	p.Answer.Live = 1000
	require.Equal(t, 2*time.Second+550*time.Millisecond, p.Next(time.Second, 0.5), "a thousand do not ask all at once")
}

// A processor that could not name all that it has sent could not be told from its
// clone. With as many unanswered requests as it can name it sends the newest again,
// whose answer is too old to rest on but lets it go on.
func TestAllUnansweredRequestsAreNamed(t *testing.T) {
	p := content(t, 0)
	var newest driver.Request
	now := time.Second
	for now < 15*driver.DefaultLease { // a store that refuses at once is asked most often
		p.Poke(now)
		now = max(now+1, p.Next(now, 0))
		newest = p.Request(now, uint64(now), Observation{Demand: driver.Whole})
		p.Failed(now, newest.Seq)
		require.Len(t, newest.Unanswered, int(newest.Seq-newest.LastSeq-1), "all are named")
	}
	require.Len(t, newest.Unanswered, wire.MaxUnanswered-1)
	require.Equal(t, newest, p.Request(now+1, 7, Observation{}), "once more, whatever is in use by now")
	require.Equal(t, driver.Share(490_000_000), p.Held(now), "degraded")

	answer := driver.Answer{
		Seq: newest.Seq, Nonce: newest.Nonce, Lease: driver.DefaultLease, Revision: 2,
		Grant: driver.Grant{Share: 490_000_000, Live: 1, PoolSize: 1, Roster: []driver.RosterRow{{
			ID: "a", Claim: 490_000_000, Demand: driver.Whole,
			PoolSize: 1,
		}}},
	}
	require.NoError(t, p.Take(now+2, answer, ""))
	require.Equal(t, driver.Share(490_000_000), p.Held(now+2), "the answer came too late to grant anything")
	require.LessOrEqual(t, p.Next(now+2, 1), max(now+2, p.urgentAt+p.fast()), "asks at once")
	next := p.Request(now+3, 8, Observation{Demand: driver.Whole})
	require.Equal(t, newest.Seq+1, next.Seq)
	require.Equal(t, driver.Ticket{Seq: newest.Seq, Nonce: newest.Nonce}, driver.Ticket{Seq: next.LastSeq, Nonce: next.LastNonce})
	require.Empty(t, next.Unanswered)
}

// What a processor gives up while the pool is frozen nobody else can have, and it
// would not come back before the freeze ends.
func TestNothingIsGivenUpInAFrozenPool(t *testing.T) {
	for frozen, want := range map[time.Duration]driver.Share{0: driver.Whole / 400, time.Minute: 490_000_000} {
		p := content(t, frozen)
		p.Cfg.Policy = Fair
		p.split.wants = nil
		req := p.Request(2*time.Second, 9, Observation{}) // no demand at all
		require.InDelta(t, int64(want), int64(req.InUse), 1, "frozen for %v", frozen)
		require.Equal(t, req.InUse, p.Held(2*time.Second), "what is reported is in force")
	}
}

// The one that replaced a processor has died, in a pool that has become one of short
// leases meanwhile. The processor is the only one left to move the pool's clock.
func TestReplacedProcessorOutlivesTheOneThatReplacedIt(t *testing.T) {
	row := func(incarnation string, state driver.RowState, claim driver.Share) driver.Row {
		holding := driver.Holding{Claim: claim, InUse: claim, Answered: claim, Demand: claim, PoolSize: 2}
		return driver.Row{RowKey: driver.RowKey{ID: "a", Incarnation: incarnation}, State: state, Seq: 7, Nonce: 700, LastSeen: t0, Holding: holding}
	}
	rows := []driver.Row{row("1", driver.RowReplaced, 0), row("2", driver.RowLive, half)}
	r := &driver.Record{Store: "server", Revision: 50, Clock: t0, Wall: t0, Lease: driver.MinLease, Rows: rows}
	p := NewProcessor(ProcessorConfig{Pool: "pool", ID: "a", Lease: driver.MaxLease}, "1")
	for now := time.Duration(0); ; {
		req := p.Request(now, uint64(now), Observation{Demand: driver.Whole})
		req.LastSeq, req.LastNonce, req.LastTime = 0, 0, 0
		ans, _ := r.Sync(&req, after(now))
		require.NoError(t, p.Take(now, ans, "3"))
		if ans.Status != driver.Replaced {
			require.LessOrEqual(t, now, wire.Removal(driver.MinLease)+2*time.Second)
			return
		}
		require.Less(t, now, time.Minute, "the pool's clock stands still")
		now = p.Next(now, 1)
	}
}

// Up to a hundred processors sync each tenth of the lease. More of them sync less often, so that
// they ask the store a hundred times a second in all; but never less than four times a lease.
func TestIntervalStretchesWithThePool(t *testing.T) {
	for _, tc := range []struct {
		lease time.Duration
		live  int
		want  time.Duration
	}{
		{driver.DefaultLease, 0, time.Second},
		{driver.DefaultLease, 1, time.Second},
		{driver.DefaultLease, 100, time.Second},
		{driver.DefaultLease, 101, 1010 * time.Millisecond},
		{driver.DefaultLease, 200, 2 * time.Second},
		{driver.DefaultLease, 1000, 2500 * time.Millisecond},
		{time.Minute, 200, 6 * time.Second},
		{time.Minute, 1000, 10 * time.Second},
		{2 * time.Second, 1, 200 * time.Millisecond},
		{2 * time.Second, 200, 500 * time.Millisecond},
	} {
		require.Equal(t, tc.want, wire.Interval(tc.lease, tc.live), "%d processors, a lease of %v", tc.live, tc.lease)
		if tc.lease == driver.DefaultLease && tc.live > 0 {
			p := content(t, 0)
			p.Answer.Live = tc.live
			require.Equal(t, time.Second+tc.want, p.Next(time.Second, 1), "it keeps to that")
		}
	}
}
