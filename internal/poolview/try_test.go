package poolview_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/poolview"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/operate"
)

// A trial leaves nobody behind, and no pool that an operator would see.
func TestATrialLeavesNothing(t *testing.T) {
	store := memstore.New()
	for range 2 {
		require.NoError(t, poolview.Try(t.Context(), store))
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

// A deaf store takes news and delivers none, and a mute one has no channel for them.
type (
	deaf struct{ *memstore.Store }
	mute struct{ driver.Store }
)

func (deaf) Push(context.Context, string, []byte) error { return nil }

// refusing refuses slots.
type refusing struct{ *memstore.Store }

func (refusing) Reserve(context.Context, driver.Reserve) (driver.Reserved, error) {
	return driver.Reserved{}, errRefused
}

var errRefused = errors.New("no")

// A trial asks for slots, and tries whether news come back.
func TestATrialDoesAllThatAPodDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.ErrorIs(t, poolview.Try(t.Context(), refusing{memstore.New()}), errRefused)
		require.NoError(t, poolview.TryNews(t.Context(), memstore.New()))
		require.NoError(t, poolview.TryNews(t.Context(), mute{memstore.New()}))
		require.ErrorIs(t, poolview.TryNews(t.Context(), deaf{memstore.New()}), poolview.ErrNoNews)
	})
}
