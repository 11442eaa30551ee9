package throttle

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// One wrong number is logged once a minute, however often it comes. Debt that is not dropped is not logged.
func TestDroppedDebtIsLoggedOnce(t *testing.T) {
	for _, tag := range []string{"", "a"} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			quotas := Quotas{Tags: map[string]Quota{"a": {Total: 10}}}
			th := whole(t, Limit{Max: 50}, WithQuotas(quotas), WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			_ = Charge(th.ForTag(tag), 10)
			for after, want := range []int{0, 1, 1, 1, 2} { // 20 s each
				require.Equal(t, want, strings.Count(log.String(), "the excess is dropped"), "%d: %s", after, &log)
				time.Sleep(20 * time.Second)
				for range 20 {
					_ = Charge(th.ForTag(tag), 1_000_000_000)
				}
			}
		})
	}
}

// What was charged is use, so that the pool gives the processor its share.
func TestAChargeIsDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, _ := scripted(t, Limit{Max: 1000, Burst: 100}, 1)
		time.Sleep(time.Second)
		require.InDelta(t, 0.2, reports(th, func(ms int) {
			if ms%50 == 0 {
				_ = Charge(th, 10)
			}
		}), 0.02)
		require.InDelta(t, 1, reports(th, func(ms int) {
			if ms%50 == 0 && probe(th) == nil {
				_ = Charge(th, 500)
			}
		}), 1e-9)
	})
}

func TestMaxDebtIsChecked(t *testing.T) {
	require.NoError(t, Limit{Max: 1, MaxDebt: time.Millisecond}.Validate())
	require.ErrorContains(t, Limit{Max: 1, MaxDebt: -1}.Validate(), "maxDebt is -1ns, allowed: 1ms to 744h")
	require.ErrorContains(t, Limit{Max: 1, MaxDebt: 745 * time.Hour}.Validate(), "maxDebt")
}
