package bucket

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// exactRate is what a share earns in tokens per nanosecond, without rounding.
func exactRate(c Config, share int64) *big.Rat {
	c = withDefaults(c)
	r := big.NewRat(int64(c.Max), int64(c.Per))
	return r.Mul(r, big.NewRat(share, limit.WholeShare))
}

// exactUnits is the integer that at must return after d: floor(rate * d / 2^RateBits).
func exactUnits(s *Segment, d int64) *big.Int {
	u := new(big.Int).Mul(new(big.Int).SetUint64(s.Rate), big.NewInt(d))
	u.Rsh(u, RateBits)
	return u.Add(u, big.NewInt(s.Earned))
}

// made returns a bucket for c, with the default burst if it has none.
func made(c Config) *Bucket {
	b := &Bucket{}
	b.Begin(withDefaults(c), nil)
	return b
}

// withDefaults fills in the period and the burst as a limit has them.
func withDefaults(c Config) Config {
	if c.Per == 0 {
		c.Per = time.Second
	}
	if c.Burst == 0 {
		c.Burst = max(1, EarnedIn(100*time.Millisecond, c.Max, c.Per))
	}
	return c
}

func law(c Config, share int64) (*Segment, Scale) {
	b := made(c)
	return b.segment(limit.Lease{Share: share}, 0, sharing.Never, 0), b.Scale
}

// Bounds of what a limit may be.
const (
	maxTokens = 1_000_000_000
	minPer    = time.Millisecond
	maxPer    = 31 * 24 * time.Hour
)

// allowed tells whether a limit may be as c is.
func allowed(c Config) bool {
	c = withDefaults(c)
	return c.Max > 0 && c.Max <= maxTokens && c.Per >= minPer && c.Per <= maxPer && c.Burst > 0 && c.Burst <= maxTokens && c.Max <= int(c.Per)
}

// extremes are at the corners of what a limit may be.
var extremes = []Config{
	{Max: 1, Per: maxPer},
	{Max: 1, Per: maxPer, Burst: maxTokens},
	{Max: 1, Per: 24 * time.Hour},
	{Max: 1, Per: minPer},
	{Max: 1},
	{Max: 100},
	{Max: 1000, Per: time.Minute, Burst: 1},
	{Max: 1_000_000, Per: minPer},
	{Max: maxTokens},
	{Max: maxTokens, Burst: maxTokens},
	{Max: maxTokens, Per: maxPer},
	{Max: maxTokens, Per: maxPer, Burst: 1},
}

func randomLimit(r *rand.Rand) Config {
	if r.IntN(4) == 0 {
		return extremes[r.IntN(len(extremes))]
	}
	for {
		c := Config{
			Max: int(math.Exp(r.Float64() * math.Log(maxTokens))),
			Per: time.Duration(math.Exp(r.Float64()*math.Log(float64(maxPer)/float64(minPer))) * float64(minPer)),
		}
		if r.IntN(2) == 0 {
			c.Burst = int(math.Exp(r.Float64() * math.Log(maxTokens)))
		}
		if allowed(c) {
			return c
		}
	}
}

func randomShare(r *rand.Rand) int64 {
	if r.IntN(8) == 0 {
		return []int64{1, 2, limit.WholeShare - 1, limit.WholeShare, sharing.MaxShare - 1, sharing.MaxShare}[r.IntN(6)]
	}
	return int64(math.Exp(r.Float64() * math.Log(float64(sharing.MaxShare))))
}

// checkLaw compares a segment with the twin: what it has earned after d, and how
// long it takes to earn u more from then on.
func checkLaw(t testing.TB, c Config, share, d, u int64) {
	t.Helper()
	s, sc := law(c, share)
	require.GreaterOrEqual(t, s.Capacity, sc.Units(1), "%+v share %d: capacity below one token", c, share)
	whole := max(1, float64(share)/float64(limit.WholeShare)) * float64(sc.Units(withDefaults(c).Burst))
	require.LessOrEqual(t, s.Capacity, max(sc.Units(1), int64(whole)), "%+v share %d", c, share)

	got, want := s.At(d), exactUnits(s, d)
	require.True(t, want.IsInt64(), "%+v share %d: %s units after %d ns", c, share, want, d)
	require.Equal(t, want.Int64(), got, "%+v share %d after %d ns", c, share, d)

	// Rounding may only take away: never more than the share's exact rate.
	exact := exactRate(c, share)
	exact.Mul(exact, big.NewRat(d, 1))
	tokens, _ := exact.Float64()
	require.LessOrEqual(t, sc.Tokens(got), tokens*(1+1e-12), "%+v share %d after %d ns", c, share, d)

	wait, ok := s.Wait(u)
	if u <= 0 {
		require.True(t, ok)
		require.Zero(t, wait)
		return
	}
	if !ok || int64(wait) > sharing.Never-d {
		return // further away than the clock reaches
	}
	require.GreaterOrEqual(t, s.At(d+int64(wait))-got, u, "%+v share %d: too early for %d units", c, share, u)
	require.LessOrEqual(t, s.At(d+int64(wait)-1)-got, u, "%+v share %d: too late for %d units", c, share, u)
	if first, _ := s.Wait(u); first > 0 {
		require.Less(t, s.At(int64(first)-1), u, "%+v share %d: from the start it is exact", c, share)
	}
}

func TestSegmentMatchesTwinOnRandomInput(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	n := testkit.Fewer(100_000)
	if testing.Short() {
		n = 2000
	}
	for range n {
		c, share := randomLimit(r), randomShare(r)
		d := int64(math.Exp(r.Float64() * math.Log(float64(4*365*24*time.Hour))))
		_, sc := law(c, share)
		u := int64(math.Exp(r.Float64() * math.Log(float64(sc.Units(withDefaults(c).MaxCost())))))
		checkLaw(t, c, share, d, u)
	}
}

func FuzzSegment(f *testing.F) {
	f.Add(1, int64(maxPer), 0, int64(1), int64(time.Hour), int64(1))
	f.Add(maxTokens, int64(time.Second), maxTokens, int64(limit.WholeShare), int64(365*24*time.Hour), int64(1)<<60)
	f.Add(maxTokens, int64(time.Second), maxTokens, sharing.MaxShare, int64(4*365*24*time.Hour), int64(1)<<60)
	f.Add(100, int64(time.Second), 10, int64(333_333_333), int64(0), int64(0))
	f.Fuzz(func(t *testing.T, maximum int, per int64, burst int, share, d, u int64) {
		c := Config{Max: maximum, Per: time.Duration(per), Burst: burst}
		if !allowed(c) || share < 1 || share > sharing.MaxShare {
			return
		}
		if d < 0 || d > int64(4*365*24*time.Hour) || u > 1<<60 {
			return
		}
		checkLaw(t, c, share, d, u)
	})
}

// A sensible rate is one that a user could notice: a share down to 1e-5.
func TestRateIsAccurate(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	check := func(c Config, share int64) {
		s, sc := law(c, share)
		want, _ := exactRate(c, share).Float64()
		got := float64(s.Rate) / (1 << RateBits) / float64(sc.Units(1))
		require.InEpsilon(t, want, got, 1e-6, "%+v share %d", c, share)
	}
	for _, c := range extremes {
		if c.Burst == maxTokens && c.Max == 1 {
			continue // a bucket for 2.7 million years' worth of tokens; TestHugeBurstKeepsTheRate
		}
		for _, share := range []int64{sharing.MaxShare, limit.WholeShare, limit.WholeShare / 3, limit.WholeShare / 1000, limit.WholeShare / 100_000} {
			check(c, share)
		}
	}
	for range 10_000 {
		c := randomLimit(r)
		if c.Burst > 1000*c.Max {
			c.Burst = 0
		}
		check(c, int64(1e4+r.Float64()*(1e9-1e4)))
	}
}

func TestHugeBurstKeepsTheRate(t *testing.T) {
	c := Config{Max: 1, Per: maxPer, Burst: maxTokens}
	s, sc := law(c, limit.WholeShare)
	want, _ := exactRate(c, limit.WholeShare).Float64()
	require.InEpsilon(t, want, float64(s.Rate)/(1<<RateBits)/float64(sc.Units(1)), 1e-3)
}

func TestSegmentHoldsOnlyBetweenStartAndUntil(t *testing.T) {
	b := made(Config{Max: 1000})
	sc := b.Scale
	start, until := int64(5*time.Second), int64(8*time.Second)
	s := b.segment(limit.Lease{Share: limit.WholeShare}, start, until, 77)
	for _, tc := range []struct {
		name  string
		now   int64
		want  float64 // tokens earned over the 77 units at the start
		valid bool
	}{
		{"long before", 0, 0, true},
		{"at the start", start, 0, true},
		{"a second in", start + int64(time.Second), 1000, true},
		{"one ns before the end", until - 1, 3000, true},
		{"at the end", until, 3000, false},
		{"long after", math.MaxInt64, 3000, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.InDelta(t, tc.want, sc.Tokens(s.By(tc.now)-77), 1e-5)
			require.Equal(t, tc.valid, s.Valid(tc.now))
		})
	}
}

func TestSegmentWithoutShareEarnsNothing(t *testing.T) {
	s := made(Config{Max: 1000}).segment(limit.Lease{}, 10, sharing.Never, 5)
	require.Zero(t, s.Capacity)
	require.False(t, s.Valid(10))
	require.Equal(t, int64(5), s.By(math.MaxInt64))
	_, ok := s.Wait(1)
	require.False(t, ok)
	wait, ok := s.Wait(0)
	require.True(t, ok)
	require.Zero(t, wait)
}

func TestLeaseThatEndedBeforeItBeganEarnsNothing(t *testing.T) {
	s := made(Config{Max: 1000}).segment(limit.Lease{Share: limit.WholeShare}, 100, 50, 5)
	require.False(t, s.Valid(100))
	require.Equal(t, int64(5), s.By(1000))
}

// Unbounded waits are waits too: a share so small that one token takes longer
// than the clock reaches must not look like a share of nothing.
func TestWaitOfCenturiesIsKnown(t *testing.T) {
	s, sc := law(Config{Max: 1, Per: maxPer}, 1)
	wait, ok := s.Wait(sc.Units(1))
	require.True(t, ok)
	require.Greater(t, wait, 100*365*24*time.Hour)
}

func TestWaitIsKnownToTheNanosecond(t *testing.T) {
	s, sc := law(Config{Max: 1024, Per: 1024 * 1024, Burst: 1}, limit.WholeShare/4) // a token in 4096 ns
	for tokens, want := range map[int]time.Duration{0: 0, 1: 4096, 3: 3 * 4096, 1000: 4096_000} {
		wait, ok := s.Wait(sc.Units(tokens))
		require.True(t, ok)
		require.Equal(t, want, wait)
	}
	wait, ok := s.Wait(MaxUnits)
	require.True(t, ok)
	require.Equal(t, time.Duration(sharing.Never), wait, "no longer than a clock can show")
}

func TestScaleNeverOverflows(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for i := range 10_000 {
		c := withDefaults(randomLimit(r))
		if i < len(extremes) {
			c = withDefaults(extremes[i])
		}
		sc := newScale(c)
		require.Less(t, sharing.MaxShare/limit.WholeShare*sc.Units(c.MaxCost()), int64(1)<<61, "%+v", c)
		require.Positive(t, sc.Units(1))
		require.InDelta(t, 1, sc.Tokens(sc.Units(1)), 0)
		// Four years at the largest share fit into the totals.
		years := float64(sharing.MaxShare/limit.WholeShare) * sc.Whole * float64(4*365*24*time.Hour)
		require.Less(t, years, float64(math.MaxInt64), "%+v", c)
	}
}
