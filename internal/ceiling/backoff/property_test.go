package backoff

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling/state"
)

func requireSound(t *testing.T, c Config, s State) {
	t.Helper()
	for _, at := range []int64{math.MinInt64, 0, s.At, s.From, s.At + second, s.At + 10*second, maxMicros, math.MaxInt64} {
		ceiling := c.Ceiling(s, at)
		require.True(t, ceiling >= float64(c.Reserved) && ceiling <= Whole, "%v at %d of %+v", ceiling, at, s)
	}
	shared := state.Shared[State]{State: s, Epoch: 5}
	text, err := state.Text(shared)
	require.NoError(t, err)
	again, err := state.Parse[State](string(text))
	require.NoError(t, err)
	require.Equal(t, shared, again)
}

// randomReports are of a few processors, mostly sane and of the present generation.
func randomReports(rng *rand.Rand, generation int64) (out []Report) {
	for range rng.IntN(6) {
		r := Report{Generation: generation - rng.Int64N(2), Accepted: rng.Int64N(Whole)}
		switch rng.IntN(5) {
		case 0:
			r.Refused = rng.Int64N(Whole)
		case 1:
			r.Overloaded = rng.Int64N(Whole / 100)
		case 2:
			r.Accepted, r.Refused = math.MaxInt64, math.MinInt64
		}
		out = append(out, r)
	}
	return out
}

// Whatever happens, the ceiling is never above the limit nor below what is reserved; a
// cut takes no more than 0.51 of it, there is one per lag, and it rises only while the limit is used.
func TestProperties(t *testing.T) {
	for seed := range uint64(300) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			c := Config{
				Max: 1 + rng.Int64N(maxTokens), Per: minPer + time.Duration(rng.Int64N(int64(maxPer-minPer)))/1000*1000,
				Reserved: 1 + rng.Int64N(int64(math.Exp(rng.Float64()*math.Log(Whole)))),
			}
			var s State
			now := rng.Int64N(second)
			for range 200 {
				now += rng.Int64N(1 + rng.Int64N(3*second))
				st := Step{Now: now, Lag: rng.Int64N(second), Reports: randomReports(rng, s.Generation), Offered: rng.Int64N(Whole), Used: rng.Int64N(Whole)}
				before, was := s, c.Ceiling(s, now)
				s = c.Next(s, st)
				requireSound(t, c, s)
				is := c.Ceiling(s, now)
				if s.Generation == before.Generation {
					require.InDelta(t, was, is, 1, "a step without a cut changes nothing at once")
					continue
				}
				require.Equal(t, before.Generation+1, s.Generation)
				require.True(t, before.Counts(now), "within the lag")
				require.LessOrEqual(t, is, max(was*mildBeta/100, float64(c.Reserved))+1)
				require.GreaterOrEqual(t, is, was*0.49-2)
			}
		})
	}
}

// Foreign numbers neither overflow nor go unnoticed.
func TestForeignSteps(t *testing.T) {
	huge := make([]Report, 1000)
	for i := range huge {
		huge[i] = Report{0, math.MaxInt64, math.MaxInt64, math.MaxInt64}
	}
	for _, c := range []Config{hundred, {Max: maxTokens, Per: minPer, Reserved: 1}, {Max: 1, Per: maxPer, Reserved: Whole}} {
		var s State
		for _, st := range []Step{
			{Now: math.MaxInt64, Lag: math.MaxInt64, Reports: huge, Used: math.MaxInt64, Offered: math.MaxInt64},
			{Now: math.MinInt64, Lag: math.MinInt64, Reports: huge, Used: math.MinInt64, Offered: math.MinInt64},
			{Now: 5, Reports: huge, Used: 1, Offered: math.MaxInt64},
		} {
			for _, from := range []State{{}, s} {
				s = c.Next(from, st)
				requireSound(t, c, s)
				for _, other := range []Config{hundred, {Max: maxTokens, Per: minPer, Reserved: 1}, {Max: 1, Per: maxPer, Reserved: 7}} {
					requireSound(t, other, other.Next(s, st))
					_ = other.Ceiling(s, math.MaxInt64)
				}
			}
		}
	}
}

// Any text is an error, or the one form of a state that Next goes on from.
func FuzzParseState(f *testing.F) {
	s := hundred.Next(State{}, Step{Now: 5, Lag: 7, Reports: []Report{report(0, 50, 50)}})
	text, err := state.Text(state.Shared[State]{State: s, Epoch: 5})
	require.NoError(f, err)
	for _, seed := range []string{string(text), "1 0 0 0 0 0 0 0 0 0 0 0", "1 0 1 1 0 0 1 1 0 0 1 +1000", "2 0", "1", strings.Repeat("9", 300), ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := state.Parse[State](text)
		if err != nil {
			require.Zero(t, s)
			return
		}
		again, err := state.Text(s)
		require.NoError(t, err)
		require.Equal(t, text, string(again), "a state has one form")
		st := Step{Now: s.State.At + 1_234_567, Reports: []Report{report(s.State.Generation, 1, 1)}, Used: 1, Offered: 1}
		requireSound(t, hundred, hundred.Next(s.State, st))
	})
}
