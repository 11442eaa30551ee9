package protocol

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A note says until when the service has asked to wait, on the pool's clock.
func TestTheLogicalTimeOfARetry(t *testing.T) {
	r := retryAfter{end: 10 * time.Second}
	require.EqualValues(t, 100+6_000_000, r.until(100, 4*time.Second))
	require.EqualValues(t, wire.MaxMicros, r.until(wire.MaxMicros-1, 4*time.Second))
	require.Zero(t, r.until(100, 10*time.Second))
}

// A request of the service counts if it ends later than the last one by more than a fortieth of the time until then, or an eighth of a second.
func TestALaterRetryCounts(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		was, now, end time.Duration
		counts        bool
	}{
		"the first":          {0, s, s + 1, true},
		"it is over":         {0, s, s, false},
		"an eighth later":    {10 * s, 0, 10*s + s/8, false},
		"more than that":     {10 * s, 0, 10*s + s/8 + 1, true},
		"a fortieth later":   {10 * s, 9*s + 25*ms, 10*s + 25*ms, false},
		"later than that":    {10 * s, 9*s + 25*ms, 10*s + 26*ms, true},
		"earlier than it is": {10 * s, 0, 9 * s, false},
	} {
		for state, want := range map[State]urgency{StateHolding: urgencyNow, StateLost: urgencyNow, StateJoining: urgencyNone} {
			p := content(t, 0)
			p.state, p.urgency = state, urgencyNone
			p.Pauses.retry = retryAfter{end: c.was, done: true}
			p.RetryAfter(c.now, c.end, "429")
			if c.counts {
				require.Equal(t, retryAfter{end: c.end, reason: "429"}, p.Pauses.retry, name)
				require.Equal(t, want, p.urgency, name)
			} else {
				require.Equal(t, retryAfter{end: c.was, done: true}, p.Pauses.retry, name)
				require.Equal(t, urgencyNone, p.urgency, name)
			}
		}
	}
}

// In a pool of more than two a pause needs two processors that were asked to wait, and lasts as long as both.
func TestAQuorumPausesThePool(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		but func(p *Processor)
		end time.Duration // 0: it is not due
	}{
		"both":                      {func(*Processor) {}, 7 * s},
		"the other for longer":      {func(p *Processor) { p.Pauses.retry.others += 5_000_000 }, 10 * s},
		"the other no longer":       {func(p *Processor) { p.Pauses.retry.others -= 3_000_000 }, 0},
		"the other a little longer": {func(p *Processor) { p.Pauses.retry.others -= 2_999_999 }, 4*s + time.Microsecond},
		"one of two":                {func(p *Processor) { p.Pauses.retry.live, p.Pauses.retry.others = 2, 0 }, 10 * s},
		"both of two":               {func(p *Processor) { p.Pauses.retry.live = 2 }, 10 * s},
		"it is done":                {func(p *Processor) { p.Pauses.retry.done = true }, 0},
		"it is over":                {func(p *Processor) { p.Pauses.retry.end = 4 * s }, 0},
		"before an answer":          {func(p *Processor) { p.clock.answers = 0 }, 0},
	} {
		p := content(t, 0)
		p.clock = poolClock{answers: 1, time: 1_000_000_000}
		p.Pauses.retry = retryAfter{end: 10 * s, reason: "429", live: 3, others: 1_007_000_000}
		c.but(p)
		end, reason, due := p.RetryQuorum(4 * s)
		require.Equal(t, c.end, end, name)
		require.Equal(t, c.end > 0, due, name)
		require.Equal(t, due, reason == "429", name)
		_, _, due = p.RetryQuorum(4 * s)
		require.False(t, due, "%s: once", name)
	}
}

// A view tells what is left of a lease and a freeze, who is silent, and who has not stopped yet.
func TestWhatAViewTells(t *testing.T) {
	for name, c := range map[string]struct {
		but          func(p *Processor)
		left, frozen time.Duration
		silent       int
		missing      []string
	}{
		"as it is":        {func(*Processor) {}, 10 * time.Second, 0, 0, nil},
		"without a share": {func(p *Processor) { p.held = 0 }, 0, 0, 0, nil},
		"frozen":          {func(p *Processor) { p.frozen = 3 * time.Second }, 10 * time.Second, 2 * time.Second, 0, nil},
		"one is silent":   {func(p *Processor) { p.Answer.Roster[1].Silent = time.Minute }, 10 * time.Second, 0, 1, nil},
		"one goes on": {func(p *Processor) {
			p.Pauses.Version, p.notes[1].Paused = 5, 4
		}, 10 * time.Second, 0, 0, []string{"b"}},
		"all have stopped": {func(p *Processor) { p.Pauses.Version, p.notes[1].Paused = 5, 5 }, 10 * time.Second, 0, 0, nil},
	} {
		p := content(t, 0)
		for i := range p.Answer.Roster {
			p.Answer.Roster[i].Left = 15 * time.Second
		}
		c.but(p)
		v := p.View(time.Second)
		require.Equal(t, c.left, v.LeaseLeft, name)
		require.Equal(t, c.frozen, v.Frozen, name)
		require.Equal(t, c.silent, v.Silent, name)
		require.Equal(t, c.missing, v.PauseMissing, name)
	}
}

// What cannot be divided goes to the last of equal rows and to the larger ones: every processor works out the same.
func TestRoundingOfShares(t *testing.T) {
	rows := make([]driver.RosterRow, 48)
	for i := range rows {
		rows[i].Demand = driver.Whole / driver.Share(2-i%2)
	}
	shares, sum := Fair(rows), driver.Share(0)
	for i, s := range shares {
		require.GreaterOrEqual(t, s, shares[max(i-2, i%2)], "the last of equal rows")
		require.GreaterOrEqual(t, shares[i|1], s, "the larger ones")
		sum += s
	}
	require.Equal(t, driver.Whole, sum)
	require.Equal(t, []driver.Share{3, 4, 4}, leave(driver.Whole-11, []driver.Share{3, 5, 5}))
}

// A processor lacks its first token if it claims less than that, but not if it wants none.
func TestWhoLacksAFirstToken(t *testing.T) {
	const percent = driver.Whole / 100
	none := make([]driver.Share, 3)
	rows := func(a, b, c driver.Share) []driver.RosterRow {
		return []driver.RosterRow{{Claim: a * percent}, {Claim: b * percent}, {Claim: c * percent}}
	}
	wants := []driver.Share{50 * percent, 45 * percent, 5 * percent}
	require.Equal(t, []driver.Share{45 * percent, 45 * percent, 5 * percent}, firstShares(0, 2*percent, wants, rows(50, 50, 1), none))
	wants = []driver.Share{50 * percent, 50 * percent, 0}
	require.Equal(t, wants, firstShares(0, percent, wants, rows(50, 60, 0), none))
}
