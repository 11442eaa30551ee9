package ramp

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling/state"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

// randomConfig returns a valid Config, often one at the bounds.
func randomConfig(rng *rand.Rand) Config {
	pick := func(low, high int64) int64 {
		switch rng.IntN(8) {
		case 0:
			return low
		case 1:
			return high
		case 2:
			return low + rng.Int64N(high-low+1)
		}
		return low + int64(math.Exp(rng.Float64()*math.Log(float64(high-low+1)))) - 1
	}
	micros := func(low, high time.Duration) time.Duration {
		return time.Duration(pick(low.Microseconds(), high.Microseconds())) * time.Microsecond
	}
	c := Config{
		Max: pick(1, maxTokens), Per: micros(minPer, maxPer), RampUpDuration: micros(minDuration, maxDuration),
		Mode: Mode(rng.IntN(4)), ResumedRampUp: rng.IntN(2) == 0, TTL: micros(minWait, maxWait),
	}
	c.Min = pick(1, c.Max)
	if c.Mode == OnlyIfUsed || c.Mode == GoBackN {
		c.ThresholdPercentage = pick(0, 100)
	}
	if c.Mode == GoBackN {
		c.CoolDownPeriod, c.RampDownPercentage = micros(minWait, time.Minute), pick(0, 100)
	}
	return c
}

// randomStep returns one after now, rarely in a pool that was left.
func randomStep(rng *rand.Rand, now int64) Step {
	st := Step{Now: now}
	switch rng.IntN(10) {
	case 0: // at the same time
	case 1:
		st.Now += rng.Int64N(1000)
	case 2:
		st.Now += second - now%second // the seconds of most tests begin there
	case 3:
		st.Now += rng.Int64N(3600 * second)
	default:
		st.Now += rng.Int64N(3 * second)
	}
	if rng.IntN(3) > 0 {
		st.Offered = rng.Int64N(Whole + 1)
		st.Used = st.Offered * rng.Int64N(130) / 100
	} else if rng.IntN(3) == 0 {
		st.Used = 1 // a call in vain
	}
	if rng.IntN(20) == 0 {
		st.Empty, st.Silence = rng.IntN(2) == 0, rng.Int64N(400*second)
	}
	return st
}

func seeds(t *testing.T, n uint64, f func(t *testing.T, rng *rand.Rand)) {
	t.Helper()
	for seed := range n {
		if !t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { f(t, rand.New(rand.NewPCG(seed, 0))) }) {
			return
		}
	}
}

// However a stretch of time with the same rates is divided into steps, the state after
// it is the same.
func TestSplitInvariance(t *testing.T) {
	seeds(t, 500, func(t *testing.T, rng *rand.Rand) {
		c := randomConfig(rng)
		now := rng.Int64N(10 * second)
		s, _ := c.Next(State{}, Step{Now: now})
		for range 50 {
			st := randomStep(rng, now)
			whole, ceiling := c.Next(s, st)
			split := s
			first := st
			for range rng.IntN(20) {
				now += rng.Int64N(st.Now - now + 1)
				first.Now = now
				split, _ = c.Next(split, first)
			}
			split, again := c.Next(split, st)
			if !st.Empty && st.Silence <= c.TTL.Microseconds() { // a restart is at a moment
				require.Equal(t, whole, split, "%+v %+v %+v", c, s, st)
				require.Equal(t, ceiling, again)
			}
			s, now = whole, st.Now
		}
	})
}

// Whatever happens, the ceiling is within Min and Max, moves by at most the slope
// upwards, and the state can be written and read again.
func TestBounds(t *testing.T) {
	seeds(t, uint64(testkit.Fewer(500)), func(t *testing.T, rng *rand.Rand) {
		c := randomConfig(rng)
		var s State
		now := rng.Int64N(10 * second)
		for range 100 {
			if rng.IntN(20) == 0 {
				c = randomConfig(rng)
			}
			before, ceilingBefore := s, c.Ceiling(s)
			var ceiling Ceiling
			st := randomStep(rng, now)
			s, ceiling = c.Next(s, st)
			requireSound(t, c, s, ceiling)
			require.Equal(t, ceiling, c.Ceiling(s))
			if before.known() && before.sameScale(s) && st.Silence == 0 {
				slope := float64(c.Max-c.Min) / float64(s.Ramp)
				// The second before last was not judged yet when the last step was made.
				most := ceilingBefore.At(before.At) + slope*float64(st.Now-before.At+second)
				require.LessOrEqual(t, ceiling.At(st.Now), most*(1+1e-12))
			}
			now = st.Now
		}
	})
}

func requireSound(t *testing.T, c Config, s State, ceiling Ceiling) {
	t.Helper()
	for i := range int64(11) {
		at := ceiling.At(s.At + (i-1)*second/5)
		require.True(t, at >= float64(c.Min) && at <= float64(c.Max), "%v in %+v", at, ceiling)
	}
	require.InDelta(t, ceiling.From, ceiling.At(ceiling.Since), 0)
	require.InDelta(t, ceiling.To, ceiling.At(ceiling.Until), 0)
	require.InDelta(t, ceiling.To, ceiling.At(math.MaxInt64), 0)
	shared := state.Shared[State]{State: s, Epoch: 5}
	text, err := state.Text(shared)
	require.NoError(t, err)
	again, err := state.Parse[State](string(text))
	require.NoError(t, err)
	require.Equal(t, shared, again)
}

// Without a restart the ceiling never falls, except in goBackN; that of scheduled and
// relaxed does not depend on how much is used.
func TestMonotone(t *testing.T) {
	seeds(t, 200, func(t *testing.T, rng *rand.Rand) {
		c := randomConfig(rng)
		if c.Mode == GoBackN {
			c.Mode, c.CoolDownPeriod, c.RampDownPercentage = OnlyIfUsed, 0, 0
		}
		var s, other State
		now, last := int64(0), 0.0
		for range 100 {
			var ceiling, otherCeiling Ceiling
			st := randomStep(rng, now)
			st.Empty, st.Silence = false, 0
			s, ceiling = c.Next(s, st)
			require.GreaterOrEqual(t, ceiling.At(st.Now), last)
			require.GreaterOrEqual(t, ceiling.To, ceiling.From)
			last, now = ceiling.At(st.Now), st.Now
			if st.Used > 0 {
				st.Used = 1 + rng.Int64N(st.Used)
			}
			if c.Mode == Scheduled {
				st.Used, st.Offered = rng.Int64N(Whole), rng.Int64N(Whole)
			}
			other, otherCeiling = c.Next(other, st)
			if c.Mode != OnlyIfUsed {
				require.Equal(t, ceiling, otherCeiling)
			}
		}
	})
}

// Between steps that come at least once a second the ceiling goes on where the one
// before had it, but for where a gap begins to cost something.
func TestContinuous(t *testing.T) {
	seeds(t, 200, func(t *testing.T, rng *rand.Rand) {
		c := randomConfig(rng)
		s, ceiling := c.Next(State{}, Step{})
		for range 400 {
			st := randomStep(rng, s.At)
			st.Empty, st.Silence = false, 0
			st.Now = min(st.Now, s.Second+second) // a step at the end of each second
			before := ceiling.At(st.Now)
			s, ceiling = c.Next(s, st)
			begins := c.penalised(s.Missed) && !c.penalised(s.Missed-1)
			if at := ceiling.At(st.Now); !begins || at > before { // it only falls
				require.InEpsilon(t, before, at, 1e-12, "%+v %+v %+v", c, st, s)
			}
		}
	})
}

// A twin is Numaflow's rule as it computes it, which its chart of GoBackN with gaps does not show (see
// testdata/go_back_n.txt): at the first call of a second the
// ceiling is worked out from the last second with calls. It is plain and in floats.
type twin struct {
	c             Config
	level         float64
	last          int64 // second with calls
	used, offered float64
}

func (w *twin) atCall(sec int64) float64 {
	slope := float64(w.c.Max-w.c.Min) / w.c.RampUpDuration.Seconds()
	gap := sec - w.last
	reached := w.used*100 >= float64(w.c.ThresholdPercentage)*w.offered
	switch {
	case gap == 0:
	case w.c.Mode == Scheduled:
		w.level += slope * float64(gap)
	case w.c.Mode == GoBackN && time.Duration(gap)*time.Second > w.c.CoolDownPeriod:
		w.level -= slope * float64(w.c.RampDownPercentage) / 100 * float64(gap-1)
	case w.c.Mode == Relaxed && w.offered > 0 || w.c.Mode != Relaxed && reached:
		w.level += slope
	case w.c.Mode == GoBackN:
		w.level -= slope
	}
	w.level = math.Max(float64(w.c.Min), math.Min(w.level, float64(w.c.Max)))
	w.last = sec
	return w.level
}

// In every second with calls the ceiling is that of the twin: when the second ends, or
// with scheduled when it begins.
func TestTwin(t *testing.T) {
	seeds(t, 500, func(t *testing.T, rng *rand.Rand) {
		c := randomConfig(rng)
		quiet := rng.IntN(12) // how rarely a second has calls
		c.RampUpDuration = time.Second + time.Duration(rng.Int64N(int64(time.Minute))).Truncate(time.Microsecond)
		if c.Mode == GoBackN {
			c.CoolDownPeriod = time.Second + time.Duration(rng.IntN(12))*500*time.Millisecond
		}
		w := &twin{c: c, level: float64(c.Min)}
		s, ceiling := c.Next(State{}, Step{})
		for sec := range int64(300) {
			var st Step
			if sec == 0 || rng.IntN(1+quiet) == 0 {
				st.Offered = 1 + rng.Int64N(Whole)
				st.Used = 1 + st.Offered*rng.Int64N(100)/100
				if rng.IntN(4) == 0 && c.ThresholdPercentage > 0 { // right at the threshold, or just below
					st.Offered -= st.Offered % 100
					st.Used = max(1, st.Offered/100*c.ThresholdPercentage-rng.Int64N(2))
				}
				want, got := w.atCall(sec), ceiling.To
				if c.Mode == Scheduled {
					got = ceiling.From
				}
				require.InEpsilon(t, want, got, 1e-9, "second %d of %+v", sec, c)
				w.used, w.offered = float64(st.Used), float64(st.Offered)
			}
			for part := range int64(3) { // at irregular times
				st.Now = sec*second + (part+1)*second/3
				if part < 2 {
					st.Now -= rng.Int64N(second / 4)
				}
				s, ceiling = c.Next(s, st)
			}
		}
	})
}

// Whatever is not a State and no sane Step is taken as one that is.
func TestForeignSteps(t *testing.T) {
	for mode := Relaxed; mode <= GoBackN; mode++ {
		c := Config{Min: 1, Max: 10, Per: time.Second, RampUpDuration: maxDuration, Mode: mode, TTL: time.Hour}
		if mode == GoBackN {
			c.CoolDownPeriod, c.RampDownPercentage = time.Second, 100
		}
		for _, st := range []Step{
			{Now: math.MaxInt64, Used: math.MaxInt64, Offered: math.MaxInt64, Silence: math.MinInt64},
			{Now: math.MinInt64, Used: math.MinInt64, Offered: math.MinInt64},
			{Now: maxMicros, Used: 1},
			{Now: maxMicros},
			{Now: 5 * second, Silence: math.MaxInt64},
			{Now: 7 * second, Empty: true},
		} {
			for _, first := range []Step{{}, {Now: 5 * second, Used: 5, Offered: 5}, {Now: maxMicros}} {
				s, _ := c.Next(State{}, first)
				next, ceiling := c.Next(s, st)
				requireSound(t, c, next, ceiling)
				require.GreaterOrEqual(t, next.At, s.At, "time never goes back")
			}
		}
	}
}
