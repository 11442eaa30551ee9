package cli

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
)

func TestPools(t *testing.T) {
	fill := func(store driver.Store, pool string) {
		busy(t)(store, pool)
		join(store, "calls", "a", "1 n:30 w:2 u:500 why:in_flight", driver.Whole, 1).sync(t)
		join(store, "idle", "a", "1 0 5 1000000 0 0", driver.Whole, 1).sync(t)
	}
	requireGolden(t, "pools.golden", show(t, fill, "pools"))
	require.Equal(t, "calls\nidle\norders/pipeline/enrich\n", show(t, fill, "pools", "--quiet"))
	out := show(t, fill, "pools", "-o", "json")
	require.Equal(t, 3, strings.Count(out, "\n"))
	require.Contains(t, out, `{"pool":"calls","limit":{"max":30,"inFlight":true}`)
}

// listless is a store that cannot list pools.
type listless struct{ driver.Store }

func TestPoolsOfAStoreThatCannotTell(t *testing.T) {
	_, err := newTerminal(listless{memstore.New()}).run(t, "pools")
	require.ErrorIs(t, err, driver.ErrNoList)
	require.Equal(t, ExitFailed, ExitCode(err))
}

// What the store keeps beside pools is none of them.
func TestPoolsOnRealStores(t *testing.T) {
	onRealStores(t, func(t *testing.T, url string) {
		tm := newTerminal(nil, "NUMATHROTTLE_STORE="+url)
		out, err := tm.run(t, "pools", "-q")
		require.NoError(t, err)
		require.Empty(t, out)
		require.Contains(t, tm.errOut.String(), "the store has no pool at all")
		conf, err := tm.connected(t)
		require.NoError(t, err)
		defer func() { require.NoError(t, conf.Close()) }()
		for _, pool := range []string{"b/c d", "a"} {
			join(conf, pool, "x", "", driver.Whole, 1).sync(t)
		}
		out, err = tm.run(t, "pools", "-q")
		require.NoError(t, err)
		require.Equal(t, "a\nb/c d\n", out)
	})
}

// connected opens the store of a terminal.
func (tm *terminal) connected(t *testing.T) (driver.Store, error) {
	t.Helper()
	conf, err := opening.LoadFlags(tm.Environ, nil)
	require.NoError(t, err)
	return tm.open(context.WithoutCancel(t.Context()), conf)
}
