package console

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A held store keeps its first answer back.
type held struct {
	*memstore.Store

	loads         atomic.Int32
	read, release chan struct{}
}

func (s *held) Load(ctx context.Context, pool string) ([]driver.Document, []driver.RosterRow, error) {
	docs, roster, err := s.Store.Load(ctx, pool)
	if s.loads.Add(1) == 1 {
		close(s.read)
		<-s.release
	}
	return docs, roster, err
}

// What was read before a change, and comes after it, would show the pool as it was, and tell of changes that nobody has made.
func TestAnAnswerThatWasOvertakenShowsNothing(t *testing.T) {
	store := &held{Store: memstore.New(), read: make(chan struct{}), release: make(chan struct{})}
	join(t, store.Store, "p", "a", ofHundred, driver.Whole)
	h, f := &hub{store: store}, &feed{pool: "p"}
	var asking sync.WaitGroup
	asking.Go(func() { h.ask(t.Context(), f, true) })
	<-store.read
	require.NoError(t, protocol.SaveOverride(t.Context(), store.Store, "p", protocol.Override{Max: 50, Per: time.Second}))
	overtakes := make(chan struct{})
	asking.Go(func() {
		h.ask(t.Context(), f, true)
		close(overtakes)
	})
	select {
	case <-overtakes:
	case <-time.After(50 * time.Millisecond): // it waits for the first one
	}
	close(store.release)
	asking.Wait()
	require.NotNil(t, f.last.Override)
	require.Equal(t, "50 per 1s", f.last.Override.What)
}

// Events are recorded from the start of the console, also of pools that nobody looks at. Samples are not: they are many.
func TestEventsAreRecordedFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		h := &hub{store: store, every: time.Second, feeds: map[string]*feed{}}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		alive := join(t, store, "p", "alive", ofHundred, driver.Whole/2)
		join(t, store, "p", "hung", ofHundred, driver.Whole/4)
		leaves := join(t, store, "p", "leaves", ofHundred, driver.Whole/8)
		go h.record(ctx)
		synctest.Wait()
		pass := func(seconds int, pods ...*member) {
			for range seconds {
				time.Sleep(time.Second)
				for _, m := range pods {
					m.sync(t)
				}
			}
		}
		pass(5, alive, leaves)
		require.NoError(t, protocol.SavePause(t.Context(), store, "p", throttle.Paused{By: "ann", Reason: "night"}))
		pass(6, alive, leaves)
		require.NoError(t, protocol.ClearPause(t.Context(), store, "p", ""))
		leaves.leave(t)
		pass(15, alive)
		require.Empty(t, h.feeds["p"].samples)

		f, _, stop := h.look(ctx, "p")
		defer stop()
		var at position
		var texts []string
		for _, e := range f.news(&at, time.Now()).Events {
			texts = append(texts, e.Text)
		}
		require.ElementsMatch(t, []string{
			"hung is silent: it hangs, was killed, or cannot reach the store", "paused: everything by ann: night",
			"no longer paused: everything", "leaves left", "hung was removed: it was silent, and has not left",
		}, texts)
	})
}

// A tag that was charted goes on with what it uses, and one of which nothing is known has no value: 0 would be wrong.
func TestChartedTags(t *testing.T) {
	table := func(uses ...float64) *quotaTable {
		q := &quotaTable{}
		for i, used := range uses {
			q.Tags = append(q.Tags, tagRow{Name: fmt.Sprint("t", i), Used: used})
		}
		return q
	}
	first := sample{Tags: table(9, 9, 9, 9, 9, 9, 9, 5, 4, 0).busiest(nil)}
	require.Len(t, first.Tags, 8)
	require.NotContains(t, first.Tags, "t8")
	second := sample{Tags: table(9, 9, 9, 9, 9, 9, 0, 3, 8, 7).busiest(&first)}
	require.Len(t, second.Tags, 10, "both that were and that are among the busiest")
	require.InDelta(t, 3, second.Tags["t7"], 0)
	require.Zero(t, second.Tags["t6"])
	require.Contains(t, second.Tags, "t6", "it uses nothing, as is known")
	require.NotContains(t, (&sample{Tags: table(1).busiest(&second)}).Tags, "t6")
}
