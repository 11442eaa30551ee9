package protocol

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// The pool's clock goes on from the last answer with the local time. It stands still rather than go back, unless it is another clock.
func TestThePoolsClockDoesNotGoBack(t *testing.T) {
	var c poolClock
	answer := func(at, logical time.Duration) {
		c.take(at, &driver.Answer{Time: logical.Microseconds(), Epoch: 3, Silence: 5 * time.Second, Lease: 8 * time.Second})
	}
	logical := func(at time.Duration) time.Duration { return time.Duration(c.logical(at)) * time.Microsecond }
	require.Equal(t, wire.Clamp(driver.DefaultLease), c.longest(), "no answer has come")
	require.Equal(t, moment{now: time.Second, clamp: c.longest()}, c.moment(time.Second))

	answer(10*time.Second, 100*time.Second)
	require.Equal(t, 100*time.Second, logical(10*time.Second))
	require.Equal(t, 101*time.Second, logical(11*time.Second))
	answer(12*time.Second, 101500*ms) // it took longer than the last one
	require.Equal(t, 102*time.Second, logical(12*time.Second))
	require.Equal(t, 102*time.Second, logical(12300*ms))
	require.Equal(t, 102500*ms, logical(13*time.Second))
	answer(13*time.Second, 100500*ms)
	require.Equal(t, 102500*ms, logical(13*time.Second), "2 s behind: a step of the same clock")
	answer(13*time.Second, 100500*ms-time.Microsecond)
	require.Equal(t, 100500*ms-time.Microsecond, logical(13*time.Second), "more: another clock")
	c.answers = 0
	answer(14*time.Second, time.Second)
	require.Equal(t, time.Second, logical(14*time.Second), "the first answer of an incarnation")
}

// The clock counts a quarter of a lease after an answer. After that, or before a second step of a new record, it is not known.
func TestThePoolsClockIsLost(t *testing.T) {
	var c poolClock
	c.take(time.Second, &driver.Answer{Time: 7, Epoch: 3, Silence: 5 * time.Second, Lease: 8 * time.Second})
	known := moment{now: 3 * time.Second, clamp: 2 * time.Second, logical: 2_000_007, began: 3, slept: 5 * time.Second}
	require.Equal(t, known, c.moment(3*time.Second))
	require.False(t, c.lost(3*time.Second))
	require.True(t, c.lost(3*time.Second+1))
	require.Equal(t, moment{now: 3*time.Second + 1, clamp: 2 * time.Second}, c.moment(3*time.Second+1))
	c.answers = 0
	require.Zero(t, c.moment(time.Second).logical)
	c.take(time.Second, &driver.Answer{Epoch: 3, Lease: 8 * time.Second})
	require.Equal(t, moment{now: 2 * time.Second, clamp: 2 * time.Second}, c.moment(2*time.Second))
}

// The clock stands still if it counts less than half of the time between two requests, from the second answer of an incarnation on.
func TestTheFirstAnswerTellsNoPaceOfTheClock(t *testing.T) {
	c := core{Lease: 8 * time.Second}
	for _, step := range []struct {
		sent, logical time.Duration
		halts         bool
	}{{100 * time.Second, 40 * time.Second, false}, {110 * time.Second, 41 * time.Second, true}, {112 * time.Second, 43 * time.Second, false}} {
		c.sent.at = step.sent
		c.receive(step.sent, &driver.Answer{Time: step.logical.Microseconds(), Lease: c.Lease})
		require.Equal(t, step.halts, c.load.halts, step.sent)
	}
}

// A freeze ends so long after its answer. An answer without one leaves no end of a freeze: the processor would ask early.
func TestAnAnswerFreezes(t *testing.T) {
	var c core
	for frozen, end := range map[time.Duration]time.Duration{0: 0, 2 * time.Second: 12 * time.Second} {
		c.receive(10*time.Second, &driver.Answer{Frozen: frozen, FrozenBy: driver.FreezeNewRecord})
		require.Equal(t, end, c.frozen)
	}
}

// The store removes who is silent for longer than it had left at the last answer. Others have left, or are there.
func TestWhoIsRemoved(t *testing.T) {
	was := driver.Answer{Time: 1_000_000, Grant: driver.Grant{Roster: []driver.RosterRow{
		{ID: "a", Left: 5*time.Second - 1, Silent: time.Second}, {ID: "b", Left: 5 * time.Second}, {ID: "c"}, {ID: "d"},
	}}}
	is := driver.Answer{Time: 6_000_000, Grant: driver.Grant{Roster: []driver.RosterRow{{ID: "c"}}}}
	require.Equal(t, []driver.RosterRow{{ID: "a", Left: 5*time.Second - 1, Silent: 6 * time.Second}, {ID: "d", Silent: 5 * time.Second}}, removedBy(&was, &is))
}

// What the store says of issued tokens holds until it gives shares, also for what was reserved before.
func TestIssuingWindsUpUntilThereIsRoomForShares(t *testing.T) {
	type phase struct{ issuing, winding bool }
	for name, c := range map[string]struct {
		was, is phase
		answer  bool
		share   driver.Share
	}{
		"it begins":       {phase{}, phase{true, false}, true, 0},
		"it ends":         {phase{true, false}, phase{false, true}, false, 0},
		"it still ends":   {phase{false, true}, phase{false, true}, false, 0},
		"it begins again": {phase{false, true}, phase{true, false}, true, 0},
		"it never was":    {phase{}, phase{}, false, 0},
		"it is over":      {phase{true, false}, phase{}, false, 1},
		"it was over":     {phase{false, true}, phase{}, false, 1},
	} {
		p := core{state: StateHolding}
		p.until = time.Hour
		p.issuing, p.winding = c.was.issuing, c.was.winding
		p.Answer.Issuing, p.Answer.Share = c.answer, c.share
		p.takeIssuing()
		is := phase{p.issuing, p.winding}
		require.Equal(t, c.is, is, name)
		require.Equal(t, c.is != phase{}, p.isIssuing(0), name)
		p.state = StateReplaced
		require.False(t, p.isIssuing(0), name)
	}
}

// A lease that runs out ends the share. Only if the store is lost, and was asked on time, an even part of the limit goes on: until the next
// request must have gone out.
func TestWhoGoesOnWhenALeaseRunsOut(t *testing.T) {
	const end = 10 * time.Second
	for name, c := range map[string]struct {
		but  func(p *core)
		at   time.Duration
		goes driver.Share
	}{
		"the store is lost":         {func(*core) {}, end, driver.Whole / 2},
		"nobody else was there":     {func(p *core) { p.Answer.Live = 0 }, end, driver.Whole},
		"it had less":               {func(p *core) { p.held = 7 }, end, 7},
		"it had nothing":            {func(p *core) { p.held = 0 }, end, 0},
		"asked just in time":        {func(p *core) { p.attempt = end - 6*time.Second }, end, driver.Whole / 2},
		"asked too early":           {func(p *core) { p.attempt = end - 6*time.Second - 1 }, end, 0},
		"seen just in time":         {func(p *core) { p.attempt = end }, end + 6*time.Second, driver.Whole / 2},
		"seen too late":             {func(p *core) { p.attempt = end + 1 }, end + 6*time.Second + 1, 0},
		"asked before it stalled":   {func(p *core) { p.Lease, p.attempt = 20*time.Second, end-11*time.Second-1 }, end, 0},
		"just in time after a gap":  {func(p *core) { p.gap, p.attempt = 5*time.Second, end-4200*ms }, end, driver.Whole / 2},
		"too early after a gap":     {func(p *core) { p.gap, p.attempt = 5*time.Second, end-4200*ms-1 }, end, 0},
		"a request was late":        {func(p *core) { p.onTime = false }, end, 0},
		"no request failed":         {func(p *core) { p.failures = 0 }, end, 0},
		"it stops without a store":  {func(p *core) { p.Cfg.OnStoreLoss = Stop }, end, 0},
		"it goes on already":        {func(p *core) { p.degraded = true }, end, 0},
		"tokens are issued":         {func(p *core) { p.issuing = true }, end, 0},
		"they were issued":          {func(p *core) { p.winding = true }, end, 0},
		"another has taken its ID":  {func(p *core) { p.state = StateReplaced }, end, 0},
		"its lease had ended befor": {func(p *core) { p.state = StateLost }, end, driver.Whole / 2},
	} {
		t.Run(name, func(t *testing.T) {
			p := core{Cfg: ProcessorConfig{OnStoreLoss: Degrade}, state: StateHolding, Lease: 10 * time.Second}
			p.Answer.Live = 2
			p.held, p.until, p.failures, p.onTime, p.attempt, p.gap = driver.Whole, end, 1, true, end-time.Second, time.Second
			c.but(&p)
			was := p
			p.Tick(end - 1)
			require.Equal(t, was.held, p.held)
			require.Equal(t, was.state, p.state)
			p.Tick(c.at)
			require.Equal(t, c.goes, p.held)
			require.Equal(t, c.goes > 0, p.degraded)
			require.NotEqual(t, StateHolding, p.state)
			require.Equal(t, was.lapses+min(1, int(was.held)), p.lapses)
			if c.goes > 0 {
				require.Equal(t, c.at+degradeFor, p.degradedEnd)
				require.Equal(t, p.attempt+p.grace(), p.until)
			}
		})
	}
}

// A request says what the processor knows and uses, and names every request since the last answer.
func TestARequestSaysWhatIsInUse(t *testing.T) {
	c := core{Cfg: ProcessorConfig{Pool: "p", ID: "a", Lease: 8 * time.Second}, incarnation: "1"}
	c.seq, c.last, c.lastTime, c.revision, c.recalled = 6, driver.Ticket{Seq: 5, Nonce: 50}, 77, 4, driver.Ticket{Seq: 3, Nonce: 30}
	c.unanswered = []driver.Ticket{{Seq: 6, Nonce: 60}}
	c.held, c.inUse, c.want, c.demand, c.lapses, c.needs = 20, 30, 40, 50, 2, [2]driver.Share{1, 2}
	c.Answer.Live, c.frozen, c.frozenBy, c.reported.Slots = 9, 13*time.Second, driver.FreezeNewRecord, 5
	req := c.next(10*time.Second, 70)
	require.Equal(t, driver.Request{
		Pool: "p", ID: "a", Incarnation: "1", Seq: 7, Nonce: 70, LastSeq: 5, LastNonce: 50, LastTime: 77, Recalled: driver.Ticket{Seq: 3, Nonce: 30},
		Unanswered: []driver.Ticket{{Seq: 6, Nonce: 60}}, Revision: 4, Lease: 8 * time.Second, Outlasts: c.outlasts(),
		Report: driver.Report{InUse: 30, Wanted: 40, Demand: 50, PoolSize: 9},
	}, req.Request)
	require.Equal(t, Standing{Slots: 5, Used: driver.Share(30).Fraction(), Frozen: 3 * time.Second, FrozenBy: driver.FreezeNewRecord}, req.note.standing)
	require.Equal(t, [2]driver.Share{1, 2}, req.note.needs)
	require.Equal(t, request{Request: req.Request, note: req.note, at: 10 * time.Second, inUse: 20, wanted: 40, lapses: 2, open: true}, *req)

	c.held, c.frozen, c.reported.Slots = 35, 10*time.Second, 0
	req = c.next(10*time.Second, 80)
	require.EqualValues(t, 35, req.InUse)
	require.Zero(t, req.note.standing, "it is neither frozen nor limits calls in flight")
}

// What a holder reports is held to the bounds of requests and notes.
func TestAnObservationIsBounded(t *testing.T) {
	p := NewProcessor(ProcessorConfig{Pool: "p", ID: "a"}, "1")
	for n, want := range map[int64][5]int64{
		-1:                  {0, 0, 0, 0, 0},
		7:                   {7, 7, 7, 7, 7},
		maxNoteTokens + 1:   {int64(driver.Whole), maxNoteTokens + 1, maxNoteTokens + 1, maxNoteTokens, maxNoteTokens + 1},
		maxNoteFlow + 1:     {int64(driver.Whole), maxNoteFlow, maxNoteFlow, maxNoteTokens, maxNoteFlow + 1},
		math.MaxInt64 / 256: {int64(driver.Whole), maxNoteFlow, maxNoteFlow, maxNoteTokens, math.MaxInt64 / 256},
	} {
		s := driver.Share(n)
		p.observe(&Observation{Demand: s, InUse: s, Needs: [2]driver.Share{s, s}, Used: n, Offered: n, Announced: n, Waiting: int(n), Lately: float64(n)})
		share := driver.Share(want[0])
		require.Equal(t, [4]driver.Share{share, share, share, share}, [4]driver.Share{p.demand, p.inUse, p.needs[0], p.needs[1]}, n)
		c := &p.ceiling
		require.Equal(t, want, [5]int64{int64(p.demand), c.used, c.offers, c.announced, int64(p.reported.Waiting)}, n)
		require.InDelta(t, max(0, float64(n)), p.reported.Used, 0)
		p.Yield(0, s, nil)
		require.Equal(t, share, p.demand)
	}
	for _, c := range []struct {
		of     bool
		reason limit.Reason
		tag    string
	}{{true, limit.ReasonQuota, TagOthers}, {true, "", ""}, {false, limit.ReasonQuota, ""}} {
		p.observe(&Observation{OfTag: c.of, Throttled: c.reason})
		require.Equal(t, c.tag, p.reported.Tag, c)
	}
}

// A processor knows the notes of the newest answer, whichever of them have changed.
func TestNotesAreThoseOfTheNewestAnswer(t *testing.T) {
	var c core
	for _, notes := range [][]string{
		{"1 n:1", "1 n:2"}, {"1 n:3", "1 n:4"}, {"1 n:3", "1 n:5"}, {"1 n:5"}, {"1 n:6"}, {"1 n:6", "1 n:7"},
	} {
		c.receive(0, &driver.Answer{Grant: driver.Grant{Roster: rowsOf(notes...)}})
		var want []Note
		for _, n := range notes {
			want = append(want, NoteIn(n))
		}
		require.Equal(t, want, c.notes)
	}
}
