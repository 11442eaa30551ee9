package consensus

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever another processor tells of its tags, it is read as numbers within bounds, or not at all; and written again it is the same.
func FuzzUnpackBusy(f *testing.F) {
	f.Add("")
	f.Add("\x01\x00\x00\x00\x00\x00\xab\xcd\x00\x12\x00\x00\x00")
	f.Add(packBusy(1, 2, 3, nil))
	f.Fuzz(func(t *testing.T, text string) {
		r, ok := unpackBusy(text)
		if !ok {
			require.Zero(t, r)
			return
		}
		require.LessOrEqual(t, len(r.tags), maxBusyTags)
		require.Len(t, r.uses, len(r.tags))
		require.Len(t, r.slow, len(r.tags))
		rates := []float64{r.rest, r.restReserved, r.unchanged, r.restUsed}
		for i, tag := range r.tags {
			rates = append(rates, tag.Rate, r.uses[i])
		}
		for _, rate := range rates {
			require.False(t, math.IsNaN(rate) || math.IsInf(rate, 0))
			require.GreaterOrEqual(t, rate, 0.0)
		}
		require.LessOrEqual(t, r.restReserved, r.rest)
		again, ok := unpackBusy(text)
		require.True(t, ok)
		require.Equal(t, r, again)
	})
}
