package consensus_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/internal/world"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
)

// A member says in the log what its pool and its store are at, once each, and in this order.
func TestAMemberLogsFreezeAndLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text testkit.Book
		store := world.NewLink(memstore.New())
		frozen := func(a *driver.Answer, _ error) {
			a.Frozen, a.FrozenBy, a.Share = 15*time.Second, driver.FreezeNewRecord, 0
		}
		store.OnSync(frozen)
		m, err := consensus.Join(t.Context(), store, "p", consensus.WithID("a"), consensus.WithOnStoreLoss(consensus.Stop),
			consensus.WithLogger(slog.New(slog.NewTextHandler(&text, nil))))
		require.NoError(t, err)
		time.Sleep(5 * time.Second)
		store.OnSync(nil)
		time.Sleep(5 * time.Second)
		store.Cut.Store(true)
		time.Sleep(30 * time.Second)
		store.Cut.Store(false)
		time.Sleep(5 * time.Second)
		require.NoError(t, m.Leave(t.Context()))

		var lines []string
		for line := range strings.Lines(text.String()) {
			_, message, _ := strings.Cut(line, "msg=")
			lines = append(lines, message)
		}
		require.Len(t, lines, 5, text.String())
		require.Contains(t, lines[0], `"the pool is new to the store: nothing is granted yet" pool=p pod=a for=15s because=`)
		require.Contains(t, lines[1], `"the pool is no longer frozen" pool=p pod=a share=`)
		require.Contains(t, lines[2], `"syncs with the pool's store fail" pool=p pod=a effect="what was granted is good for `)
		require.Contains(t, lines[2], `error="connection refused"`)
		require.Contains(t, lines[3], `effect="nothing is granted until the store answers"`)
		require.Contains(t, lines[4], `"the pool's store answers again" pool=p pod=a after=`)
	})
}

// The others see that a pod is silent, and say once each that the store has removed it. A pod that leaves is no news.
func TestASilentPodIsSeenAndItsRemovalLogged(t *testing.T) {
	eachServer(t, func(t *testing.T, s *world.Server) {
		var logs [2]testkit.Book
		var nodes []*node
		for i, id := range []string{"a", "b"} {
			nodes = append(nodes, limited(t, s, id, thousand, 2, consensus.WithLogger(slog.New(slog.NewTextHandler(&logs[i], nil)))))
		}
		hung, leaver := limited(t, s, "hung", thousand, 2), limited(t, s, "leaver", thousand, 2)
		time.Sleep(20 * time.Second)
		require.Zero(t, nodes[0].m.View().Silent)
		hung.link.Cut.Store(true)
		require.NoError(t, leaver.th.Close())
		time.Sleep(8 * time.Second)
		for _, n := range nodes {
			v := n.m.View()
			require.Equal(t, 1, v.Silent)
			rows := (*protocol.View)(&v).Overview().Processors
			require.Len(t, rows, 3)
			require.Equal(t, []bool{false, false, true}, []bool{rows[0].Overdue, rows[1].Overdue, rows[2].Overdue})
			require.InDelta(t, 8, rows[2].Silent.Seconds(), 2.1)
			require.InDelta(t, 7, rows[2].Left.Seconds(), 2.1)
		}
		time.Sleep(20 * time.Second)
		for i, n := range nodes {
			require.Zero(t, n.m.View().Silent)
			require.Equal(t, 1, strings.Count(logs[i].String(), "was removed from the pool"), logs[i].String())
			const line = `level=INFO msg="a pod that has not left was removed [^"]*" pool=pool pod=%s removed=hung silent=1[5-7]`
			require.Regexp(t, fmt.Sprintf(line, n.m.View().ID), logs[i].String())
		}
	})
}

// A process that was stopped itself does not take those who left meanwhile for removed.
func TestWhoWasStoppedTakesNobodyForRemoved(t *testing.T) {
	eachServer(t, func(t *testing.T, s *world.Server) {
		var log testkit.Book
		stopped := limited(t, s, "a", thousand, 2, consensus.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		leaver, _ := limited(t, s, "b", thousand, 2), limited(t, s, "c", thousand, 2)
		time.Sleep(20 * time.Second)
		stopped.link.Cut.Store(true)
		time.Sleep(2 * time.Second)
		require.NoError(t, leaver.th.Close())
		time.Sleep(25 * time.Second)
		stopped.link.Cut.Store(false)
		time.Sleep(5 * time.Second)
		require.NotContains(t, log.String(), "was removed from the pool")
	})
}
