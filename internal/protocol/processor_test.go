package protocol

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// New terms are due at once where the others need to know them: of a limit that moves, of issued tokens, of tags with calls in flight.
func TestNewTermsAreDue(t *testing.T) {
	const hundredth = 10 * ms // of an interval
	for name, c := range map[string]struct {
		terms sharing.Terms
		want  urgency
	}{
		"none":                      {sharing.Terms{}, urgencyNone},
		"strict, but not by slots":  {sharing.Terms{Strict: true}, urgencyNone},
		"strict":                    {sharing.Terms{Strict: true, Spacing: 1}, urgencyNow},
		"too close for issuing":     {sharing.Terms{Spacing: hundredth}, urgencyNone},
		"far enough apart":          {sharing.Terms{Spacing: hundredth + 1}, urgencyNow},
		"a limit":                   {sharing.Terms{Ceiling: ceiling.Config{Limit: ceiling.Rate{Max: 5, Per: time.Second}}}, urgencyNow},
		"calls in flight":           {sharing.Terms{Slots: 5}, urgencyNone},
		"calls in flight with tags": {sharing.Terms{Slots: 5, Quotas: &limit.Quotas{}}, urgencyNow},
	} {
		p := content(t, 0)
		p.urgency = urgencyNone
		p.Configure(c.terms)
		require.Equal(t, c.want, p.urgency, name)
		p = NewProcessor(ProcessorConfig{Pool: "p", ID: "a"}, "1")
		p.urgency = urgencyNone
		p.Configure(c.terms)
		require.Equal(t, urgencyNone, p.urgency, "%s: it has sent none yet", name)
	}
	p := content(t, 0)
	for slots, divided := range map[int]int{-1: 0, sharing.ExactSlots: sharing.ExactSlots, sharing.ExactSlots + 1: 0} {
		p.Configure(sharing.Terms{Slots: slots})
		require.Equal(t, divided, p.split.slots)
		require.Equal(t, max(slots, 0), p.reported.Slots)
	}
}

// A suspended machine ends a share, and reservations. One that has neither need not ask at once.
func TestWhoHasNothingLosesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		but  func(p *Processor)
		want urgency
	}{
		"a share":       {func(*Processor) {}, urgencyNow},
		"issued tokens": {func(p *Processor) { p.held, p.issuing = 0, true }, urgencyNow},
		"nothing":       {func(p *Processor) { p.held = 0 }, urgencyNone},
	} {
		p := content(t, 0)
		p.urgency = urgencyNone
		c.but(p)
		p.Void(time.Second)
		require.Equal(t, c.want, p.urgency, name)
		require.Zero(t, p.Held(time.Second))
		require.False(t, p.issuing)
	}
}

// A request is on time if all are since the last answer, and hurried if it did not wait for its interval.
func TestARequestIsOnTime(t *testing.T) {
	p := content(t, 0)
	p.Cfg.OnStoreLoss = Stop
	for _, c := range []struct {
		after   time.Duration
		urgency urgency
		onTime  bool
	}{{6 * time.Second, urgencyNone, true}, {6*time.Second + 1, urgencyFast, false}, {time.Second, urgencyNow, false}} {
		p.urgency = c.urgency
		at := p.attempt + c.after
		p.Request(at, uint64(at), Observation{})
		require.Equal(t, c.onTime, p.onTime, c)
		require.Equal(t, c.urgency != urgencyNone, p.hurried, c)
	}
}

// Only the newest request is answered, once, by the number and the nonce that it had.
func TestOnlyTheNewestRequestIsAnswered(t *testing.T) {
	p := content(t, 0)
	req := p.Request(2*time.Second, 9, Observation{Demand: driver.Whole})
	answer := func(seq, nonce uint64) bool {
		was := p.Answer.Time
		a := driver.Answer{
			Seq: seq, Nonce: nonce, Time: was + 1, Lease: driver.DefaultLease, Revision: 1,
			Grant: driver.Grant{Live: 1, PoolSize: 1, Roster: []driver.RosterRow{{ID: "a", Demand: driver.Whole, PoolSize: 1}}},
		}
		require.NoError(t, p.Take(2*time.Second, a, "2"))
		return p.Answer.Time != was
	}
	require.False(t, answer(req.Seq+1, 9))
	require.False(t, answer(req.Seq, 10))
	require.True(t, answer(req.Seq, 9))
	require.False(t, answer(req.Seq, 9), "again")
}

// What calls use beyond the share in force is no share while the pool is frozen, and nothing rests on an answer at the end of its lease.
func TestWhatAnAnswerPutsInForce(t *testing.T) {
	for name, c := range map[string]struct {
		frozen, took time.Duration
		state        State
		held         driver.Share
	}{
		"as granted":               {0, time.Second, StateHolding, driver.Whole / 2},
		"frozen":                   {time.Minute, time.Second, StateHolding, 490_000_000},
		"as long as it lasts":      {0, driver.DefaultLease - 1, StateHolding, driver.Whole / 2},
		"when its lease has ended": {0, driver.DefaultLease, StateJoining, 0},
	} {
		p := content(t, 0)
		p.Cfg.OnStoreLoss = Stop
		req := p.Request(2*time.Second, 9, Observation{Demand: driver.Whole, InUse: 495_000_000})
		p.until, p.sent.lapses = time.Hour, p.lapses // so that nothing has ended meanwhile
		require.NoError(t, p.Take(2*time.Second+c.took, driver.Answer{
			Seq: req.Seq, Nonce: 9, Time: 1, Lease: driver.DefaultLease, Frozen: c.frozen, Revision: 1,
			Grant: driver.Grant{Share: driver.Whole / 2, Live: 2, PoolSize: 2, Roster: []driver.RosterRow{
				{ID: "a", Claim: driver.Whole / 2, Demand: driver.Whole, PoolSize: 2}, {ID: "b", Claim: driver.Whole / 2, Demand: driver.Whole, PoolSize: 2},
			}},
		}, ""), name)
		require.Equal(t, c.state, p.state, name)
		require.Equal(t, c.held, p.held, name)
	}
}

// Requests ahead of their interval are in vain unless the share grows by over 5 %, and follow where the claim is too high or more is to be had.
func TestHurry(t *testing.T) {
	for name, c := range map[string]struct {
		held    driver.Share
		but     func(p *Processor)
		vain    int
		urgency urgency
		grows   bool
	}{
		"nothing new":               {100, func(*Processor) {}, 3, urgencyNone, false},
		"5 % more":                  {105, func(*Processor) {}, 3, urgencyNone, false},
		"more than that":            {106, func(*Processor) {}, 0, urgencyFast, true},
		"for a lower demand":        {106, func(p *Processor) { p.demand-- }, 0, urgencyNone, false},
		"in its turn":               {100, func(p *Processor) { p.hurried = false }, 2, urgencyNone, false},
		"in its turn, and has all":  {100, func(p *Processor) { p.hurried, p.want = false, 100 }, 0, urgencyNone, false},
		"the claim is too high":     {100, func(p *Processor) { p.Answer.Share = 101 }, 3, urgencyNow, false},
		"so is the reported use":    {100, func(p *Processor) { p.sent.InUse = 101 }, 3, urgencyNow, false},
		"which is still under way":  {100, func(p *Processor) { p.sent.InUse, p.inUse = 101, 101 }, 3, urgencyNone, false},
		"another has too much":      {100, func(p *Processor) { p.Answer.Roster[0].Claim = 106 }, 3, urgencyFast, false},
		"but it has all":            {4000, func(p *Processor) { p.Answer.Roster[0].Claim = 106 }, 0, urgencyFast, true},
		"tokens are issued":         {100, func(p *Processor) { p.Answer.Roster[0].Claim, p.issuing = 106, true }, 3, urgencyNone, false},
		"room that it did not know": {100, func(p *Processor) { p.Answer.Closed, p.sent.wanted = 0, 0 }, 3, urgencyNow, false},
		"but it wants no more":      {100, func(p *Processor) { p.Answer.Closed, p.sent.wanted, p.want = 0, 0, 100 }, 3, urgencyNone, false},
	} {
		p := divided(t, "b", 100, 4000, 100)
		p.Answer.Closed, p.Answer.Roster[0].Claim, p.Answer.Roster[2].Claim = driver.Whole-4200, 100, 100
		p.held, p.want, p.demand, p.hurried, p.vain, p.Answer.Share = c.held, 4000, driver.Whole, true, 2, 0
		p.sent.wanted, p.sent.InUse, p.inUse, p.urgency, p.growing = 4000, 0, 0, urgencyNone, 0
		c.but(p)
		p.hurry(time.Second, 100, urgencyNone)
		require.Equal(t, c.vain, p.vain, name)
		require.Equal(t, c.urgency, p.urgency, name)
		require.Equal(t, c.grows, p.growing == time.Second+p.Interval(), name)
	}
}
