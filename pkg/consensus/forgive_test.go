package consensus_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
)

func TestForgiveDebtRefuses(t *testing.T) {
	ctx, store := t.Context(), memstore.New()
	require.ErrorIs(t, protocol.ForgiveDebt(ctx, store, "none", "r", ""), driver.ErrNoPool)
	m, err := consensus.Join(ctx, store, "p", consensus.WithID("a"), consensus.WithLogger(quiet), consensus.WithFailFast())
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Leave(ctx)) }()
	var bad *driver.RequestError
	require.ErrorAs(t, protocol.ForgiveDebt(ctx, store, "p", strings.Repeat("x", 129), ""), &bad)
}
