package throttle

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// What a limiter tells operators of what holds its callers back: how many, for how long, and at which total, or until when.
func TestWhatIsToldOfAHold(t *testing.T) {
	for name, c := range map[string]struct {
		quota Quota
		first int // that is drawn before
		want  limit.Hold
		left  time.Duration
	}{
		"capped": {
			quota: Quota{Total: 60, Per: time.Minute, Burst: 1}, first: 1, want: limit.Hold{Callers: 1, Longest: 2 * time.Second, Rate: 1},
		},
		"blocked": {quota: Quota{Blocked: true}, want: limit.Hold{Callers: 1, Longest: 2 * time.Second, Blocked: true}},
		"spent": {
			quota: Quota{Budgets: []Budget{{Amount: 10, Per: "hour"}}}, first: 10, want: limit.Hold{Callers: 1, Longest: 2 * time.Second},
			left: time.Hour - 3*time.Second, // the clock begins with an hour
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			th := quotaed(t, Limit{Max: 1000, Burst: 100}, tagsOf(map[string]Quota{"a": c.quota}))
			time.Sleep(time.Second)
			if c.first > 0 {
				take(t, th.ForTag("a"), c.first)
			}
			w := begin2(th.ForTag("a"), 5)
			time.Sleep(2 * time.Second)
			up, held := th.HoldUp()
			require.True(t, held, name)
			require.Equal(t, []any{c.want.Callers, c.want.Longest, c.want.Rate, c.want.Blocked}, []any{up.Waiting, up.Longest, up.Rate, up.Blocked}, name)
			r := rateHolder{th}.Report(time.Second)
			require.InDelta(t, c.left, r.Hold.Left, float64(time.Millisecond), name)
			r.Hold.Left = 0
			require.Equal(t, c.want, r.Hold, name)
			require.Equal(t, up.Reason, r.Throttled)
			w.cancel()
			synctest.Wait()
		})
	}
}

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
		w := begin2(th, 1)
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
