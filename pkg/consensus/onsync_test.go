package consensus_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/world"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
)

// A log is what was told. All methods may be called from any goroutine.
type log struct {
	mu       sync.Mutex
	reported []consensus.Synced
}

func (l *log) add(s consensus.Synced) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reported = append(l.reported, s)
}

func (l *log) all() []consensus.Synced {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.reported)
}

func (l *log) last() consensus.Synced {
	all := l.all()
	return all[len(all)-1]
}

func TestOnSyncTellsOfEverySync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := world.NewLink(memstore.New())
		store.Takes.Store(int64(30 * time.Millisecond))
		var reported log
		var m atomic.Pointer[consensus.Member]
		joined, err := consensus.Join(t.Context(), store, "p", consensus.WithID("a"), consensus.WithOnSync(func(s consensus.Synced) {
			reported.add(s)
			if m := m.Load(); m != nil && m.View().LastError != s.Err { //nolint:errorlint // the very same
				t.Errorf("the View is not up to date")
			}
		}), consensus.WithFailFast())
		require.NoError(t, err)
		m.Store(joined)
		require.Equal(t, []consensus.Synced{{Took: 30 * time.Millisecond}}, reported.all())

		store.Cut.Store(true)
		time.Sleep(1100 * time.Millisecond)
		require.Equal(t, consensus.Synced{Took: 30 * time.Millisecond, Err: world.ErrCut}, reported.last())

		store.Cut.Store(false)
		store.Takes.Store(int64(time.Hour))
		time.Sleep(3 * time.Second)
		last := reported.last()
		require.ErrorIs(t, last.Err, context.DeadlineExceeded)
		require.Equal(t, protocol.SyncTimeout(driver.DefaultLease), last.Took)

		before := len(reported.all())
		leaving, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = joined.Leave(leaving) // in the middle of a sync
		time.Sleep(time.Minute)
		require.Len(t, reported.all(), before, "a sync that Leave cuts short is not told")
	})
}
