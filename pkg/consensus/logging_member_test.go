package consensus_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
)

// A member says in the log what its pool and its store are at, once each, and in this order.
func TestAMemberLogsFreezeAndLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		store := &flaky{Store: memstore.New()}
		frozen := func(a *driver.Answer) { a.Frozen, a.FrozenBy, a.Share = 15*time.Second, driver.FreezeNewRecord, 0 }
		store.change.Store(&frozen)
		m, err := consensus.Join(t.Context(), store, "p", consensus.WithID("a"), consensus.WithOnStoreLoss(consensus.Stop),
			consensus.WithLogger(slog.New(slog.NewTextHandler(&text, nil))))
		require.NoError(t, err)
		time.Sleep(5 * time.Second)
		store.change.Store(nil)
		time.Sleep(5 * time.Second)
		store.cut.Store(true)
		time.Sleep(30 * time.Second)
		store.cut.Store(false)
		time.Sleep(5 * time.Second)
		require.NoError(t, m.Leave(t.Context()))

		var lines []string
		for line := range strings.Lines(text.String()) {
			_, message, _ := strings.Cut(line, "msg=")
			lines = append(lines, message)
		}
		require.Len(t, lines, 5, text.String())
		require.Contains(t, lines[0], `"the pool is new to the store: nothing is granted yet" pool=p processor=a for=15s because=`)
		require.Contains(t, lines[1], `"the pool is no longer frozen" pool=p processor=a share=`)
		require.Contains(t, lines[2], `"syncs with the pool's store fail" pool=p processor=a effect="what was granted is good for `)
		require.Contains(t, lines[2], `error="connection refused"`)
		require.Contains(t, lines[3], `effect="nothing is granted until the store answers"`)
		require.Contains(t, lines[4], `"the pool's store answers again" pool=p processor=a after=`)
	})
}
