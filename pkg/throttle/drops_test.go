package throttle

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Debt that is dropped counts once for a limit and its tags, whether or not the draw has waited.
func TestDroppedDebtCountsOnce(t *testing.T) {
	for name, tags := range map[string][]string{"one tag": {"a"}, "two tags": {"a", "b"}, "the scarcer one first": {"b", "a"}} {
		for _, waits := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					quotas := Quotas{Tags: map[string]Quota{"a": {Total: 100}, "b": {Total: 50}}}
					th := whole(t, Limit{Max: 100, MaxDebt: time.Second}, WithQuotas(quotas))
					l := th.ForTags(tags...)
					if !waits {
						time.Sleep(50 * time.Millisecond)
					}
					began := time.Now()
					p := acquire(t, l, 1)
					require.Equal(t, waits, time.Since(began) > 0)
					p.Settle(1000)
					most := 899 // the limit, and a
					if len(tags) > 1 {
						most = 949 // b
					}
					require.InDelta(t, most, th.Status().DebtDropped, 5)
					for _, tag := range tags {
						require.InDelta(t, 101, statusOf(th, tag).Used, 6, "what the limit drops is no use")
					}
				})
			})
		}
	}
}

// What one limit of an All drops is no use of another one's tags, whatever the order of their children.
func TestDebtDroppedByAnotherLimitCountsAsUsed(t *testing.T) {
	for name, use := range map[string]func(t *testing.T, l Limiter){
		"charged": func(_ *testing.T, l Limiter) { _ = Charge(l, 500) },
		"settled after a draw of nothing": func(t *testing.T, l Limiter) {
			time.Sleep(2 * time.Second)
			acquire(t, l, 0).Settle(500)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th := whole(t, Limit{Max: 1000}, WithQuotas(Quotas{Tags: map[string]Quota{"a": {Total: 1000}}}))
				other := whole(t, Limit{Max: 1, MaxDebt: time.Millisecond})
				use(t, ForTags(All(th, other), "a"))
				require.EqualValues(t, 500, statusOf(th, "a").Used)
				require.Zero(t, th.Status().DebtDropped)
				require.InDelta(t, 499, other.Status().DebtDropped, 2)
			})
		})
	}
}
