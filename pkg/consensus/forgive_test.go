package consensus_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Debt that is forgiven is gone at all processors, once: one that comes later does not forget its own.
func TestForgiveDebt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, store := context.Background(), memstore.New()
		join := func(id string) *throttle.Throttle {
			m, err := consensus.Join(ctx, store, "p", consensus.WithID(id))
			require.NoError(t, err)
			th, err := throttle.New(throttle.Limit{Max: 100}, throttle.WithSharer(m), throttle.OnClose(m.Leave))
			require.NoError(t, err)
			return th
		}
		a, b := join("a"), join("b")
		time.Sleep(time.Minute)
		owe := func(th *throttle.Throttle) {
			_ = throttle.Charge(th, 20_000)
			require.Less(t, th.Status().Tokens, -19_000.0)
		}
		owe(a)
		owe(b)
		time.Sleep(5 * time.Second)
		require.Less(t, a.Status().Tokens, -10_000.0)
		require.NoError(t, protocol.ForgiveDebt(ctx, store, "p", "a wrong number", "ann"))
		time.Sleep(5 * time.Second)
		require.GreaterOrEqual(t, a.Status().Tokens, 0.0)
		require.GreaterOrEqual(t, b.Status().Tokens, 0.0)
		owe(a)
		c := join("c")
		owe(c)
		time.Sleep(5 * time.Second)
		require.Less(t, a.Status().Tokens, -10_000.0)
		require.Less(t, c.Status().Tokens, -10_000.0, "it was forgiven before that")
		require.NoError(t, protocol.ForgiveDebt(ctx, store, "p", "again", ""))
		time.Sleep(5 * time.Second)
		for _, th := range []*throttle.Throttle{a, b, c} {
			require.GreaterOrEqual(t, th.Status().Tokens, 0.0)
			require.NoError(t, th.Close())
		}
		require.ErrorIs(t, protocol.ForgiveDebt(ctx, store, "none", "r", ""), driver.ErrNoPool)
		var bad *driver.RequestError
		require.ErrorAs(t, protocol.ForgiveDebt(ctx, store, "p", strings.Repeat("x", 129), ""), &bad)
	})
}
