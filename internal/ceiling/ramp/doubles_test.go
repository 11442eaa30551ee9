package ramp

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/race"
)

// doubles is Next, for modes and states that need no new configuration, in nothing but
// what Lua has: doubles, and math.floor. Every number must be exact.
func doubles(t *testing.T, c Config, s State, st Step) [8]float64 {
	t.Helper()
	exact := func(x float64) float64 {
		require.InDelta(t, math.Trunc(x), x, 0)
		require.LessOrEqual(t, math.Abs(x), float64(maxMicros))
		return x
	}
	millis := func(us float64) float64 { return math.Floor(us / 1000) }
	now, at, open := float64(st.Now), float64(s.At), float64(s.Second)
	from, to, base, missed := float64(s.From), float64(s.To), float64(s.Base), float64(s.Missed)
	used, offered, full := float64(s.Used), float64(s.Offered), float64(s.Ramp)
	rate, offer := float64(st.Used), float64(st.Offered)
	within := func(x float64) float64 { return math.Max(0, math.Min(exact(x), full)) }
	cool, percent := float64(c.CoolDownPeriod.Microseconds()), float64(c.RampDownPercentage)
	late := func(missed float64) bool { return c.Mode == GoBackN && exact((missed+1)*1e6) > cool }
	end := func(n float64) {
		if used > 0 {
			move := 0.0
			switch {
			case offered > 0 && (c.Mode == Relaxed || exact(used*100) >= exact(float64(c.ThresholdPercentage)*offered)):
				move = 1e6
			case offered > 0 && c.Mode == GoBackN:
				move = -1e6
			}
			from, to = within(to+move*(n-1)), within(to+move*n)
			base, missed = from, 0
		} else {
			missed = math.Min(missed+n, 1e9)
			from = to
			if late(missed) {
				to = within(base - exact(missed*percent*1e4))
				if late(missed - 1) {
					from = within(base - exact((missed-1)*percent*1e4))
				} else {
					from = math.Min(from, to)
				}
			}
		}
		open, used, offered = open+n*1e6, 0, 0
	}
	gather := func(until float64) {
		d := millis(until) - millis(at)
		used, offered = exact(used+exact(rate*d)), exact(offered+exact(offer*d))
		at = until
	}
	if c.Mode == Scheduled {
		from = within(to + now - at)
		return [8]float64{now, now, from, from, from, 0, 0, 0}
	}
	if over := open + 1e6; now >= over {
		gather(over)
		end(1)
		if n := math.Floor((now - over) / 1e6); n > 0 {
			used, offered = exact(rate*1000), exact(offer*1000)
			end(n)
		}
		at = open
	}
	gather(now)
	return [8]float64{at, open, from, to, base, missed, used, offered}
}

// A store that has only doubles comes to the same, at a logical time of this century.
func TestDoubles(t *testing.T) {
	seeds(t, uint64(race.Fewer(200)), func(t *testing.T, rng *rand.Rand) {
		c := randomConfig(rng)
		now := int64(4_000_000_000_000_000) + rng.Int64N(second) // the year 2096
		s, _ := c.Next(State{}, Step{Now: now})
		for range 100 {
			st := randomStep(rng, s.At)
			st.Empty, st.Silence = false, 0
			if rng.IntN(4) == 0 {
				st.Used, st.Offered = maxFlow, maxFlow-rng.Int64N(2)
			}
			want := doubles(t, c, s, st)
			s, _ = c.Next(s, st)
			var got [8]float64
			for i, f := range fieldsOf(&s) {
				if i < len(got) {
					got[i] = float64(*f)
				}
			}
			require.Equal(t, want, got)
		}
	})
}
