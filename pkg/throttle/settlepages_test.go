package throttle

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// A page serves 4,096 tokens, and each permit is settled once, whichever page it is on, in any order.
func TestSettlePages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := full(t, 5*pageTokens)
		var permits []Permit
		pages := map[settler]bool{}
		for i := range 3 * pageTokens {
			permits = append(permits, take(t, th, 1))
			pages[permits[i].by] = true
		}
		require.Len(t, pages, 3)
		for range 8 {
			permits = append(permits, take(t, th, pageTokens/8), take(t, th, 1))
		}
		drawn := th.Status().Granted
		rand.Shuffle(len(permits), func(i, j int) { permits[i], permits[j] = permits[j], permits[i] })
		for range 2 {
			for _, p := range permits {
				p.Cancel()
			}
			require.Equal(t, drawn, th.Status().Returned)
		}
	})
}
