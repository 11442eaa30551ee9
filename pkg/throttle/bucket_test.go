package throttle

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/race"
)

// exactRate is what a share earns in tokens per nanosecond, without rounding.
func exactRate(l Limit, share int64) *big.Rat {
	l = l.withDefaults()
	r := big.NewRat(int64(l.Max), int64(l.Per))
	return r.Mul(r, big.NewRat(share, WholeShare))
}

// exactUnits is the integer that at must return after d: floor(rate * d / 2^rateBits).
func exactUnits(s *segment, d int64) *big.Int {
	u := new(big.Int).Mul(new(big.Int).SetUint64(s.rate), big.NewInt(d))
	u.Rsh(u, rateBits)
	return u.Add(u, big.NewInt(s.earned))
}

func law(l Limit, share int64) (*segment, scale) {
	l = l.withDefaults()
	sc := newScale(l)
	return newSegment(l, sc, Lease{Share: share}, 0, never, 0), sc
}

// extremes are the limits at the corners of what Validate allows.
var extremes = []Limit{
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

func randomLimit(r *rand.Rand) Limit {
	if r.IntN(4) == 0 {
		return extremes[r.IntN(len(extremes))]
	}
	for {
		l := Limit{
			Max: int(math.Exp(r.Float64() * math.Log(maxTokens))),
			Per: time.Duration(math.Exp(r.Float64()*math.Log(float64(maxPer)/float64(minPer))) * float64(minPer)),
		}
		if r.IntN(2) == 0 {
			l.Burst = int(math.Exp(r.Float64() * math.Log(maxTokens)))
		}
		if l.Validate() == nil {
			return l
		}
	}
}

func randomShare(r *rand.Rand) int64 {
	if r.IntN(8) == 0 {
		return []int64{1, 2, WholeShare - 1, WholeShare, MaxShare - 1, MaxShare}[r.IntN(6)]
	}
	return int64(math.Exp(r.Float64() * math.Log(float64(MaxShare))))
}

// checkLaw compares a segment with the twin: what it has earned after d, and how
// long it takes to earn u more from then on.
func checkLaw(t testing.TB, l Limit, share, d, u int64) {
	t.Helper()
	s, sc := law(l, share)
	require.GreaterOrEqual(t, s.capacity, sc.units(1), "%+v share %d: capacity below one token", l, share)
	whole := max(1, float64(share)/float64(WholeShare)) * float64(sc.units(l.withDefaults().Burst))
	require.LessOrEqual(t, s.capacity, max(sc.units(1), int64(whole)), "%+v share %d", l, share)

	got, want := s.at(d), exactUnits(s, d)
	require.True(t, want.IsInt64(), "%+v share %d: %s units after %d ns", l, share, want, d)
	require.Equal(t, want.Int64(), got, "%+v share %d after %d ns", l, share, d)

	// Rounding may only take away: never more than the share's exact rate.
	exact := exactRate(l, share)
	exact.Mul(exact, big.NewRat(d, 1))
	tokens, _ := exact.Float64()
	require.LessOrEqual(t, sc.tokens(got), tokens*(1+1e-12), "%+v share %d after %d ns", l, share, d)

	wait, ok := s.wait(u)
	if u <= 0 {
		require.True(t, ok)
		require.Zero(t, wait)
		return
	}
	if !ok || int64(wait) > never-d {
		return // further away than the clock reaches
	}
	require.GreaterOrEqual(t, s.at(d+int64(wait))-got, u, "%+v share %d: too early for %d units", l, share, u)
	require.LessOrEqual(t, s.at(d+int64(wait)-1)-got, u, "%+v share %d: too late for %d units", l, share, u)
	if first, _ := s.wait(u); first > 0 {
		require.Less(t, s.at(int64(first)-1), u, "%+v share %d: from the start it is exact", l, share)
	}
}

func TestSegmentMatchesTwinOnRandomInput(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range race.Fewer(100_000) {
		l, share := randomLimit(r), randomShare(r)
		d := int64(math.Exp(r.Float64() * math.Log(float64(4*365*24*time.Hour))))
		_, sc := law(l, share)
		u := int64(math.Exp(r.Float64() * math.Log(float64(sc.units(l.withDefaults().maxCost())))))
		checkLaw(t, l, share, d, u)
	}
}

func FuzzSegment(f *testing.F) {
	f.Add(1, int64(maxPer), 0, int64(1), int64(time.Hour), int64(1))
	f.Add(maxTokens, int64(time.Second), maxTokens, WholeShare, int64(365*24*time.Hour), int64(1)<<60)
	f.Add(maxTokens, int64(time.Second), maxTokens, MaxShare, int64(4*365*24*time.Hour), int64(1)<<60)
	f.Add(100, int64(time.Second), 10, int64(333_333_333), int64(0), int64(0))
	f.Fuzz(func(t *testing.T, maximum int, per int64, burst int, share, d, u int64) {
		l := Limit{Max: maximum, Per: time.Duration(per), Burst: burst}
		if l.Validate() != nil || l.Max == 0 || share < 1 || share > MaxShare {
			return
		}
		if d < 0 || d > int64(4*365*24*time.Hour) || u > 1<<60 {
			return
		}
		checkLaw(t, l, share, d, u)
	})
}

// A sensible rate is one that a user could notice: a share down to 1e-5.
func TestRateIsAccurate(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	check := func(l Limit, share int64) {
		s, sc := law(l, share)
		want, _ := exactRate(l, share).Float64()
		got := float64(s.rate) / (1 << rateBits) / float64(sc.units(1))
		require.InEpsilon(t, want, got, 1e-6, "%+v share %d", l, share)
	}
	for _, l := range extremes {
		if l.Burst == maxTokens && l.Max == 1 {
			continue // a bucket for 2.7 million years' worth of tokens; TestHugeBurstKeepsTheRate
		}
		for _, share := range []int64{MaxShare, WholeShare, WholeShare / 3, WholeShare / 1000, WholeShare / 100_000} {
			check(l, share)
		}
	}
	for range 10_000 {
		l := randomLimit(r)
		if l.Burst > 1000*l.Max {
			l.Burst = 0
		}
		check(l, int64(1e4+r.Float64()*(1e9-1e4)))
	}
}

func TestHugeBurstKeepsTheRate(t *testing.T) {
	l := Limit{Max: 1, Per: maxPer, Burst: maxTokens}
	s, sc := law(l, WholeShare)
	want, _ := exactRate(l, WholeShare).Float64()
	require.InEpsilon(t, want, float64(s.rate)/(1<<rateBits)/float64(sc.units(1)), 1e-3)
}

func TestSegmentHoldsOnlyBetweenStartAndUntil(t *testing.T) {
	l := Limit{Max: 1000}.withDefaults()
	sc := newScale(l)
	start, until := int64(5*time.Second), int64(8*time.Second)
	s := newSegment(l, sc, Lease{Share: WholeShare}, start, until, 77)
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
			require.InDelta(t, tc.want, sc.tokens(s.by(tc.now)-77), 1e-5)
			require.Equal(t, tc.valid, s.valid(tc.now))
		})
	}
}

func TestSegmentWithoutShareEarnsNothing(t *testing.T) {
	l := Limit{Max: 1000}.withDefaults()
	s := newSegment(l, newScale(l), Lease{}, 10, never, 5)
	require.Zero(t, s.capacity)
	require.False(t, s.valid(10))
	require.Equal(t, int64(5), s.by(math.MaxInt64))
	_, ok := s.wait(1)
	require.False(t, ok)
	wait, ok := s.wait(0)
	require.True(t, ok)
	require.Zero(t, wait)
}

func TestLeaseThatEndedBeforeItBeganEarnsNothing(t *testing.T) {
	l := Limit{Max: 1000}.withDefaults()
	s := newSegment(l, newScale(l), Lease{Share: WholeShare}, 100, 50, 5)
	require.False(t, s.valid(100))
	require.Equal(t, int64(5), s.by(1000))
}

// Unbounded waits are waits too: a share so small that one token takes longer
// than the clock reaches must not look like a share of nothing.
func TestWaitOfCenturiesIsKnown(t *testing.T) {
	s, sc := law(Limit{Max: 1, Per: maxPer}, 1)
	wait, ok := s.wait(sc.units(1))
	require.True(t, ok)
	require.Greater(t, wait, 100*365*24*time.Hour)
}

func TestScaleNeverOverflows(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for i := range 10_000 {
		l := randomLimit(r).withDefaults()
		if i < len(extremes) {
			l = extremes[i].withDefaults()
		}
		sc := newScale(l)
		require.Less(t, MaxShare/WholeShare*sc.units(l.maxCost()), int64(1)<<61, "%+v", l)
		require.Positive(t, sc.units(1))
		require.InDelta(t, 1, sc.tokens(sc.units(1)), 0)
		// Four years at the largest share fit into the totals.
		years := float64(MaxShare/WholeShare) * sc.whole * float64(4*365*24*time.Hour)
		require.Less(t, years, float64(math.MaxInt64), "%+v", l)
	}
}
