package throttle

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// Debt is told with how long it takes to earn, and calls that are held back before they draw wait for the end of a pause.
func TestWhatIsToldOfDebtAndOfCallsOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, Limit{Max: 100, Burst: 100})
		time.Sleep(2 * time.Second)
		over := ExternalWait(t.Context(), th, "", 1)
		r := rateHolder{th}.Report(time.Second)
		require.Equal(t, []any{ReasonPause, limit.Hold{Callers: 1}}, []any{r.Throttled, r.Hold})
		over(nil)
		p := take(t, th, 100)
		p.Settle(1100)
		w := begin(th, 1, 0)
		synctest.Wait()
		r = rateHolder{th}.Report(time.Second)
		require.Equal(t, ReasonLimit, r.Throttled)
		require.InDelta(t, 10*time.Second, r.Hold.Owed, float64(time.Millisecond))
		require.Equal(t, 1, r.Hold.Callers)
		up, held := th.HoldUp()
		require.True(t, held)
		require.InDelta(t, 10*time.Second, up.Owed, float64(time.Millisecond))
		w.cancel()
		synctest.Wait()
	})
}
