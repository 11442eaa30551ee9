package sharing

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

func TestShareIsTheSmallestThatIsGoodForSoMany(t *testing.T) {
	for _, most := range []int{1, 2, 3, 7, 10, 64, 999, ExactSlots, ExactSlots + 1, 4096, 1_000_003} {
		for _, n := range []int{0, 1, 2, most / 3, most / 2, most - 1, most} {
			n = max(min(n, most), 0)
			share := ShareOf(n, most)
			require.Equal(t, n, SlotsOf(share, most), "%d of %d", n, most)
			if share > 0 {
				require.Less(t, SlotsOf(share-1, most), n, "%d of %d with less", n, most)
			}
		}
	}
}

// As many equal shares as there are slots are one slot each, and no more than the whole.
func TestEqualSharesAreOneSlotEach(t *testing.T) {
	for most := 1; most <= ExactSlots; most++ {
		require.Equal(t, 1, SlotsOf(limit.WholeShare/int64(most), most), most)
		require.LessOrEqual(t, ShareOf(1, most)*int64(most), int64(limit.WholeShare), most)
	}
}
