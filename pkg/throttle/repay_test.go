package throttle_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A limit per call takes one token whatever a call costs, but a repayment of nothing gives none back.
func TestRepayOfNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests, err := throttle.New(throttle.Limit{Max: 1, Per: time.Hour, Burst: 1})
		require.NoError(t, err)
		defer func() { require.NoError(t, requests.Close()) }()
		l := throttle.PerCall(requests)
		_, err = l.Acquire(t.Context(), 5)
		require.NoError(t, err)
		hook.Repay(l, 0)
		_, ok := l.TryAcquire(5)
		require.False(t, ok)
	})
}
