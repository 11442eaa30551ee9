package bucket

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// Buckets of all processors hold at most C together, and one processor in Burst
// can still draw.
func TestHardCapacity(t *testing.T) {
	for _, l := range []Config{{Max: 1}, {Max: 3, Burst: 3}, {Max: 1000}, {Max: 7, Burst: 7}, {Max: 1e9, Burst: 1e9}, {Max: 1000, Burst: 1000}} {
		l.Hard = true
		l.Per = time.Second
		if l.Burst == 0 {
			l.Burst = HardBurst(l.Max, l.Per)
		}
		b := made(l)
		for _, n := range []int64{1, 2, 3, 7, 97, 1000} {
			each := b.hardCapacity(limit.WholeShare / n)
			require.LessOrEqual(t, n*each, b.HardUnits())
			require.LessOrEqual(t, b.Tokens(b.HardUnits()), float64(l.Burst)+l.hardSlack()+1e-9)
			if n <= int64(l.Burst) {
				require.GreaterOrEqual(t, each, b.Units(1), "%d processors share %+v", n, l)
			}
			for _, tokens := range []int{1, l.Burst/2 + 1, l.Burst} {
				share := b.HardShare(b.Units(tokens))
				require.GreaterOrEqual(t, b.hardCapacity(share), b.Units(tokens))
				require.Less(t, b.hardCapacity(share-1), b.Units(tokens), "the smallest that does")
			}
		}
	}
}
