package protocol

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// Intervals double at each slow answer, until they are as long as can be, and shrink at each quick one.
func TestIntervalsFollowTheStore(t *testing.T) {
	for _, tc := range []struct {
		live          int
		usual, second time.Duration
		longest       time.Duration
	}{
		{4, time.Second, 1500 * time.Millisecond, 1500 * time.Millisecond}, // the pool's clock counts no gap above 2.5 s
		{crowd - 1, time.Second, 1500 * time.Millisecond, 1500 * time.Millisecond},
		{crowd, time.Second, 2 * time.Second, 5 * time.Second},
		{100, time.Second, 2 * time.Second, 5 * time.Second},
		{1000, 2500 * time.Millisecond, 5 * time.Second, 5 * time.Second},
	} {
		var l load
		took := func(d time.Duration, answered bool) time.Duration {
			l.took(d, answered, driver.DefaultLease, tc.live)
			return l.stretched(driver.DefaultLease, tc.live)
		}
		require.Equal(t, tc.usual, took(20*time.Millisecond, true))
		require.Equal(t, tc.usual, took(200*time.Millisecond, true), "not slow yet")
		require.Equal(t, tc.second, took(300*time.Millisecond, true))
		require.Equal(t, tc.longest, max(took(time.Second, false), took(time.Second, false)))
		require.Equal(t, tc.longest, took(time.Millisecond, false), "who is refused at once knows nothing of how busy the store is")
		before := tc.longest
		for before > tc.usual {
			now := took(20*time.Millisecond, true)
			require.Less(t, now, before)
			require.GreaterOrEqual(t, now, before*7/10, "back step by step")
			before = now
		}
	}
}

// A store that is far away is not slow.
func TestAFarStoreIsNotSlow(t *testing.T) {
	var l load
	for range 10 {
		l.took(400*time.Millisecond, true, driver.DefaultLease, 4)
		require.Equal(t, time.Second, l.stretched(driver.DefaultLease, 4))
	}
	l.took(650*time.Millisecond, false, driver.DefaultLease, 4)
	require.False(t, l.late, "a quarter of a second")
	l.took(700*time.Millisecond, true, driver.DefaultLease, 4)
	require.Equal(t, 1500*time.Millisecond, l.stretched(driver.DefaultLease, 4), "longer than that")
}

// A store that has moved further away is slow for some minutes, and not for ever.
func TestAStoreThatMovesAwayIsSlowForAWhile(t *testing.T) {
	l := load{best: 256 * ms}
	l.took(512*ms, true, driver.DefaultLease, 4)
	require.Equal(t, 257*ms, l.best)
	l = load{}
	l.took(time.Millisecond, true, driver.DefaultLease, 4)
	n := 0
	for ; n == 0 || l.late; n++ {
		l.took(350*time.Millisecond, true, driver.DefaultLease, 4)
		require.Less(t, n, 200)
	}
	require.Greater(t, n, 60)
	for range 10_000 {
		l.took(990*time.Millisecond, true, driver.DefaultLease, 4)
	}
	require.True(t, l.late, "who has hardly any patience left is")
}

// The pool's clock stands still if it counts less than half of the time, which is longer than a request may be late, until it counts more
// than three quarters.
func TestWhereThePoolsClockStandsStill(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		was            bool
		apart, counted time.Duration
		is             bool
	}{
		{false, 4 * s, 2*s - 1, true},
		{false, 4 * s, 2 * s, false},
		{false, s, 0, false},
		{false, s + 1, 0, true},
		{true, 4 * s, 3 * s, true},
		{true, 4 * s, 3*s + 1, false},
	} {
		l := load{halts: c.was}
		l.answered(c.apart, c.counted, 8*s)
		require.Equal(t, c.is, l.halts, c)
	}
}

// Where the pool's clock does not count the time between syncs, intervals are not stretched beyond what it counts. And
// with quotas they are not stretched at all.
func TestIntervalsThatMustNotStretch(t *testing.T) {
	var l load
	l.took(time.Millisecond, true, driver.DefaultLease, 100)
	l.took(time.Second, false, driver.DefaultLease, 100)
	l.took(time.Second, false, driver.DefaultLease, 100)
	l.took(time.Second, false, driver.DefaultLease, 100)
	require.Equal(t, 5*time.Second, l.stretched(driver.DefaultLease, 100))
	l.answered(5*time.Second, 5*time.Second, driver.DefaultLease)
	require.Equal(t, 5*time.Second, l.stretched(driver.DefaultLease, 100))
	l.answered(5*time.Second, 0, driver.DefaultLease)
	require.Equal(t, 1500*time.Millisecond, l.stretched(driver.DefaultLease, 100), "most of the hundred are dead")
	l.answered(1500*time.Millisecond, 1500*time.Millisecond, driver.DefaultLease)
	require.Equal(t, 5*time.Second, l.stretched(driver.DefaultLease, 100))

	tagged := newTagPool(t, 1000, acme(0, 200), 1).members[0].p
	tagged.load.took(time.Second, false, driver.DefaultLease, 1)
	require.Equal(t, time.Second, tagged.Interval(), "tokens of tags are drawn for a usual interval")
}

// failing returns the shortest and the longest time from each failed request to the next one.
func failing(p *Processor, now, took time.Duration, n int) (least, most []time.Duration) {
	for range n {
		sent := now
		req := p.Request(sent, uint64(sent)+1, Observation{Demand: driver.Whole})
		p.Failed(sent+took, req.Seq)
		least, most = append(least, p.Next(sent+took, 0)-sent), append(most, p.Next(sent+took, 1)-sent)
		now = max(p.Next(sent+took, 1), sent+took)
	}
	return least, most
}

// After failures the time to the next request doubles up to half a lease, and half of it is random: for who holds a
// share, and for who has had no answer yet.
func TestFailuresBackOff(t *testing.T) {
	const s = time.Second
	joining := func() *Processor { return NewProcessor(ProcessorConfig{Pool: "p", ID: "a"}, "1") }
	crowd := func() *Processor {
		p := content(t, 0)
		p.Answer.Live = 1000
		return p
	}
	for name, tc := range map[string]struct {
		p    *Processor
		took time.Duration
		want []time.Duration
	}{
		"refused": {content(t, 0), time.Millisecond, []time.Duration{
			s / 4, s / 2, s, 2 * s, 21 * s / 8, 21 * s / 16, s, // while the lease lasts, half of what is left of it
			s, 3 * s, // until 11 s; then it goes on without the store's consent
		}},
		"refused before any answer": {joining(), time.Millisecond, []time.Duration{s / 4, s / 2, s, 2 * s, 4 * s, 5 * s, 5 * s}},
		"late":                      {content(t, 0), s, []time.Duration{s, 2 * s, 3 * s, 3 * s / 2, s, 3 * s, 3 * s}},
		"late before any answer":    {joining(), s, []time.Duration{s, 2 * s, 4 * s, 5 * s, 5 * s}},
		"late in a large pool":      {crowd(), s, []time.Duration{5 * s / 2, 5 * s, 5 * s, 3 * s}},
	} {
		least, most := failing(tc.p, 2*s, tc.took, len(tc.want))
		require.Equal(t, tc.want, most, name)
		for i := range least {
			require.Equal(t, tc.want[i]/2, least[i], name)
		}
	}
}

// Fast requests are bounded in large pools, and become fewer while they bring nothing.
func TestFastRequestsAreBounded(t *testing.T) {
	for live, want := range map[int]time.Duration{2: 100 * ms, largePool: 100 * ms, 100: 100 * ms, 1000: 250 * ms, 4000: time.Second} {
		p := content(t, 0)
		p.Answer.Live, p.vain = live, 0
		require.Equal(t, want, p.fast(), "%d processors", live)
		p.vain = 2
		third := want
		if live >= largePool {
			third = min(4*want, p.Interval())
		}
		require.Equal(t, third, p.fast(), "%d processors, the third request", live)
		p.vain = 0
		p.load.factor = 2
		require.GreaterOrEqual(t, p.fast(), min(2*want, p.Interval()), "%d processors, a slow store", live)
	}
}

// One that has nothing asks again soon only while there is something to be had.
func TestFastRequestsWantRoom(t *testing.T) {
	for name, tc := range map[string]struct {
		claims []driver.Share // of the others
		fast   bool
	}{
		"room that nobody claims":      {[]driver.Share{driver.Whole / 4, driver.Whole / 4}, true},
		"one that has too much":        {[]driver.Share{driver.Whole / 3, driver.Whole * 2 / 3}, true},
		"many that have a little more": {[]driver.Share{driver.Whole * 51 / 200, driver.Whole * 51 / 200, driver.Whole * 51 / 200}, true},
		"all is taken by its right":    {[]driver.Share{driver.Whole / 2, driver.Whole / 2}, false},
	} {
		p := NewProcessor(ProcessorConfig{Pool: "p", ID: "a", Policy: func(rows []driver.RosterRow) []driver.Share {
			wants := Even(rows)
			if !tc.fast { // as if two others had a right to all of it
				wants = []driver.Share{driver.Whole / 10, driver.Whole / 2, driver.Whole / 2}
			}
			return wants
		}}, "1")
		rows := []driver.RosterRow{{ID: "a", Demand: driver.Whole}}
		for i, c := range tc.claims {
			rows = append(rows, driver.RosterRow{ID: string(rune('b' + i)), Claim: c, Demand: driver.Whole})
		}
		req := p.Request(0, 1, Observation{Demand: driver.Whole})
		require.NoError(t, p.Take(0, driver.Answer{
			Seq: req.Seq, Nonce: 1, Lease: driver.DefaultLease, Revision: 1, Grant: driver.Grant{Live: len(rows), PoolSize: len(rows), Roster: rows},
		}, ""))
		require.Equal(t, tc.fast, p.hope(0), name)
		p.urgency = urgencyNone
		p.demand = driver.Whole
		p.Poke(0)
		require.Equal(t, tc.fast, p.urgency != urgencyNone, "%s, when a caller waits", name)
	}
}
