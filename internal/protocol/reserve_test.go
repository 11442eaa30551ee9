package protocol

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

const ms = time.Millisecond

// reserver returns a processor that reserves among so many contenders.
func reserver(contenders int) *Processor {
	p := NewProcessor(ProcessorConfig{Pool: "p", ID: "a"}, "1")
	p.permits.contenders = contenders
	return p
}

// An answer says when the slots are, how many the processor should hold, and when to ask again.
func TestAnAnswerBecomesSlots(t *testing.T) {
	for name, c := range map[string]struct {
		ahead, contenders int
		res               driver.Reserved
		want              sharing.Slots
	}{
		"one": {
			0, 1,
			driver.Reserved{Count: 1, Wait: 200 * ms, Last: 7},
			sharing.Slots{Count: 1, Wait: 200 * ms, Spacing: time.Second, Part: 1, Last: 7, Next: 1200 * ms, Again: 1200 * ms},
		},
		"wider apart than ordered": {
			3, 1,
			driver.Reserved{Count: 2, Spacing: 2 * time.Second},
			sharing.Slots{Count: 2, Spacing: 2 * time.Second, Part: 4, Next: 4 * time.Second, Again: time.Second},
		},
		"closer than ordered": {
			0, 1,
			driver.Reserved{Count: 2, Spacing: ms},
			sharing.Slots{Count: 2, Spacing: time.Second, Part: 1, Next: 2 * time.Second, Again: 2 * time.Second},
		},
		"more may be reserved now": {
			9, 1,
			driver.Reserved{Count: 2, Wait: ms},
			sharing.Slots{Count: 2, Wait: ms, Spacing: time.Second, Part: 10, Next: 2001 * ms},
		},
		"a part of what is ahead": {
			9, 4,
			driver.Reserved{Count: 3},
			sharing.Slots{Count: 3, Spacing: time.Second, Part: 2, Next: 3 * time.Second},
		},
		"at least one is its part": {
			1, 2,
			driver.Reserved{Count: 1},
			sharing.Slots{Count: 1, Spacing: time.Second, Part: 1, Next: time.Second},
		},
		// From a fortieth of the spacing per contender, 0.2 is 5 ms: half of the chance, since it has missed one and is alone.
		"all are reserved": {
			2, 1,
			driver.Reserved{Retry: 300 * ms, Spacing: time.Second},
			sharing.Slots{Spacing: time.Second, Part: 3, Next: 2300 * ms, Again: 305 * ms},
		},
		"frozen": {
			2, 1,
			driver.Reserved{Retry: 300 * ms},
			sharing.Slots{Spacing: time.Second, Part: 3, Next: 300 * ms, Again: 305 * ms},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := reserver(c.contenders)
			got, err := p.Reserved(sharing.Order{Count: 3, Spacing: time.Second, Ahead: c.ahead}, c.res, 10*ms, 0.4, nil)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

// Where tokens are issued only because the limit is low, each contender may reserve one ahead, but not further than a quarter of a lease.
func TestWhoReservesAhead(t *testing.T) {
	for _, c := range []struct {
		strict            bool
		contenders, ahead int
		spacing           time.Duration
		want              int
	}{
		{false, 5, 3, ms, 5},
		{false, 5, 8, ms, 8},
		{false, 5, 0, time.Second, 2},
		{false, 5000, 0, ms, wire.MaxAhead},
		{false, 5, 3, 0, 3},
		{true, 5, 3, ms, 3},
	} {
		s := reservations{strict: c.strict, contenders: c.contenders}
		require.Equal(t, c.want, s.ahead(sharing.Order{Ahead: c.ahead, Spacing: c.spacing}, 8*time.Second), c)
	}
}

// A processor that has missed more slots than others comes sooner: each miss lowers the random part of its wait, until it gets one.
func TestWhoHasMissedComesSooner(t *testing.T) {
	p := reserver(2)
	again := func(count int) time.Duration {
		got, err := p.Reserved(sharing.Order{Count: 1, Spacing: 4 * time.Second}, driver.Reserved{Count: count, Retry: 100 * ms}, ms, 0.6, nil)
		require.NoError(t, err)
		return got.Again - 100*ms
	}
	require.Equal(t, 80*ms, again(0)) // 0.6 of 200 ms, by 1 + 1/2
	require.Equal(t, 60*ms, again(0)) // by 1 + 2/2
	require.Equal(t, 48*ms, again(0)) // by 1 + 3/2
	again(1)
	again(1)
	require.Equal(t, 2, p.permits.calm)
	require.Equal(t, 80*ms, again(0))
	require.Zero(t, p.permits.calm)
}

// While nearly all requests bring something, nobody stands back, and the spread has no minimum.
func TestPlentyOfSlotsNeedNoSpread(t *testing.T) {
	for calm, want := range map[int]time.Duration{39: 20 * ms, 40: 20 * ms, 41: 12500 * time.Microsecond} {
		s := sharing.Slots{Spacing: 10 * ms, Wait: 3 * ms}
		require.Equal(t, want, again(&s, 10*ms, sharing.Order{}, ms, 10, calm, 1), calm)
	}
	for calm, want := range map[int]time.Duration{40: 44 * ms, 41: 10 * ms} { // after its slot
		s := sharing.Slots{Spacing: 10 * ms, Wait: 43 * ms, Count: 1}
		require.Equal(t, want, again(&s, 10*ms, sharing.Order{}, ms, 10, calm, 0), calm)
	}
	s := sharing.Slots{Spacing: time.Minute}
	require.Zero(t, again(&s, 0, sharing.Order{Ahead: 20}, ms, 10, 0, 1), "it can be had now")
}

// One contender beyond the slots that may be reserved makes them scarce: those who have one wait until it has come.
func TestWhenSlotsAreScarce(t *testing.T) {
	s := sharing.Slots{Count: 1, Wait: 3 * time.Second, Spacing: time.Second}
	require.Equal(t, 100*ms, again(&s, 100*ms, sharing.Order{Ahead: 9}, ms, 10, 0, 0))
	require.Equal(t, 3001*ms, again(&s, 100*ms, sharing.Order{Ahead: 8}, ms, 10, 0, 0))
	// All that ask a store further away than a slot would ask in step.
	none := sharing.Slots{Spacing: time.Second}
	require.Equal(t, 100*ms, again(&none, 100*ms, sharing.Order{}, 999*ms, 10, 0, 0))
	require.Equal(t, time.Second, again(&none, 100*ms, sharing.Order{}, time.Second, 10, 0, 0))
	require.Equal(t, 2*time.Second, again(&none, 100*ms, sharing.Order{}, time.Second, 10, 0, 1))
}

// After errors it waits longer and longer, from a half of the wait to all of it, for an interval at most.
func TestReserveBacksOff(t *testing.T) {
	p, down := reserver(1), errors.New("down")
	fails := func(chance float64) time.Duration {
		got, err := p.Reserved(sharing.Order{Count: 1, Spacing: time.Second}, driver.Reserved{Count: 1, Revision: 9}, ms, chance, down)
		require.ErrorIs(t, err, down)
		require.Equal(t, sharing.Slots{Again: got.Again}, got, "nothing of the answer is believed")
		return got.Again
	}
	for _, wait := range []time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, time.Second, time.Second} {
		require.Equal(t, wait/2, fails(0))
		p.permits.failures--
		require.Equal(t, wait, fails(1))
	}
	require.Zero(t, p.revision)
	got, err := p.Reserved(sharing.Order{Count: 1}, driver.Reserved{Count: 2}, ms, 0, nil)
	require.ErrorIs(t, err, driver.ErrWrongAnswer)
	require.Equal(t, 500*ms, got.Again)
	_, err = p.Reserved(sharing.Order{Count: 1}, driver.Reserved{Count: 1, Revision: 9}, ms, 0, nil)
	require.NoError(t, err)
	require.EqualValues(t, 9, p.revision)
	require.Equal(t, 100*ms, fails(1), "from the start")

	p.state = StateLeft
	_, err = p.Reserved(sharing.Order{Count: 1}, driver.Reserved{Count: 1, Revision: 10}, ms, 0, nil)
	require.NoError(t, err)
	require.EqualValues(t, 9, p.revision, "it has left at that revision")
}

// A request says how far ahead the last usable slot lies: the furthest of all that it was granted, whatever came after.
func TestReach(t *testing.T) {
	p := reserver(1)
	p.Configure(sharing.Terms{Spacing: time.Second, Strict: true})
	grant := func(at time.Duration, count int) {
		_, order := p.Reserve(at, sharing.Order{Count: 3, Spacing: time.Second})
		_, err := p.Reserved(order, driver.Reserved{Count: count, Wait: 200 * ms, Retry: time.Hour}, 50*ms, 0, nil)
		require.NoError(t, err)
	}
	reach := func(now time.Duration) time.Duration {
		var req request
		p.permits.report(&p.core, now, &req)
		require.True(t, req.Strict)
		return req.Reach
	}
	grant(10*time.Second, 3) // the last at 12.25 s
	require.Equal(t, 1250*ms, reach(11*time.Second))
	grant(11*time.Second, 1)
	grant(11*time.Second, 0)
	require.Equal(t, 1250*ms, reach(11*time.Second))
	grant(11*time.Second, 3)
	require.Equal(t, 2250*ms, reach(11*time.Second))
	require.Zero(t, reach(14*time.Second))
	p.permits.furthest = time.Hour + wire.MaxReach + 1
	require.Equal(t, wire.MaxReach, reach(time.Hour))
}

// A processor counts itself and all others that use the limit, and after a restart only itself.
func TestContenders(t *testing.T) {
	p := reserver(5)
	p.permits.take(&p.core, 0, &driver.Answer{Grant: driver.Grant{Roster: []driver.RosterRow{
		{ID: "a", Demand: 1}, {ID: "b", Demand: 1}, {ID: "c"}, {ID: "d", Demand: driver.Whole},
	}}})
	require.Equal(t, 3, p.permits.contenders)
	p.restart("2")
	require.Equal(t, 1, p.permits.contenders)
}

// An order is spaced by the limit in force: wider if that is lower than the configured one, but never beyond what the store takes.
func TestAnOrderIsSpacedByTheLimitInForce(t *testing.T) {
	c := poolCeiling{limit: ceiling.Rate{Max: 10, Per: time.Second}}
	for tokens, want := range map[float64]time.Duration{
		10: 100 * ms, 5: 200 * ms, 20: 50 * ms, 3: 333333334, 1e-12: wire.MaxSpacing, 1e18: wire.MinSpacing,
	} {
		require.Equal(t, want, c.pacedBy(tokens, 100*ms), tokens)
	}
	require.Zero(t, c.pacedBy(5, 0), "the pool divides the limit")
	c.limit.Max = 0
	require.Equal(t, 100*ms, c.pacedBy(5, 100*ms), "no limit is known")
}
