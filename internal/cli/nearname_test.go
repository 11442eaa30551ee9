package cli

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
)

func TestNamesThatDifferByALetter(t *testing.T) {
	for other, want := range map[string]bool{
		"orders/enrich": false, "order/enrich": true, "orders/enrichs": true, "orders/enrych": true, "orders/enrcih": true, "Orders/enrich": true,
		"orders/enrich1": false, "orders/enr": false, "orders/split": false, "": false, "ordexs/enrych": false,
	} {
		require.Equal(t, want, near("orders/enrich", other), other)
		require.Equal(t, want, near(other, "orders/enrich"), other)
	}
	require.False(t, near("shard-1", "shard-2"))
	require.False(t, near("in", "an"))
}

// listed counts how often its pools are listed.
type listed struct {
	*memstore.Store

	times int
}

func (l *listed) Pools(ctx context.Context) ([]string, error) {
	l.times++
	return l.Store.Pools(ctx)
}

// A mistyped pool is hinted at once by each command that shows pools, beside the output.
func TestMistypedPools(t *testing.T) {
	store := memstore.New()
	for _, name := range []string{"orders/enrich", "orders/enrch", "other"} {
		join(store, name, "a", "1 0 600 60000000 0 0", driver.Whole, 1).sync(t)
	}
	asked := &listed{Store: store}
	tm := newTerminal(asked, "NUMATHROTTLE_POOL=orders/enrich")
	for args, hint := range map[string]string{
		"why": "orders/enrich and orders/enrch", "status": "orders/enrich and orders/enrch", "pools": "orders/enrch and orders/enrich",
	} {
		before := asked.times
		_, err := tm.run(t, args)
		require.NoError(t, err)
		require.Equal(t, before+1, asked.times, "the store is asked once")
		require.Equal(t, "hint: the names of the pools "+hint+" differ by one letter: each has a whole limit\n", tm.errOut.String())
	}
	_, err := tm.run(t, "why", "other")
	require.NoError(t, err)
	require.Empty(t, tm.errOut.String())
}
