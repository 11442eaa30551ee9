package ceiling

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRateBelow(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const longest = int64(31 * 24 * time.Hour / time.Microsecond)
	random := func() Rate {
		return Rate{1 + rng.Int64N(maxTokens*MaxRaise), time.Duration(1000+rng.Int64N(longest)) * time.Microsecond}
	}
	require.True(t, Rate{1, time.Second}.Below(Rate{61, time.Minute}))
	require.False(t, Rate{1, time.Second}.Below(Rate{60, time.Minute}))
	for range 10_000 {
		a, b := random(), random()
		x, y := a.Tokens(time.Hour), b.Tokens(time.Hour)
		if x < y*(1-1e-9) {
			require.True(t, a.Below(b), "%v %v", a, b)
			require.False(t, b.Below(a), "%v %v", a, b)
		}
	}
}
