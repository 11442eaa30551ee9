package operate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/operate"
)

// A trial leaves nobody behind, and no pool that an operator would see.
func TestATrialLeavesNothing(t *testing.T) {
	store := memstore.New()
	for range 2 {
		require.NoError(t, operate.Try(t.Context(), store))
	}
	all, err := store.Pools(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	_, roster, err := store.Load(t.Context(), all[0])
	require.NoError(t, err)
	require.Empty(t, roster)
	names, err := operate.Pools(t.Context(), store)
	require.NoError(t, err)
	require.Empty(t, names)
}
