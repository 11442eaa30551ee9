package consensus_test

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Each pod logs what is ordered in its pool: who, why and until when; and the end, once.
func TestOrdersLeaveTraces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, ctx := memstore.New(), t.Context()
		var books [2]testkit.Book
		for i, id := range []string{"a", "b"} {
			m, err := consensus.Join(ctx, store, "pool", consensus.WithID(id), consensus.WithLogger(slog.New(slog.NewTextHandler(&books[i], nil))))
			require.NoError(t, err)
			th, err := throttle.New(throttle.Limit{Max: 100}, throttle.WithSharer(m), throttle.WithQuotas(throttle.Quotas{Other: throttle.Quota{Total: 50}}))
			require.NoError(t, err)
			defer func() {
				require.NoError(t, th.Close())
				require.NoError(t, m.Leave(t.Context()))
			}()
		}
		time.Sleep(20 * time.Second)
		logged := func(message string, attributes ...string) {
			t.Helper()
			time.Sleep(3 * time.Second)
			for i := range books {
				text := books[i].String()
				require.Equal(t, 1, strings.Count(text, "\n"), text)
				require.Contains(t, text, "level=INFO msg="+message)
				for _, a := range attributes {
					require.Contains(t, text, a)
				}
				books[i].Reset()
			}
		}
		for i := range books {
			books[i].Reset()
		}
		at := func(d time.Duration) time.Time { return time.Now().Add(d) }
		end := func(d time.Duration) string { return at(d).UTC().Format(time.RFC3339) }
		until := end(time.Minute)
		require.NoError(t, protocol.SaveOverride(ctx, store, "pool", protocol.Override{Max: 30, Until: at(time.Minute), By: "ann", Reason: "a sale"}))
		logged(`"the pool's limit is overridden" pool=pool pod=`, "max=30 per=1s until="+until+` by=ann reason="a sale"`)
		require.NoError(t, protocol.ClearOverride(ctx, store, "pool"))
		logged(`"the override of the pool's limit has ended"`)
		until = end(time.Minute)
		require.NoError(t, protocol.SavePause(ctx, store, "pool", limit.Paused{Tag: "acme", Until: at(time.Minute), By: "bob", Reason: "down"}))
		logged(`"the pool is paused"`, "tag=acme until="+until+" by=bob reason=down")
		require.NoError(t, protocol.ClearPause(ctx, store, "pool", "acme"))
		logged(`"a pause of the pool has ended"`)
		until = end(30 * time.Second)
		order := protocol.QuotaOrder{Until: at(30 * time.Second), By: "cy", Reason: "hog"}
		require.NoError(t, protocol.SaveQuotaFor(ctx, store, "pool", "acme", &limit.Quota{Total: 5}, order, false))
		logged(`"a quota was changed"`, "total=5", "until="+until+" by=cy reason=hog")
		changes, err := protocol.LoadQuotas(ctx, store, "pool")
		require.NoError(t, err)
		require.Equal(t, 1, changes.Len())
		time.Sleep(30 * time.Second)
		logged(`"the change of a quota has ended"`, "tag=acme by=cy reason=hog")
		changes, err = protocol.LoadQuotas(ctx, store, "pool")
		require.NoError(t, err)
		require.Zero(t, changes.Len(), "it ends by itself, once for all")
		require.Error(t, protocol.SaveQuotaFor(ctx, store, "pool", "acme", &limit.Quota{Total: 5}, protocol.QuotaOrder{Until: at(-1)}, false))
	})
}
