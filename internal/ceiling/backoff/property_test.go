package backoff

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func requireSound(t *testing.T, c Config, s State) {
	t.Helper()
	require.NoError(t, s.check())
	for _, at := range []int64{math.MinInt64, 0, s.At, s.From, s.At + second, s.At + 10*second, maxMicros, math.MaxInt64} {
		ceiling := c.Ceiling(s, at)
		require.True(t, ceiling >= float64(c.Reserved) && ceiling <= Whole, "%v at %d of %+v", ceiling, at, s)
	}
	text, err := s.AppendText(nil)
	require.NoError(t, err)
	again, err := ParseState(string(text))
	require.NoError(t, err)
	require.Equal(t, s, again)
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
			require.NoError(t, c.Validate())
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
	text, err := s.AppendText(nil)
	require.NoError(f, err)
	f.Add(string(text))
	f.Add("0 0 0 0 0 0 0 0 0 0")
	f.Add("1 1 0 0 1 1 0 0 1 +1000")
	f.Add(strings.Repeat("9", 300))
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseState(text)
		if err != nil {
			require.Zero(t, s)
			require.Less(t, len(err.Error()), 2000)
			return
		}
		again, err := s.AppendText(nil)
		require.NoError(t, err)
		require.Equal(t, text, string(again), "a state has one form")
		requireSound(t, hundred, hundred.Next(s, Step{Now: s.At + 1_234_567, Reports: []Report{report(s.Generation, 1, 1)}, Used: 1, Offered: 1}))
	})
}

// FuzzNext makes steps of the bytes, 16 for each.
func FuzzNext(f *testing.F) {
	f.Add([]byte("\x00\x0f\x42\x40\x00\x00\x00\x10\x00\x00\x00\x20\x00\x00\x00\x00"))
	f.Add([]byte(strings.Repeat("\x00\x1e\x84\x80\x3b\x9a\xca\x00\x3b\x9a\xca\x00\x01\x09\x09\x09", 6)))
	f.Fuzz(func(t *testing.T, b []byte) {
		var s State
		c := hundred
		for len(b) >= 16 && len(b) < 16*200 {
			r := Report{
				Generation: s.Generation - int64(b[12]&1), Accepted: int64(binary.BigEndian.Uint32(b[4:])), Refused: int64(binary.BigEndian.Uint32(b[8:])),
			}
			st := Step{Now: s.At + int64(binary.BigEndian.Uint32(b)), Lag: int64(b[13]) * 10_000, Used: int64(b[14]), Offered: int64(b[15])}
			for range 1 + b[12]>>6 {
				st.Reports = append(st.Reports, r)
			}
			if b[12]&2 != 0 {
				c.Max = 1 + int64(b[13])<<(b[14]%20)
			}
			b = b[16:]
			s = c.Next(s, st)
			requireSound(t, c, s)
		}
	})
}
