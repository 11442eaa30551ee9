package protocol

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
	"github.com/numaproj-contrib/numathrottle/internal/ceiling/backoff"
	"github.com/numaproj-contrib/numathrottle/internal/ceiling/ramp"
	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/pooldoc"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// noted is a core in whose pool others have said so much.
func noted(notes ...Note) *core {
	c := &core{notes: notes, clock: poolClock{answers: 1, time: 5_000_000}}
	for range notes {
		c.Answer.Roster = append(c.Answer.Roster, driver.RosterRow{ID: "other"})
	}
	return c
}

// The rates of a pool are the sums of what its processors report, scaled so that the larger one is at most the limit. Where tokens are
// issued, the pool is offered all, and use of nine tenths counts as all.
func TestTheFlowOfAPool(t *testing.T) {
	const all = ramp.Whole
	for _, c := range []struct {
		issuing             bool
		used, offers        int64
		wantUsed, wantOffer int64
	}{
		{false, 5, 10, 6, 12},
		{false, -1, 4*all - 2, 0, all},
		{false, 0, 4*all - 2, 1, all},
		{false, 7, 4*all - 2, 2, all},
		{false, 2*all - 1, all - 2, all, all / 2},
		{true, all*9/10 - 2, 7, all*9/10 - 1, all},
		{true, all*9/10 - 1, 7, all, all},
		{true, 2*all - 1, 7, all, all / 2},
	} {
		l := ceilingOf(limitOf(t, throttle.Limit{Max: 100}), Override{})
		l.used, l.offers = c.used, c.offers
		pool := noted(Note{used: 1, offered: 2})
		pool.Answer.Issuing = c.issuing
		used, offered := l.flow(pool)
		require.Equal(t, [2]int64{c.wantUsed, c.wantOffer}, [2]int64{used, offered}, c)
	}
}

// A ramp stands still while tokens are issued and the pool is frozen or paused: the limiters do not know of that. It begins with an answer.
func TestARampStandsStill(t *testing.T) {
	for name, c := range map[string]struct {
		but    func(c *core)
		paused bool
		due    bool
		halted bool
	}{
		"divided":                 {func(c *core) { c.frozen = 2 * time.Second }, true, true, false},
		"issued":                  {func(c *core) { c.Answer.Issuing = true }, false, true, false},
		"issued, paused":          {func(c *core) { c.Answer.Issuing = true }, true, true, true},
		"issued, frozen":          {func(c *core) { c.Answer.Issuing, c.frozen = true, time.Second+1 }, false, true, true},
		"when the freeze is over": {func(c *core) { c.Answer.Issuing, c.frozen = true, time.Second }, false, true, false},
		"before an answer":        {func(c *core) { c.clock.answers = 0 }, false, false, false},
	} {
		l := ceilingOf(limitOf(t, throttle.Limit{Max: 20, Min: 10, RampUpDuration: 10 * time.Second, Mode: throttle.RampScheduled{}}), Override{})
		l.law.Ramp.State, _ = l.law.RampConfig().Next(ramp.State{}, ramp.Step{Now: 1_000_000, Empty: true})
		l.law.Ramp.Changed, l.used, l.offers = true, 1, 1
		pool := noted()
		c.but(pool)
		next, due := l.stepRamp(pool, time.Second, c.paused)
		require.Equal(t, c.due, due, name)
		halted, _ := l.law.RampConfig().Next(l.law.Ramp.State, ramp.Step{Now: 6_000_000, Used: 1, Offered: 1, Halted: true})
		if due {
			require.Equal(t, c.halted, next.State == halted, name)
		}
	}
}

// A share of a lowered limit is rounded down by more than floating-point numbers are.
func TestALoweredShareIsRoundedDown(t *testing.T) {
	l := ceilingOf(limitOf(t, throttle.Limit{Max: 100}), Override{Max: 50, Per: time.Second})
	share, tokens := l.apply(noted(), driver.Whole, 0, 0)
	require.Equal(t, int64(driver.Whole)/2-1, share)
	require.InDelta(t, 50, tokens, 0)
}

// What others report of their calls is turned into parts of the limit in force. Notes without a limit, or of who makes no calls, are no reports.
func TestReportsAreOfTheLimitInForce(t *testing.T) {
	const all = int64(driver.Whole)
	l := ceilingOf(limitOf(t, throttle.Limit{Max: 100, Adaptive: true}), Override{})
	half := ceiling.Rate{Max: 3000, Per: time.Minute}
	of := backoff.Report{Generation: 3, Accepted: all / 2, Refused: all / 5, Overloaded: all / 10}
	l.calls.served = sharing.Served{Cuts: 3, Accepted: 20, Refused: 10, Overloaded: 5, Active: true}
	own := backoff.Report{Generation: 3, Accepted: all / 5, Refused: all / 10, Overloaded: all / 20}
	pool := noted(Note{reports: true, limit: half, served: of}, Note{reports: true, served: of}, Note{limit: half, served: of})
	require.Equal(t, []backoff.Report{{Generation: 3, Accepted: all / 4, Refused: all / 10, Overloaded: all / 20}, own}, l.reported(pool))
	huge := reportOf(sharing.Served{Cuts: maxNoteCuts + 1, Accepted: 1e30, Refused: -1}, 100)
	require.Equal(t, backoff.Report{Generation: maxNoteCuts, Accepted: maxNoteFlow}, huge)

	for _, adapts := range []bool{true, false} {
		for _, l.calls.served.Active = range []bool{true, false} {
			n := Note{limit: ceiling.Rate{Max: 100, Per: time.Second}}
			l.calls.report(&n, adapts)
			require.Equal(t, adapts && l.calls.served.Active, n.reports)
			require.Equal(t, n.reports, n.served == own)
		}
	}
}

// A pool is asked for a cut after an answer only, and one bad processor of three asks for none.
func TestWhoIsCut(t *testing.T) {
	for name, c := range map[string]struct {
		answers, others int
		due             bool
		cuts            int64
	}{"alone": {1, 0, true, 1}, "one of three": {1, 2, true, 0}, "before an answer": {0, 0, false, 0}} {
		l := ceilingOf(limitOf(t, throttle.Limit{Max: 100, Adaptive: true}), Override{})
		l.law.Others, l.law.Backoff.Changed = c.others, true // a step is due anyway
		l.calls.served = sharing.Served{Accepted: 50, Refused: 50, Active: true}
		pool := noted()
		pool.clock.answers = c.answers
		next, due := l.stepBackoff(pool, time.Second)
		require.Equal(t, c.due, due, name)
		require.Equal(t, c.cuts, next.State.Generation, name)
	}
}

// Refusals bring syncs forward again only a while after the last of them, and only for who has joined.
func TestRefusalsBringSyncsForwardAgain(t *testing.T) {
	for after, want := range map[time.Duration]bool{calmHaste: false, calmHaste + 1: true} {
		o := ownCalls{served: sharing.Served{Refused: 1}, haste: haste{count: mostHaste, last: 3 * time.Second}}
		require.Equal(t, want, o.hurries(3*time.Second+after, 0), after)
	}
	accepted := ownCalls{served: sharing.Served{Accepted: 1}}
	require.False(t, accepted.hurries(time.Hour, 0))
	for state, want := range map[State]urgency{StateHolding: urgencyNow, StateLost: urgencyNone, StateReplaced: urgencyNone} {
		p := content(t, 0)
		p.Configure(sharing.Terms{Ceiling: hook.Ceiling(limitOf(t, throttle.Limit{Max: 20, Adaptive: true}))})
		p.state, p.urgency = state, urgencyNone
		p.Obey(time.Second, sharing.Served{Refused: 1, Active: true})
		require.Equal(t, want, p.urgency, state)
	}
}

// An override ends at its end, by the clock of the processor. Before that it is written again only if its end was not known by the pool's.
func TestTheEndOfAnOverride(t *testing.T) {
	const end = 5 * time.Second
	for name, c := range map[string]struct {
		now  time.Duration
		at   int64
		next Override
		due  bool
	}{
		"before it": {end - 1, 7, Override{}, false},
		"at it":     {end, 7, Override{}, true},
		"unknown":   {end - time.Second, 0, Override{Max: 5, ending: overrideEnd{at: 9, left: time.Second}}, true},
		"just now":  {end - 1, 0, Override{Max: 5, ending: overrideEnd{at: 9, left: time.Microsecond}}, true},
	} {
		e := ending{end: end}
		next, due := e.change(moment{now: c.now, logical: 9}, Override{Max: 5, ending: overrideEnd{at: c.at, left: time.Minute}}, pooldoc.Held{})
		require.Equal(t, c.due, due, name)
		require.Equal(t, c.next, next, name)
		_, due = e.change(moment{now: c.now, logical: 9}, Override{Max: 0, ending: overrideEnd{at: c.at, left: time.Minute}}, pooldoc.Held{})
		require.False(t, due, name)
		_, due = e.change(moment{now: c.now}, Override{Max: 5, ending: overrideEnd{at: c.at, left: time.Minute}}, pooldoc.Held{})
		require.False(t, due, "%s: without a pool's clock", name)
	}
}
