package inflight_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/inflight"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

func TestShareIsTheSmallestThatIsGoodForSoMany(t *testing.T) {
	require.Equal(t, throttle.WholeShare, inflight.Whole)
	for _, most := range []int{1, 2, 3, 7, 10, 64, 999, inflight.Exact, inflight.Exact + 1, 4096, 1_000_003} {
		for _, n := range []int{0, 1, 2, most / 3, most / 2, most - 1, most} {
			n = max(min(n, most), 0)
			share := inflight.Share(n, most)
			require.Equal(t, n, inflight.Slots(share, most), "%d of %d", n, most)
			if share > 0 {
				require.Less(t, inflight.Slots(share-1, most), n, "%d of %d with less", n, most)
			}
		}
	}
}

// As many equal shares as there are slots are one slot each, and no more than the whole.
func TestEqualSharesAreOneSlotEach(t *testing.T) {
	for most := 1; most <= inflight.Exact; most++ {
		require.Equal(t, 1, inflight.Slots(inflight.Whole/int64(most), most), most)
		require.LessOrEqual(t, inflight.Share(1, most)*int64(most), inflight.Whole, most)
	}
}
