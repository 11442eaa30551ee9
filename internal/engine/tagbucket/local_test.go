package tagbucket

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
