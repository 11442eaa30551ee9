package protocol

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
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

func TestASyncTimeoutFollowsTheLease(t *testing.T) {
	for lease, want := range map[time.Duration]time.Duration{2 * time.Second: 500 * ms, 4200 * ms: 700 * ms, 10 * time.Second: time.Second} {
		require.Equal(t, want, SyncTimeout(lease))
	}
}

// Only a large pool with a slow store is patient, and its intervals count for how long a process may have been silent.
func TestALargePoolOfASlowStoreIsPatient(t *testing.T) {
	p := content(t, 0)
	for _, c := range []struct {
		live     int
		stretch  float64
		patient  bool
		patience time.Duration
	}{{64, 1, false, 6 * time.Second}, {63, 1.5, false, 6 * time.Second}, {64, 1.5, true, 6 * time.Second}, {64, 4, true, 9 * time.Second}} {
		p.Answer.Live, p.load.factor = c.live, c.stretch
		require.Equal(t, c.patient, p.patient(), c)
		require.Equal(t, c.patience, p.patience(), c)
	}
}

// Who holds a share or is issued tokens waits for at most half of what is left of its lease, but for an interval, or two in a large pool.
func TestTheLongestBackoff(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		but  func(p *Processor)
		want time.Duration
	}{
		"it holds a share":     {func(*Processor) {}, 4 * s},
		"it has none":          {func(p *Processor) { p.held = 0 }, 5 * s},
		"tokens are issued":    {func(p *Processor) { p.held, p.issuing = 0, true }, 4 * s},
		"they were issued":     {func(p *Processor) { p.held, p.winding = 0, true }, 4 * s},
		"it goes on by itself": {func(p *Processor) { p.state, p.degraded, p.until = StateLost, true, p.attempt+4*s }, 3 * s},
		"soon over":            {func(p *Processor) { p.until = p.attempt + s }, s},
		"nearly a large pool":  {func(p *Processor) { p.until, p.Answer.Live = p.attempt+s, largePool-1 }, s},
		"a large pool":         {func(p *Processor) { p.until, p.Answer.Live = p.attempt+s, largePool }, 2 * s},
	} {
		p := content(t, 0)
		p.failures, p.until = 20, p.attempt+8*s
		c.but(p)
		require.Equal(t, c.want, p.backoff(), name)
	}
}

// A request is early only for who can grow at the end of a freeze, and for who has not asked just now.
func TestNextIsNotTooEarly(t *testing.T) {
	const s = time.Second
	require.Zero(t, NewProcessor(ProcessorConfig{Pool: "p", ID: "a"}, "1").Next(0, 1), "it has yet to join")
	for name, c := range map[string]struct {
		but  func(p *Processor)
		want time.Duration
	}{
		"the freeze was over":    {func(p *Processor) { p.frozen = p.attempt }, 2 * s},
		"the freeze is over":     {func(p *Processor) { p.frozen = p.attempt + 1 }, 1100 * ms},
		"it has what it wants":   {func(p *Processor) { p.frozen, p.want = p.attempt+1, p.held }, 2 * s},
		"it has asked just now":  {func(p *Processor) { p.urgency, p.urgentAt = urgencyNow, s }, 1100 * ms},
		"it has asked long ago":  {func(p *Processor) { p.urgency, p.urgentAt = urgencyNow, 0 }, s},
		"it has time until then": {func(p *Processor) { p.urgency = urgencyFast }, 1100 * ms},
	} {
		p := content(t, 0)
		c.but(p)
		require.Equal(t, c.want, p.Next(s, 1), name)
	}
}

// A caller brings a request forward if the store does not know of the lack yet, or there is something to be had; with tags, once per interval.
func TestWhatACallerBringsForward(t *testing.T) {
	for name, c := range map[string]struct {
		but         func(p *Processor)
		once, twice urgency
	}{
		"the store does not know":  {func(*Processor) {}, urgencyFast, urgencyFast},
		"it does":                  {func(p *Processor) { p.demand = driver.Whole }, urgencyNone, urgencyNone},
		"it does, and has nothing": {func(p *Processor) { p.held, p.demand = 0, driver.Whole }, urgencyFast, urgencyFast},
		"tokens are issued":        {func(p *Processor) { p.held, p.demand, p.issuing = 0, driver.Whole, true }, urgencyNone, urgencyNone},
		"it is replaced":           {func(p *Processor) { p.state = StateReplaced }, urgencyNone, urgencyNone},
		"it has left":              {func(p *Processor) { p.state = StateLeft }, urgencyNone, urgencyNone},
		"one is due at once":       {func(p *Processor) { p.urgency = urgencyNow }, urgencyNow, urgencyNone},
		"tags":                     {func(p *Processor) { p.tags.buckets, p.tags.extra.from = true, 0 }, urgencyFast, urgencyNone},
		"tags, and it has nothing": {func(p *Processor) { p.tags.buckets, p.held = true, 0 }, urgencyFast, urgencyFast},
	} {
		p := content(t, 0)
		p.demand = 1
		p.Answer.Roster[1].Claim = driver.Whole // much more than it should have
		c.but(p)
		p.Poke(time.Second)
		require.Equal(t, c.once, p.urgency, name)
		p.urgency = urgencyNone
		if c.once != urgencyNow {
			p.Poke(time.Second)
		}
		require.Equal(t, c.twice, p.urgency, name)
	}
}

// divided is a processor of three by a policy that wants so much for each; the processor has the ID.
func divided(t *testing.T, id string, wants ...driver.Share) *Processor {
	t.Helper()
	p := content(t, 0)
	p.Cfg.ID, p.Cfg.Policy = id, func([]driver.RosterRow) []driver.Share { return wants }
	p.Answer.Closed, p.Answer.Roster, p.split.wants = 0, []driver.RosterRow{{ID: "a"}, {ID: "b"}, {ID: "c"}}, nil
	return p
}

// A processor gives up what it holds above what it wants, unless that is less than 5 % and nobody lacks as much.
func TestWhatIsGivenUp(t *testing.T) {
	for name, c := range map[string]struct {
		held driver.Share
		but  func(p *Processor)
		want driver.Share
	}{
		"a little more":        {209, func(*Processor) {}, 209},
		"5 % more":             {210, func(*Processor) {}, 200},
		"of a hard limit":      {209, func(p *Processor) { p.ceiling.law.Hard = true }, 200},
		"another lacks a part": {209, func(p *Processor) { p.Answer.Roster[2].Claim = 94 }, 200},
		"the freeze is over":   {300, func(p *Processor) { p.frozen = time.Second }, 200},
		"it is frozen":         {300, func(p *Processor) { p.frozen = time.Second + 1 }, 300},
		"it joins":             {300, func(p *Processor) { p.state = StateJoining }, 300},
		"nobody is known":      {300, func(p *Processor) { p.Answer.Roster = nil }, 300},
		"it is unknown":        {300, func(p *Processor) { p.Cfg.ID = "x" }, 300},
	} {
		p := divided(t, "b", 100, 200, 100)
		p.Answer.Roster[0].Claim, p.Answer.Roster[2].Claim = 95, 95
		p.held = c.held
		c.but(p)
		p.choose(time.Second)
		require.Equal(t, c.want, p.held, name)
	}
}

// The even share is what the policy gives to who needs all, and at most an equal part.
func TestEvenShare(t *testing.T) {
	for id, want := range map[string]driver.Share{"a": 100, "b": 200, "c": driver.Whole / 3, "x": 0} {
		p := divided(t, id)
		p.Cfg.Policy = func(rows []driver.RosterRow) []driver.Share {
			for i := range rows {
				require.Equal(t, rows[i].ID == id, rows[i].Demand == driver.Whole)
			}
			return []driver.Share{100, 200, driver.Whole / 2}
		}
		require.Equal(t, want, p.evenShare(), id)
	}
}

// There is hope where another has over 5 % more than it should, and for who has nothing where something is free.
func TestHope(t *testing.T) {
	for name, c := range map[string]struct {
		held, demand driver.Share
		but          func(p *Processor)
		want         bool
	}{
		"another has 5 % more":      {1, 1, func(p *Processor) { p.Answer.Roster[0].Claim = 105 }, false},
		"it has more than that":     {1, 1, func(p *Processor) { p.Answer.Roster[0].Claim = 106 }, true},
		"it has itself":             {1, 1, func(p *Processor) { p.Answer.Roster[1].Claim = 1000 }, false},
		"until the freeze is over":  {1, 1, func(p *Processor) { p.Answer.Roster[0].Claim, p.frozen = 106, time.Second+1 }, false},
		"when it is over":           {1, 1, func(p *Processor) { p.Answer.Roster[0].Claim, p.frozen = 106, time.Second }, true},
		"too little is free":        {0, 1, func(p *Processor) { p.Answer.Closed = driver.Whole - 400 }, false},
		"something is free":         {0, 1, func(p *Processor) { p.Answer.Closed = driver.Whole - 401 }, true},
		"without a demand":          {0, 0, func(*Processor) {}, false},
		"it has a share":            {1, 1, func(*Processor) {}, false},
		"nobody is known":           {0, 1, func(p *Processor) { p.Answer.Roster = nil }, true},
		"nor is there a demand":     {0, 0, func(p *Processor) { p.Answer.Roster = nil }, false},
		"but what it was given":     {1, 1, func(p *Processor) { p.Answer.Roster = nil }, false},
		"the excess of others also": {0, 1, func(p *Processor) { p.Answer.Closed, p.Answer.Roster[2].Claim = driver.Whole-401, 102 }, true},
	} {
		p := divided(t, "b", 100, 100, 100)
		p.Answer.Roster[0].Claim, p.Answer.Roster[2].Claim = 100, 100
		p.held, p.demand, p.want = c.held, c.demand, 4000 // 200 are enough
		c.but(p)
		require.Equal(t, c.want, p.hope(time.Second), name)
	}
}

// Room that a processor did not know of when it asked is one that nobody claims, beyond a 20th of what it wants.
func TestRoomThatItDidNotKnowOf(t *testing.T) {
	for name, c := range map[string]struct {
		but  func(p *Processor)
		want bool
	}{
		"too little":               {func(p *Processor) { p.held++ }, false},
		"a 20th":                   {func(*Processor) {}, true},
		"when the freeze is over":  {func(p *Processor) { p.frozen = time.Second }, true},
		"until the freeze is over": {func(p *Processor) { p.frozen = time.Second + 1 }, false},
		"it has asked for it":      {func(p *Processor) { p.sent.wanted = p.want }, false},
		"its own claim is no room": {func(p *Processor) { p.Answer.Roster[1].Claim = 700 }, true},
	} {
		p := divided(t, "b", 100, 100, 100)
		p.Answer.Closed, p.Answer.Roster[0].Claim = driver.Whole-1000, 500
		p.held, p.want, p.sent.wanted = 299, 4000, 3999
		c.but(p)
		require.Equal(t, c.want, p.unasked(time.Second), name)
	}
}

// Only a hard limit gathers shares for large draws, also at the first of a roster, and never for a processor that is not listed.
func TestWhereSharesGather(t *testing.T) {
	for name, c := range map[string]struct {
		id      string
		hard    bool
		gathers bool
	}{"hard": {"a", true, true}, "not hard": {"a", false, false}, "not listed": {"x", true, false}} {
		p := divided(t, c.id, driver.Whole/4, driver.Whole/4, driver.Whole/4)
		p.ceiling.law.Hard, p.needs, p.clock.time = c.hard, [2]driver.Share{driver.Whole / 2, driver.Whole / 2}, 0
		wants, _ := p.wants(0)
		require.Equal(t, c.gathers, wants[0] > driver.Whole/4, name)
	}
}

// Where tags of a rate divide the limit, who claims no more than its share pays for the first token of another.
func TestAFirstTokenByTags(t *testing.T) {
	p := divided(t, "a")
	p.Configure(sharing.Terms{Ceiling: ceiling.Config{Limit: ceiling.Rate{Max: 1000, Per: time.Second}}, Quotas: &limit.Quotas{}})
	p.tags.most, p.tags.own, p.demand = 1000, []busyTag{{rate: 1000}}, driver.Whole
	p.Answer.Roster[0].Claim, p.Answer.Roster[1].Claim = driver.Whole*6/10, driver.Whole/3
	for i := range p.Answer.Roster {
		p.Answer.Roster[i].Demand = driver.Whole
	}
	wants, self := p.wants(0)
	require.Zero(t, self)
	require.InDelta(t, int64(driver.Whole/3), int64(wants[2]), 1)
	require.Less(t, wants[1], driver.Whole/3-driver.Whole/100)
}
