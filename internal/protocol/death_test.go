package protocol

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// joined is a processor that has asked once, and holds what it was given.
func joined(t *testing.T, r *driver.Record, now *time.Duration, id, incarnation string, lastStates ...LastState) *Processor {
	t.Helper()
	p := NewProcessor(ProcessorConfig{Pool: "pool", ID: id, OnStoreLoss: Stop}, incarnation)
	p.Inherit(*now, lastStates)
	syncOnce(t, r, now, p)
	return p
}

func syncOnce(t *testing.T, r *driver.Record, now *time.Duration, p *Processor) driver.Answer {
	t.Helper()
	*now += 100 * time.Millisecond
	req := p.Request(*now, uint64(*now), Observation{Demand: driver.Whole})
	require.NoError(t, req.Validate())
	ans, _ := r.Sync(&req, driver.At{Now: 1_000_000_000 + now.Microseconds(), Identity: "store", Remembers: time.Hour})
	require.NoError(t, p.Take(*now, ans, p.incarnation+"'"))
	return ans
}

func TestAProcessorTakesOverFromADeadOne(t *testing.T) {
	var r driver.Record
	now := time.Minute
	dead := joined(t, &r, &now, "a", "1")
	require.Equal(t, driver.Whole, dead.Held(now))

	// Without a last state everything is as it was: the claim stays.
	stranger := joined(t, &r, &now, "a", "2")
	require.Zero(t, stranger.Held(now))

	// What dies next is known to be dead: the claims of both are free, and the one that has them does not name them again.
	successor := joined(t, &r, &now, "a", "3", dead.LastState(0), stranger.LastState(0))
	require.Equal(t, driver.Whole, successor.Held(now))
	require.True(t, successor.Inherit(now, nil))
	require.True(t, successor.View(now).TookOver)
	require.Empty(t, successor.Request(now, 1, Observation{Demand: driver.Whole}).Dead)
	require.Len(t, r.Rows, 3, "tsuccessor rows stay")

	// Late packets of the dead are refused, and change nothing.
	require.Equal(t, driver.Replaced, syncOnce(t, &r, &now, dead).Status)
	require.Equal(t, driver.Whole, r.Claims())
}

func TestADeathIsNamedUntilTheStoreHasAnswered(t *testing.T) {
	var r driver.Record
	now := time.Minute
	dead := joined(t, &r, &now, "a", "1")
	successor := NewProcessor(ProcessorConfig{Pool: "pool", ID: "a"}, "2")
	successor.Inherit(now, []LastState{dead.LastState(0)})
	for nonce := range uint64(3) { // lost
		require.Len(t, successor.Request(now, nonce, Observation{Demand: driver.Whole}).Dead, 1)
		require.False(t, successor.Inherit(now, nil))
	}
	at := 1_000_000_000 + now.Microseconds()
	closed := driver.Record{
		Store: "store", Revision: 1, Clock: at, Wall: at, Lease: driver.DefaultLease,
		Rows: []driver.Row{{RowKey: driver.RowKey{ID: "a", Incarnation: "2"}, State: driver.RowCloned, LastSeen: at}},
	}
	require.Equal(t, driver.Cloned, syncOnce(t, &closed, &now, successor).Status)
	require.False(t, successor.Inherit(now, nil), "a refusal settles nothing, under whatever incarnation it goes on")
	syncOnce(t, &r, &now, successor)
	require.True(t, successor.Inherit(now, nil))
	require.Equal(t, driver.Whole, successor.Held(now))
}

func TestDebtOfTheDeadIsEarnedFirst(t *testing.T) {
	var r driver.Record
	now := time.Minute
	dead := joined(t, &r, &now, "a", "1")
	successor := joined(t, &r, &now, "a", "2", dead.LastState(2*time.Second))
	require.Zero(t, successor.Held(now), "the claim earns what is owed")
	now += 2 * time.Second
	syncOnce(t, &r, &now, successor) // frees the claim
	require.Equal(t, urgencyNow, successor.urgency)
	syncOnce(t, &r, &now, successor)
	require.Equal(t, driver.Whole, successor.Held(now))

	// What would take longer than a claim stays is not waited for.
	never := NewProcessor(ProcessorConfig{Pool: "pool", ID: "a"}, "3")
	never.Inherit(now, []LastState{successor.LastState(wire.Removal(driver.MaxLease) + 1), never.LastState(0), {}})
	require.True(t, never.Inherit(now, nil))
	most := successor.LastState(wire.Removal(driver.MaxLease))
	require.False(t, never.Inherit(now, []LastState{most, dead.LastState(0), most}))
	due := now + most.Owes
	require.Equal(t, []death{{most.Death, due}, {dead.LastState(0).Death, now}}, never.Takeover.deaths, "each is named once")
}

func TestTheDeathOfACloneFreesNothing(t *testing.T) {
	for name, closed := range map[string]bool{"closed as a clone's": true, "not known to be one": false} {
		t.Run(name, func(t *testing.T) {
			var r driver.Record
			now := time.Minute
			p := joined(t, &r, &now, "a", "1")
			clone := *p
			lastState := clone.LastState(0) // the clone dies before it has spoken
			syncOnce(t, &r, &now, p)        // the other goes on
			if closed {
				require.Equal(t, driver.Cloned, syncOnce(t, &r, &now, &clone).Status)
				lastState = LastState{Death: driver.Death{Incarnation: "1", Last: driver.Ticket{Seq: r.Rows[0].Seq, Nonce: r.Rows[0].Nonce}}}
			}
			successor := joined(t, &r, &now, "a", "3", lastState)
			require.Zero(t, successor.Held(now))
			require.Equal(t, driver.Whole, p.Held(now))
			require.Equal(t, driver.RowCloned, r.Rows[0].State)
		})
	}
}

func TestATakeoverRecordIsForWhoHoldsIt(t *testing.T) {
	var tm TakeoverRecord
	require.Empty(t, tm.Inherit(true))
	lastState := func(s string) LastState { return LastState{Death: driver.Death{Incarnation: s}} }
	tm.Write(nil, lastState("1"))
	require.Nil(t, tm.Inherit(false))
	var inherited []LastState
	for _, own := range []string{"2", "3", "4", "5", "6"} { // each dies before the store has heard of it
		inherited = tm.Inherit(true)
		tm.Write(inherited, lastState(own))
		tm.Write(inherited, lastState(own))
	}
	require.Equal(t, []LastState{lastState("3"), lastState("4"), lastState("5"), lastState("6")}, tm.Inherit(true), "the oldest are left out")
	tm.Write(nil, lastState("6"))
	require.Equal(t, []LastState{lastState("6")}, tm.Inherit(true))
}

// A process that was killed and has started again under its ID gets a share although nobody knows of the death: the others leave it a part of
// what the dead one's claim leaves.
func TestTheOthersLeaveAShareToASuccessor(t *testing.T) {
	var r driver.Record
	now := time.Minute
	rounds := func(n time.Duration, ps ...*Processor) {
		for range n {
			for _, p := range ps {
				now += time.Second / 4
				syncOnce(t, &r, &now, p)
			}
		}
	}
	other, dead := joined(t, &r, &now, "b", "1"), joined(t, &r, &now, "a", "1")
	rounds(3, other, dead)
	require.Equal(t, driver.Whole/2, dead.Held(now))
	successor := joined(t, &r, &now, "a", "2")
	require.Zero(t, successor.Held(now))
	rounds(3, other, successor)
	require.Equal(t, driver.Whole/4, successor.Held(now))
	require.Equal(t, driver.Whole/4, other.Held(now))
	require.LessOrEqual(t, successor.even, driver.Whole/4)
	require.Equal(t, driver.Whole, r.Claims())
	rounds(2*wire.Removal(driver.DefaultLease)/time.Second, other, successor) // its claim is removed
	require.Equal(t, driver.Whole/2, successor.Held(now))
	require.Equal(t, driver.Whole/2, other.Held(now))
}

func TestLeaveOfAPolicyTheLargestSharesPay(t *testing.T) {
	for _, c := range []struct {
		closed       driver.Share
		shares, want []driver.Share
	}{
		{0, []driver.Share{driver.Whole / 2, driver.Whole / 2}, []driver.Share{driver.Whole / 2, driver.Whole / 2}},
		{driver.Whole / 10, []driver.Share{driver.Whole / 2, driver.Whole / 4}, []driver.Share{driver.Whole / 2, driver.Whole / 4}}, // there is room
		{driver.Whole / 2, []driver.Share{driver.Whole / 10, driver.Whole / 10 * 9}, []driver.Share{driver.Whole / 10, driver.Whole / 10 * 4}},
		{driver.Whole / 2, []driver.Share{driver.Whole / 10 * 2, driver.Whole / 10 * 5, driver.Whole / 10 * 3}, []driver.Share{
			driver.Whole / 6,
			driver.Whole / 6, driver.Whole / 6,
		}},
		{driver.Whole, []driver.Share{driver.Whole / 2, driver.Whole / 2}, []driver.Share{0, 0}},
		{driver.Whole, nil, nil},
	} {
		require.Equal(t, c.want, leave(c.closed, c.shares))
	}
}

func TestFirstSharesComeFromThoseThatClaimNoMoreThanTheirs(t *testing.T) {
	const percent = driver.Whole / 100
	rows := func(claims ...driver.Share) []driver.RosterRow {
		out := make([]driver.RosterRow, len(claims))
		for i, c := range claims {
			out[i].Claim = c * percent
		}
		return out
	}
	shares := func(of ...driver.Share) []driver.Share {
		for i := range of {
			of[i] *= percent
		}
		return of
	}
	none := make([]driver.Share, 3)
	for name, c := range map[string]struct {
		closed              driver.Share
		wants, floors, want []driver.Share
		rows                []driver.RosterRow
	}{
		"one that may be dead keeps its claim": {0, shares(50, 45, 5), none, shares(45, 45, 5), rows(50, 50, 0)},
		"the others pay alike":                 {0, shares(32, 8, 45, 5), make([]driver.Share, 4), shares(28, 7, 45, 5), rows(32, 8, 60, 0)},
		"a quarter of an even share":           {50 * percent, shares(50, 30), none[:2], []driver.Share{driver.Whole * 3 / 8, 30 * percent}, rows(50, 0)},
		"not out of their floors":              {0, shares(50, 45, 5), shares(48, 0, 0), shares(48, 45, 5), rows(50, 50, 0)},
		"one that has a token lacks none":      {0, shares(50, 40, 10), none, shares(50, 40, 10), rows(50, 49, 1)},
		"there is room":                        {0, shares(50, 20, 10), none, shares(50, 20, 10), rows(50, 30, 0)},
		"the claims of removed processes":      {20 * percent, shares(80, 10), none[:2], shares(70, 10), rows(80, 0)},
		"all claim more than their shares":     {0, shares(40, 40, 20), none, shares(40, 40, 20), rows(50, 50, 0)},
	} {
		require.Equal(t, c.want, firstShares(c.closed, percent, c.wants, c.rows, c.floors), name)
	}
}
