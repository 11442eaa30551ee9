package consensus_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/world"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A desk is a TakeoverLock in the memory of the test: one process holds it at a time.
type desk struct {
	mu sync.Mutex // several processes use it

	protocol.TakeoverRecord
	holder *clerk
}

type clerk struct {
	desk      *desk
	inherited []protocol.LastState
	settled   bool
	written   int
	kept      bool
	released  int
}

func (c *clerk) Inherit() ([]protocol.LastState, bool) {
	c.desk.mu.Lock()
	defer c.desk.mu.Unlock()
	if c.desk.holder != nil && c.desk.holder != c {
		return nil, false
	}
	c.desk.holder = c
	c.inherited = c.desk.Inherit(true)
	return c.inherited, true
}

func (c *clerk) Settled() { c.inherited, c.settled = nil, true }

func (c *clerk) Write(own protocol.LastState) {
	c.desk.mu.Lock()
	defer c.desk.mu.Unlock()
	if c.desk.holder != c {
		return // it is dead
	}
	c.written++
	c.desk.Write(c.inherited, own)
}

func (c *clerk) Release(keep bool) {
	c.desk.mu.Lock()
	defer c.desk.mu.Unlock()
	c.kept = keep
	c.released++
	if c.desk.holder == c {
		c.desk.holder = nil
		if !keep {
			c.desk.LastStates = nil
		}
	}
}

func TestAMemberTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		defer store.Close()
		at := &desk{}
		join := func() (*consensus.Member, *clerk, *world.Link, *throttle.Throttle, *bytes.Buffer) {
			c, s, log := &clerk{desk: at}, world.NewLink(store), &bytes.Buffer{}
			m, err := consensus.Join(t.Context(), s, "pool", consensus.WithID("pod"), protocol.WithTakeoverLock(c),
				consensus.WithOnStoreLoss(consensus.Stop), consensus.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
			require.NoError(t, err)
			th, err := throttle.New(throttle.Limit{Max: 100}, throttle.WithSharer(m))
			require.NoError(t, err)
			return m, c, s, th, log
		}
		const reported = "was taken over at once"

		a, first, silent, _, log := join()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.Equal(t, driver.Whole, a.View().Share)
		require.Greater(t, first.written, 2, "before each request")
		require.True(t, first.settled)
		require.NotContains(t, log.String(), reported)
		silent.Cut.Store(true) // the process dies
		at.mu.Lock()
		at.holder = nil
		at.mu.Unlock()

		b, second, _, _, log := join()
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, driver.Whole, b.View().Share)
		require.True(t, b.View().TookOver)
		require.True(t, second.settled)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Equal(t, 1, strings.Count(log.String(), reported), log.String())

		// Another process under the ID finds the place taken: everything is as without it, until that is free.
		c, third, _, _, log := join()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.Zero(t, c.View().Share)
		require.Zero(t, third.written)
		require.NoError(t, b.Leave(t.Context()))
		require.Equal(t, 1, second.released)
		require.False(t, second.kept)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Positive(t, third.written, "it is asked for again and again")
		require.NotContains(t, log.String(), reported)
		require.NoError(t, c.Leave(t.Context()))

		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		require.Error(t, a.Leave(ctx)) // the store was not told
		require.True(t, first.kept)
	})
}

// TestOneWithDebtLeavesNothing: the claim has to stay.
func TestOneWithDebtLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		defer store.Close()
		c := &clerk{desk: &desk{}}
		m, err := consensus.Join(t.Context(), store, "pool", protocol.WithTakeoverLock(c))
		require.NoError(t, err)
		th, err := throttle.New(throttle.Limit{Max: 10}, throttle.WithSharer(m), throttle.OnClose(m.Leave))
		require.NoError(t, err)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		p, ok := th.TryAcquire(1)
		require.True(t, ok)
		p.Settle(1 + 10*100) // 100 s worth
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Greater(t, c.desk.LastStates[0].Owes, 90*time.Second)
		_ = th.Close()
		require.Empty(t, c.desk.LastStates)
		require.Equal(t, 1, c.released)
	})
}
