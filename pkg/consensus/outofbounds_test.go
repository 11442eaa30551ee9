package consensus_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A quota that is out of bounds is refused with the field, its value and what is allowed, once each.
func TestWhyAQuotaIsRefused(t *testing.T) {
	store := memstore.New()
	m, err := consensus.Join(t.Context(), store, "p", consensus.WithID("a"))
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Leave(t.Context())) }()
	require.Eventually(t, func() bool { _, err := protocol.LoadQuotas(t.Context(), store, "p"); return err == nil }, 10*time.Second, time.Millisecond)
	for want, q := range map[string]throttle.Quota{
		`consensus: quotas.tags.b.reserved is 90, allowed: at most total, which is 20`:      {Total: 20, Reserved: 90},
		`consensus: quotas.tags.b.total is -1, allowed: 0 (blocked) to 1000000000, or none`: {Total: -1},
	} {
		err := protocol.SaveQuota(t.Context(), store, "p", "b", &q, false)
		var refused *driver.RequestError
		require.ErrorAs(t, err, &refused)
		require.EqualError(t, err, want)
		require.NotContains(t, err.Error(), "within its bounds")
	}
	err = protocol.SaveQuota(t.Context(), store, "p", "b", &throttle.Quota{Total: -1, Weight: -1}, false)
	require.ErrorContains(t, err, "weight", "all that is wrong")
}
