package protocol

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
	"github.com/numaproj-contrib/numathrottle/internal/ceiling/backoff"
	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// Refusals of one generation cut once, and those of a generation before, or reported
// within the lag, do not cut again, whoever reports them.
func TestOneCutForAllReports(t *testing.T) {
	r := &driver.Record{}
	var procs []*Processor
	for _, id := range []string{"a", "b", "c"} {
		p := NewProcessor(ProcessorConfig{Pool: "pool", ID: id}, id)
		p.Configure(sharing.Terms{Ceiling: hook.Ceiling(limitOf(t, throttle.Limit{Max: 300, Adaptive: true}))})
		procs = append(procs, p)
		p.ask(t, r, 0, Observation{})
	}
	now := time.Second
	round := func(s sharing.Served) {
		for _, p := range procs {
			p.ask(t, r, now, Observation{Used: 1, Served: s})
			now += 5 * time.Millisecond
		}
	}
	old := sharing.Served{Accepted: 50, Refused: 50, Active: true}
	for range 8 {
		round(old)
	}
	for _, p := range procs {
		lowered, cuts, settling := p.ceiling.adapted(p.clock.logical(now))
		require.True(t, lowered)
		require.Equal(t, uint64(1), cuts)
		require.True(t, settling)
	}
	_, tokens := procs[0].apply(now, 0)
	require.InDelta(t, 300*0.49, tokens, 1e-3)
	now += ceiling.Lag(wire.Interval(driver.DefaultLease, 3))
	for range 8 {
		round(old)
	}
	_, cuts, settling := procs[0].ceiling.adapted(procs[0].clock.logical(now))
	require.Equal(t, uint64(1), cuts, "late news")
	require.False(t, settling)
	old.Cuts = 1
	for range 4 {
		round(old)
	}
	_, cuts, _ = procs[2].ceiling.adapted(procs[2].clock.logical(now))
	require.Equal(t, uint64(2), cuts)
}

// Refusals bring the next request forward, a few times in a generation.
func TestHeedIsBounded(t *testing.T) {
	r := &driver.Record{}
	p := NewProcessor(ProcessorConfig{Pool: "pool", ID: "a"}, "1")
	p.Configure(sharing.Terms{Ceiling: hook.Ceiling(limitOf(t, throttle.Limit{Max: 20, Adaptive: true}))})
	p.ask(t, r, 0, Observation{})
	now := time.Second
	brought := 0
	brings := func(s sharing.Served) {
		p.urgency = urgencyNone
		if p.Obey(now, s); p.urgency == urgencyNow {
			brought++
		}
		now += 100 * time.Millisecond
	}
	for range 20 {
		brings(sharing.Served{Refused: 1, Active: true})
	}
	require.Equal(t, mostHaste, brought)
	brings(sharing.Served{Accepted: 1, Active: true})
	brings(sharing.Served{Cuts: 7, Refused: 1, Active: true})
	require.Equal(t, mostHaste, brought, "nothing was refused, or of calls under another ceiling")
	now += calmHaste
	brings(sharing.Served{Overloaded: 1, Active: true})
	require.Equal(t, mostHaste+1, brought, "after a while")
}

// Whatever the state, a processor uses no more of its share than it may without it.
func TestAdaptedSharesAreNeverLarger(t *testing.T) {
	for _, l := range []throttle.Limit{
		{Max: 100, Adaptive: true},
		{Max: 100, Adaptive: true, AdaptiveMin: 100},
		{Max: 100, Burst: 20, Hard: true, Adaptive: true},
		{Max: 100, Adaptive: true, Min: 10, RampUpDuration: time.Minute},
	} {
		l = limitOf(t, l)
		for _, o := range []Override{{}, {Max: 50, Per: time.Second}, {Max: 300, Per: time.Second}} {
			plain, c := ceilingOf(l, o), ceilingOf(l, o)
			pool := &core{clock: poolClock{answers: 1}}
			cfg, s := c.law.BackoffConfig(), &c.law.Backoff.State
			require.True(t, cfg.Reserved >= 1 && cfg.Reserved <= backoff.Whole)
			for i := range int64(50) {
				reports := []backoff.Report{{Generation: s.Generation, Accepted: 10, Refused: i % 7 / 6 * 10}}
				*s = cfg.Next(*s, backoff.Step{Now: i * 100_000, Used: 1, Offered: 1, Reports: reports})
				for _, held := range []driver.Share{0, 1, driver.Whole / 3, driver.Whole} {
					share, tokens := c.apply(pool, held, time.Duration(i)*100*time.Millisecond, 0)
					most, _ := plain.apply(&core{}, held, 0, 0)
					require.LessOrEqual(t, share, most)
					if tokens > 0 && o.Max == 0 && !l.Ramps() {
						require.GreaterOrEqual(t, tokens, float64(l.AdaptiveMin)*(1-1e-6))
					}
				}
			}
		}
	}
}
