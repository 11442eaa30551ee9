package tagbucket

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// The level is the largest draw that the bucket has: floats round either way.
func TestLevelIsTheLargestDraw(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		b := tagBucket{total: int64(math.Exp(r.Float64() * 27)), per: []time.Duration{time.Second, 24 * time.Hour}[r.IntN(2)]}
		b.burst = int64(math.Exp(r.Float64() * 32))
		if b.work(b.burst) >= math.MaxInt64/4 {
			continue // some 73 years
		}
		now := b.cost(1+r.Int64N(b.burst)) + int64(r.IntN(3)) - 1
		n := b.level(now)
		require.True(t, b.has(now, n), "%+v has %d at %d", b, n, now)
		require.False(t, n < b.burst && b.has(now, n+1), "%+v has no more than %d at %d", b, n, now)
	}
}

// A bucket begins as another one, less some tokens, and goes on by itself.
func TestBeginAsAnother(t *testing.T) {
	q := limit.Quota{Total: 10, Burst: 5, Budgets: []limit.Budget{{Amount: 100, Per: limit.PeriodHour}, {Amount: 200, Per: limit.PeriodDay, Zone: "UTC"}}}
	other := local(q)
	_, ok := other.Take(5*second, 3)
	require.True(t, ok)
	other.Reach(5*second, 20, 20) // for a draw that waits there
	s := local(q)
	s.Begin(5*second, other, 1)
	require.EqualValues(t, 1, s.AtHand(5*second))
	require.EqualValues(t, 5, s.AtHand(9*second), "no more than its burst")
	spent, amount := s.Spent(9 * second)
	require.Equal(t, []int64{4, 100}, []int64{spent, amount})
	d, ok := s.Take(9*second, 2)
	require.True(t, ok)
	s.Return(9*second, d, 2)
	spent, _ = s.Spent(9 * second)
	require.EqualValues(t, 4, spent)
	spent, _ = other.Spent(9 * second)
	require.EqualValues(t, 3, spent)

	s = local(q)
	s.Begin(11*second, other, 7) // the hour is over
	spent, _ = s.Spent(11 * second)
	require.EqualValues(t, 7, spent)
	require.Zero(t, s.AtHand(11*second), "it owes")
}
