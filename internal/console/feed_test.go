package console

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
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
	join(t, store.Store, "p", "a", ofHundred, consensus.Whole)
	h, f := &hub{store: store}, &feed{pool: "p"}
	var asking sync.WaitGroup
	asking.Go(func() { h.ask(t.Context(), f) })
	<-store.read
	require.NoError(t, consensus.SaveOverride(t.Context(), store.Store, "p", consensus.Override{Max: 50, Per: time.Second}))
	overtakes := make(chan struct{})
	asking.Go(func() {
		h.ask(t.Context(), f)
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
