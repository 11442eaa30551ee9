//go:build numathrottle_faults

package chaos

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

const ms = time.Millisecond

func TestFullestWindowIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		stamps []time.Duration
		want   int
	}{
		"none":            {nil, 0},
		"one":             {[]time.Duration{5 * ms}, 1},
		"both ends":       {[]time.Duration{0, 100 * ms}, 2},
		"just too far":    {[]time.Duration{0, 100*ms + 1}, 1},
		"in the middle":   {[]time.Duration{0, 200 * ms, 210 * ms, 220 * ms, 500 * ms, 590 * ms}, 3},
		"at the end":      {[]time.Duration{0, 400 * ms, 500 * ms, 500 * ms, 500 * ms}, 4},
		"all at one time": {slices.Repeat([]time.Duration{7 * ms}, 9), 9},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, fullest(c.stamps, 100*ms)) })
	}
}

func TestWindowsAreJudgedByTheBound(t *testing.T) {
	b := bound{Max: 200, Burst: 20, Processors: 4}
	even := everyFor(5*ms, 0, 30*time.Second)
	for _, w := range b.windows(even) {
		require.LessOrEqual(t, w.Worst, 1.0, w.Length)
		require.InDelta(t, 200*w.Length.Seconds()+24, w.Allowed, 1e-9)
	}
	// A tenth too much breaks the bound in windows of 10 s, where the burst counts little.
	tooMany := everyFor(4500*time.Microsecond, 0, 30*time.Second)
	worst := b.windows(tooMany)
	require.Less(t, worst[0].Worst, 1.0)
	require.Greater(t, worst[2].Worst, 1.05)
	// One full burst more than allowed at one moment breaks the shortest.
	require.Greater(t, b.windows(slices.Repeat([]time.Duration{time.Second}, 45))[0].Worst, 1.0)
}

func TestNearCallsAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		stamps []time.Duration
		want   time.Duration
	}{
		"none":                     {nil, 0},
		"even":                     {everyFor(100*ms, 7*ms, time.Second), 0},
		"further apart":            {everyFor(130*ms, 0, time.Second), 0},
		"one late":                 {[]time.Duration{0, 140 * ms, 200 * ms, 300 * ms}, 40 * ms},
		"after a pause":            {[]time.Duration{0, 100 * ms, 900 * ms, 930 * ms}, 70 * ms},
		"two, with one in between": {[]time.Duration{0, 95 * ms, 190 * ms}, 10 * ms},
		"all at one time":          {[]time.Duration{50 * ms, 50 * ms, 50 * ms}, 200 * ms},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, nearest(c.stamps, 100*ms)) })
	}
	strict := bound{Max: 10, Burst: 1, Processors: 4, Strict: true}
	require.InDelta(t, 1+(1+0.25)*10, strict.allowed(time.Second), 1e-9)
}

func TestAnOverrideIsInForceWhenTheLastOneTellsIt(t *testing.T) {
	uses := []use{
		{worker: 0, granted: 10 * ms, ceiling: 100},
		{worker: 1, granted: 20 * ms, ceiling: 200},
		{worker: 0, granted: 30 * ms, ceiling: 200},
		{worker: 1, granted: 40 * ms, ceiling: 200},
	}
	at, ok := inForce(uses, 200, 2)
	require.True(t, ok)
	require.Equal(t, 10*ms, at)
	_, ok = inForce(uses, 200, 3)
	require.False(t, ok, "one says nothing")
	_, ok = inForce(uses, 100, 2)
	require.False(t, ok)
	_, ok = inForce(append(uses, use{worker: 1, granted: 50 * ms, ceiling: 300}), 200, 2)
	require.False(t, ok, "one has left it")
}

func TestRecoveryIsTheFirstOfTwoFullSeconds(t *testing.T) {
	const need = 190
	for name, c := range map[string]struct {
		stamps []time.Duration
		want   time.Duration
		ok     bool
	}{
		"never stopped":      {everyFor(5*ms, 0, 5*time.Second), 0, true},
		"nothing":            {nil, 5 * time.Second, false},
		"after a pause":      {everyFor(5*ms, 2*time.Second, 5*time.Second), 1950 * ms, true},
		"too little":         {everyFor(6*ms, 0, 5*time.Second), 5 * time.Second, false},
		"one second only":    {everyFor(5*ms, 0, time.Second), 5 * time.Second, false},
		"a short second one": {append(everyFor(5*ms, 0, 1500*ms), everyFor(5*ms, 2500*ms, 5*time.Second)...), 2450 * ms, true},
		"not long enough":    {everyFor(5*ms, 3500*ms, 5*time.Second), 5 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			took, ok := recovered(c.stamps, 0, 5*time.Second, need)
			require.Equal(t, c.ok, ok)
			require.Equal(t, c.want, took)
		})
	}
}

func TestLateUsesAndOverdrawnLeasesAreSeen(t *testing.T) {
	const resumed = 100 * ms
	uses := []use{
		{worker: 0, asked: 10 * ms, granted: 20 * ms, until: 50 * ms, arrived: 21 * ms},     // in time
		{worker: 1, asked: 10 * ms, granted: 20 * ms, until: 50 * ms, arrived: 101 * ms},    // stopped before the call
		{worker: 2, asked: 10 * ms, granted: 102 * ms, until: 50 * ms, arrived: 103 * ms},   // stopped before the stamp
		{worker: 3, asked: 10 * ms, granted: 120 * ms, until: 150 * ms, arrived: 121 * ms},  // waited for a new lease
		{worker: 4, asked: 105 * ms, granted: 106 * ms, until: 150 * ms, arrived: 106 * ms}, // new
		{worker: 5, asked: 105 * ms, granted: 106 * ms, until: 50 * ms, arrived: 107 * ms},  // drawn on an old lease
	}
	require.Equal(t, map[int]int{1: 1, 2: 1}, lateUses(uses, resumed))
	require.Equal(t, []use{uses[5]}, afterEnd(uses))
}

// TestJudgeSeesProcessesThatDrawTooMuch is the proof that the windows can be broken:
// the workers are told twice the limit.
func TestJudgeSeesProcessesThatDrawTooMuch(t *testing.T) {
	inTurn(t)
	server := testenv.Redis(t)
	p := startPool(t, poolConfig{Stores: []string{"redis://" + server.Addr(), "redis://" + server.Addr()}, Max: 200, Reported: 400})
	_, ok := p.recovery(clock(), p.removal()+firstShare)
	require.True(t, ok)
	worst := p.judge()
	require.Greater(t, worst[1].Worst, 1.0, "calls in a second")
	require.Greater(t, worst[2].Tokens, 400.0)
}

// TestJudgeSeesProcessesThatDrawOnOldLeases is the same for leases that are over:
// the workers go on without the store.
func TestJudgeSeesProcessesThatDrawOnOldLeases(t *testing.T) {
	inTurn(t)
	server := testenv.Redis(t)
	url := "redis://" + server.Addr()
	p := startPool(t, poolConfig{Stores: []string{url, url}, Overdraw: true})
	_, ok := p.recovery(clock(), p.removal()+firstShare)
	require.True(t, ok)
	require.Empty(t, afterEnd(p.service.since(0)))
	require.NoError(t, server.Stop(t.Context()))
	require.Eventually(t, func() bool { return len(afterEnd(p.service.since(0))) > 0 }, 30*time.Second, 50*ms)
}

// TestJudgeSeesProcessesThatCallTooOften is the same for strict limits: the workers are told
// slots that lie twice as near.
func TestJudgeSeesProcessesThatCallTooOften(t *testing.T) {
	inTurn(t)
	url := "redis://" + testenv.Redis(t).Addr()
	p := startPool(t, poolConfig{Stores: []string{url, url}, Max: 5, Reported: 10, Strict: true})
	_, ok := p.recovery(clock(), p.forgotten()+firstShare)
	require.True(t, ok)
	require.Eventually(t, func() bool {
		return nearest(grants(p.service.since(0), nil), p.spacing()) > 2*wire.Validity(p.spacing())
	}, 30*time.Second, 50*ms)
}

// TestJudgeSeesLimitsThatAreNotKept is the same for hard limits, ramps and calls in flight.
func TestJudgeSeesLimitsThatAreNotKept(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pool poolConfig
		seen func(p *pool) bool
	}{
		"hard": {poolConfig{Hard: true, Soft: true}, func(p *pool) bool { return p.judge()[1].Worst > 1 }},
		"ramp": {poolConfig{RampUp: time.Minute, Min: 40, Soft: true}, func(p *pool) bool {
			return p.offRamp(p.service.since(0)) != ""
		}},
		"slots": {poolConfig{Slots: 8, Goroutines: 8, Soft: true}, func(p *pool) bool { return overlap(p.service.since(0)) > p.Slots }},
		"slots of a tag": {poolConfig{Slots: 8, OfTag: true, Goroutines: 8, Soft: true}, func(p *pool) bool {
			return overlap(p.service.since(0)) > p.Slots
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inTurn(t)
			url := "redis://" + testenv.Redis(t).Addr()
			c.pool.Stores = []string{url, url}
			p := startPool(t, c.pool)
			_, ok := p.recovery(clock(), p.removal()+firstShare)
			require.True(t, ok)
			require.Eventually(t, func() bool { return c.seen(p) }, 30*time.Second, 100*ms)
		})
	}
}

func TestOverlapIsCounted(t *testing.T) {
	from := func(granted, until time.Duration) use { return use{granted: granted, until: until} }
	require.Zero(t, overlap(nil))
	require.Equal(t, 1, overlap([]use{from(10*ms, 20*ms), from(20*ms, 30*ms)}), "one begins where the other ends")
	require.Equal(t, 3, overlap([]use{from(10*ms, 40*ms), from(15*ms, 20*ms), from(18*ms, 50*ms), from(30*ms, 60*ms)}))
}

func TestTheRampHasTwoBounds(t *testing.T) {
	// It begins at 0 s at the earliest, at 5 s at the latest, and has stood still for 10 s.
	p := &pool{poolConfig: poolConfig{Max: 200, Min: 40, RampUp: 2 * time.Minute}, ready: 5 * time.Second, away: 10 * time.Second}
	at := func(ceiling int) []use { return []use{{worker: 1, granted: 75 * time.Second, ceiling: ceiling}} }
	require.Empty(t, p.offRamp(at(120)), "as it should be")
	require.Empty(t, p.offRamp(at(140)), "it began at once, and stood still for nothing")
	require.Contains(t, p.offRamp(at(142)), "140.0 at most")
	require.Contains(t, p.offRamp(at(118)), "120.0 at least")
	require.Contains(t, p.offRamp(at(40)), "at least", "it began anew")
	require.Empty(t, p.offRamp(append(at(60), at(121)...)), "the last one counts")
}

func TestAHardLimitHasNoBurst(t *testing.T) {
	b := bound{Max: 200, Burst: 100, Processors: 4, Hard: true}
	require.InDelta(t, 200, b.allowed(100*ms), 0)
	require.InDelta(t, 200, b.allowed(time.Second), 0)
	require.InDelta(t, 2000, b.allowed(10*time.Second), 0)
	require.Greater(t, b.windows(slices.Repeat([]time.Duration{time.Second}, 201))[0].Worst, 1.0)
}

// everyFor returns stamps at a distance, in [from, to).
func everyFor(distance, from, to time.Duration) (stamps []time.Duration) {
	for s := from; s < to; s += distance {
		stamps = append(stamps, s)
	}
	return stamps
}

func TestClusterThatStopsServingOnceMoreIsFound(t *testing.T) {
	seconds := func(at ...float64) (all []time.Duration) {
		for _, s := range at {
			all = append(all, time.Duration(s*float64(time.Second)))
		}
		return all
	}
	for name, c := range map[string]struct {
		acked []time.Duration
		until float64
		want  float64 // 0: never stopped
	}{
		"nothing":                {nil, 20, 0},
		"goes on":                {seconds(10, 10.5, 11.4, 12), 20, 0},
		"a second is not long":   {seconds(10, 11, 12), 20, 0},
		"stops":                  {seconds(10, 10.1, 13, 13.1), 20, 13},
		"stops at once":          {seconds(13), 20, 13},
		"stops twice":            {seconds(10, 12, 14, 14.1), 20, 14},
		"stops later":            {seconds(10, 10.1, 13, 13.1), 12.9, 0},
		"was away before":        {seconds(1, 9.9, 10.1), 20, 0},
		"was away, stops, later": {seconds(1, 10.1, 12, 14), 13, 12},
	} {
		t.Run(name, func(t *testing.T) {
			again, stopped := lastReturn(c.acked, 10*time.Second, time.Duration(c.until*float64(time.Second)))
			require.Equal(t, c.want != 0, stopped)
			require.InDelta(t, c.want, again.Seconds(), 1e-9)
		})
	}
}
