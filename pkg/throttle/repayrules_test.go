package throttle

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A charge that was too high is repaid: debt first, and the rest is credited where a bucket may be credited.
func TestChargeIsRepaid(t *testing.T) {
	for name, tc := range map[string]struct {
		l       Limit
		charged int
		repaid  int
		want    float64
	}{
		"some of it":                       {Limit{Max: 100, Burst: 10}, 5, 2, 7},
		"debt, and more":                   {Limit{Max: 100, Burst: 10}, 15, 8, 3},
		"all and more":                     {Limit{Max: 100, Burst: 10}, 15, 100, 10},
		"a hard limit credits nothing":     {Limit{Max: 100, Burst: 10, Hard: true}, 15, 8, 0},
		"a hard limit's debt":              {Limit{Max: 100, Burst: 10, Hard: true}, 15, 3, -2},
		"nothing":                          {Limit{Max: 100, Burst: 10}, 5, 0, 5},
		"less than nothing":                {Limit{Max: 100, Burst: 10}, 5, -4, 5},
		"more tokens than there ever were": {Limit{Max: 100, Burst: 10}, 15, 1 << 62, 10},
	} {
		synctest.Test(t, func(t *testing.T) {
			th := whole(t, tc.l)
			time.Sleep(time.Second)
			require.NoError(t, Charge(th, tc.charged), name)
			repay(th, tc.repaid)
			require.InDelta(t, tc.want, th.Status().Tokens, 1e-3, name)
		})
	}
}

// Where tokens are issued, a repayment beyond the debt makes no slot.
func TestChargeOfIssuedTokensIsRepaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, _ := issued(t, Limit{Max: 10, Strict: true})
		require.Error(t, Charge(th, 5))
		synctest.Wait() // the slot that the charge asked for comes, and pays some of the debt
		repay(th, 8)
		require.Zero(t, th.Status().Tokens)
		deny(t, th, 1)
	})
}
