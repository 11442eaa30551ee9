package backoff

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling/state"
)

// hundred is a limit of 100 per second of which 2 are reserved.
var hundred = Config{Max: 100, Per: time.Second, Reserved: Whole / 50}

// per is a rate of tokens per second as a part of hundred.
func per(tokens float64) int64 { return int64(tokens / 100 * Whole) }

// report is that of a processor, in tokens per second.
func report(generation int64, accepted, refused float64) Report {
	return Report{Generation: generation, Accepted: per(accepted), Refused: per(refused)}
}

func TestCut(t *testing.T) {
	for _, tc := range []struct {
		name    string
		reports []Report
		low     float64 // what of the 100 is left; 100: no cut
		good    float64 // to which it recovers
	}{
		{"nobody reports", nil, 100, 100},
		{"nobody is refused", []Report{report(0, 100, 0)}, 100, 100},
		{"half is refused", []Report{report(0, 50, 50)}, 49, 50},
		{"a fifth is refused", []Report{report(0, 80, 20)}, 56, 80},
		{"a tenth is refused", []Report{report(0, 90, 10)}, 85, 100},
		{"one in fifty is refused", []Report{report(0, 98, 2)}, 100, 100},
		{"a little more is refused", []Report{report(0, 60, 2)}, 85, 100},
		{"everything is refused", []Report{report(0, 0, 100)}, 49, 49},
		{"more is accepted than is known to be allowed", []Report{report(0, 300, 100)}, 52.5, 75},
		{"overloads are refusals", []Report{{Accepted: per(50), Overloaded: per(50)}}, 49, 50},
		{"two processors, of which one is bad", []Report{report(0, 50, 0), report(0, 0, 50)}, 49, 50},
		{"three processors, of which one is bad", []Report{report(0, 40, 0), report(0, 0, 40), report(0, 20, 0)}, 100, 100},
		{"three processors, of which two are bad", []Report{report(0, 40, 0), report(0, 0, 40), report(0, 0, 20)}, 49, 49},
		{"three processors that all are refused something", []Report{report(0, 20, 10), report(0, 20, 20), report(0, 20, 10)}, 49, 60},
		{"the others have few refusals", []Report{report(0, 40, 1), report(0, 0, 40), report(0, 20, 0)}, 100, 100},
		{"the others make no calls now", []Report{report(0, 0, 0), report(0, 0, 40), report(0, 0, 0)}, 100, 100},
		{"refusals of another generation", []Report{report(1, 50, 50)}, 100, 100},
		{"no numbers", []Report{{Accepted: math.MinInt64, Refused: math.MinInt64}}, 100, 100},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := hundred.Next(State{}, Step{Now: second, Lag: second / 2, Reports: tc.reports})
			require.InDelta(t, per(tc.low), s.Low, 1)
			require.InDelta(t, per(tc.good), s.Good, 1)
			if tc.low < 100 {
				require.Equal(t, State{At: second, Generation: 1, Cut: second, From: second * 3 / 2, Low: s.Low, Good: s.Good, Max: 100, Per: second}, s)
			}
			require.InDelta(t, per(tc.low), hundred.Ceiling(s, second), 1)
		})
	}
}

// Processors that make no calls are there as well.
func TestIdleProcessorsCount(t *testing.T) {
	one := []Report{report(0, 0, 40)}
	for processors, low := range map[int]float64{0: 49, 1: 49, 2: 49, 3: 100, 50: 100} {
		s := hundred.Next(State{}, Step{Now: second, Reports: one, Processors: processors})
		require.InDelta(t, per(low), s.Low, 1, "%d processors", processors)
		require.Equal(t, low < 100, State{}.Due(second, one, processors))
	}
}

// What is reserved is never cut.
func TestReservedStays(t *testing.T) {
	s, now := State{}, int64(0)
	for range 40 {
		now += second
		s = hundred.Next(s, Step{Now: now, Reports: []Report{report(s.Generation, 0, 50)}})
		require.GreaterOrEqual(t, hundred.Ceiling(s, now), float64(hundred.Reserved))
	}
	require.InDelta(t, float64(hundred.Reserved), hundred.Ceiling(s, now), 1)
	all := Config{Max: 100, Per: time.Second, Reserved: Whole}
	require.InDelta(t, Whole, all.Ceiling(all.Next(State{}, Step{Reports: []Report{report(0, 0, 50)}}), 0), 0)
}

// Refusals of calls that were granted before the lag of a cut is over do not cut again: neither
// does anything happen in the lag, nor for reports of an older generation after it.
func TestOneCutPerLag(t *testing.T) {
	const lag = second / 2
	s := hundred.Next(State{}, Step{Now: second, Lag: lag, Reports: []Report{report(0, 50, 50)}})
	first := s
	for now := int64(second); now < second+lag; now += second / 100 {
		require.False(t, s.Counts(now))
		require.False(t, s.Due(now, []Report{report(1, 0, 90)}, 1))
		s = hundred.Next(s, Step{Now: now, Lag: lag, Reports: []Report{report(0, 0, 90), report(1, 0, 90)}, Used: 1, Offered: 1})
		require.Equal(t, first.Generation, s.Generation)
		require.InDelta(t, per(49), hundred.Ceiling(s, now), 1, "nor does it rise")
	}
	s = hundred.Next(s, Step{Now: second + lag, Lag: lag, Reports: []Report{report(0, 0, 90)}, Used: 1, Offered: 1})
	require.Equal(t, first.Generation, s.Generation, "late news")
	require.True(t, s.Due(second+lag, []Report{report(1, 0, 90)}, 1))
	s = hundred.Next(s, Step{Now: second + lag, Lag: lag, Reports: []Report{report(1, 0, 90)}, Used: 1, Offered: 1})
	require.Equal(t, first.Generation+1, s.Generation, "new ones")
}

// play makes a step every 100 ms in which all is used or nothing is, and returns the ceilings.
func play(s State, from, until int64, used int64) (State, []float64) {
	var out []float64
	for now := from; now < until; now += second / 10 {
		s = hundred.Next(s, Step{Now: now, Used: used, Offered: 10})
		out = append(out, hundred.Ceiling(s, now)/Whole*100)
	}
	return s, out
}

// The ceiling recovers to the last good rate in about five seconds, is flat there, and goes on to the limit.
func TestRecovery(t *testing.T) {
	s := hundred.Next(State{}, Step{Now: 0, Reports: []Report{report(0, 80, 20)}})
	s, c := play(s, 0, 20*second, 10)
	require.InDelta(t, 56, c[0], 0.1)
	require.InDelta(t, 80-24./8, c[25], 0.5, "half of the time: an eighth of the way left")
	require.InDelta(t, 80, c[50], 0.1)
	require.InDelta(t, 80*1.1, c[60], 3)
	for i := 1; i < len(c); i++ {
		require.GreaterOrEqual(t, c[i], c[i-1])
		require.LessOrEqual(t, c[i], 100.0)
	}
	require.InDelta(t, 100, c[65], 0, "all of it, after %v", c)
	require.True(t, s.Free())
	require.Equal(t, int64(1), s.Generation)
}

// A service that can do four times as much again is used to 80 % within ten seconds.
func TestProbingFindsAQuarterWithinTenSeconds(t *testing.T) {
	s := hundred.Next(State{}, Step{Now: 0, Reports: []Report{report(0, 25, 75)}})
	s.Good = per(25)
	s.Low = per(17.5)
	_, c := play(s, 0, 11*second, 10)
	require.GreaterOrEqual(t, c[100], 80.0, "%v", c)
}

// While the limit is not what holds callers back nothing is learnt, and nothing rises.
func TestNoGrowthWithoutUse(t *testing.T) {
	s := hundred.Next(State{}, Step{Now: 0, Reports: []Report{report(0, 80, 20)}})
	s, before := play(s, 0, 2*second, 10)
	s, c := play(s, 2*second, 100*second, 8)
	require.InDelta(t, before[len(before)-1], c[len(c)-1], 1, "one step late")
	require.Equal(t, int64(1), s.Still)
	require.InDelta(t, c[len(c)-1], hundred.Ceiling(s, 1000*second)/Whole*100, 1e-9)
	s, again := play(s, 100*second, 102*second, 9)
	require.Greater(t, again[len(again)-1], c[len(c)-1]+2)
	require.Zero(t, s.Still)
	idle := hundred.Next(s, Step{Now: 102 * second})
	require.Equal(t, int64(1), idle.Still, "nor does it when nobody calls")
	starved := hundred.Next(idle, Step{Now: 103 * second, Used: 1})
	require.Zero(t, starved.Still, "who calls and is offered nothing is held back")
}

// Without steps a ceiling rises for two seconds: nobody knows whether it is used.
func TestCeilingStopsWithoutSteps(t *testing.T) {
	s := hundred.Next(State{}, Step{Now: 0, Reports: []Report{report(0, 80, 20)}})
	require.InDelta(t, hundred.Ceiling(s, 2*second), hundred.Ceiling(s, 50*second), 0)
	require.Greater(t, hundred.Ceiling(s, 2*second), hundred.Ceiling(s, second))
}

// Another limit keeps the rate that the service can do, not the part of the limit.
func TestAnotherLimit(t *testing.T) {
	s := hundred.Next(State{}, Step{Now: 0, Reports: []Report{report(0, 80, 20)}})
	for _, tc := range []struct {
		c    Config
		want float64 // tokens per Per
	}{
		{Config{Max: 50, Per: time.Second, Reserved: 1}, 50},
		{Config{Max: 200, Per: time.Second, Reserved: 1}, 56},
		{Config{Max: 6000, Per: time.Minute, Reserved: 1}, 56 * 60},
		{Config{Max: 20, Per: time.Second, Reserved: 1}, 20},
		{Config{Max: 400, Per: time.Second, Reserved: Whole / 4}, 100},
	} {
		require.InDelta(t, tc.want, tc.c.Ceiling(s, 0)/Whole*float64(tc.c.Max), 1e-5, "%+v", tc.c)
		next := tc.c.Next(s, Step{Now: 0})
		requireSound(t, tc.c, next)
		require.InDelta(t, tc.want, tc.c.Ceiling(next, 0)/Whole*float64(tc.c.Max), 1e-5)
	}
	free := hundred.Next(State{}, Step{Now: 0})
	require.True(t, Config{Max: 200, Per: time.Second, Reserved: 1}.Next(free, Step{}).Free(), "what was free stays so")
}

func TestResume(t *testing.T) {
	s := hundred.Next(State{}, Step{Now: 90 * second, Lag: second, Reports: []Report{report(0, 80, 20)}})
	r := s.Resume(5 * second)
	require.True(t, r.Counts(5*second))
	require.InDelta(t, hundred.Ceiling(s, 90*second), hundred.Ceiling(r, 5*second), 0)
	requireSound(t, hundred, r)
	require.Zero(t, State{}.Resume(5))
	r, due := Config{}.Renew(s, 5*second, 0)
	require.True(t, due, "the pool does not know")
	require.True(t, r.Free())
	require.Equal(t, s.Generation, r.Generation, "what was refused before is not news")
	requireSound(t, hundred, r)
	none, due := Config{}.Renew(State{}, 5, 0)
	require.Zero(t, none)
	require.False(t, due)
}

func TestParseStateRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"5 1 6 6 1 1 0 0 1 1000":           "cut of a state is 6, allowed: 0 to 5",
		"5 1 5 4 1 1 0 0 1 1000":           "from of a state is 4",
		"5 1 5 5 2 1 0 0 1 1000":           "good of a state is 1, allowed: 2",
		"5 1 5 5 0 1 0 2 1 1000":           "low of a state is 0",
		"5 1 5 5 1 1 0 2 1 1000":           "still of a state is 2, allowed: 0 to 1",
		"5 1 5 5 1 1 0 0 0 1000":           "max of a state is 0",
		"5 78000000001 5 5 1 1 0 0 1 1000": "generation of a state is 78000000001",
	} {
		_, err := state.Parse[State]("1 0 " + text)
		require.ErrorContains(t, err, want, "%q", text)
	}
}
