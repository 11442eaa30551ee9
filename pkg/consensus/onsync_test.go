package consensus_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
)

// A slow store takes its time for every sync, and fails when it is told to.
type slow struct {
	consensus.Store

	takes time.Duration
	err   error
}

func (s *slow) Sync(ctx context.Context, req consensus.Request) (consensus.Answer, error) {
	select {
	case <-ctx.Done():
		return consensus.Answer{}, ctx.Err()
	case <-time.After(s.takes):
	}
	if s.err != nil {
		return consensus.Answer{}, s.err
	}
	return s.Store.Sync(ctx, req)
}

func TestOnSyncTellsOfEverySync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, gone := &slow{Store: memstore.New(), takes: 30 * time.Millisecond}, errors.New("gone")
		var told []consensus.Synced
		var m *consensus.Member
		m, err := consensus.Join(t.Context(), store, "p", consensus.WithID("a"), consensus.WithOnSync(func(s consensus.Synced) {
			told = append(told, s)
			if m != nil {
				require.Equal(t, s.Err, m.View().LastError, "the View is up to date")
			}
		}), consensus.WithFailFast())
		require.NoError(t, err)
		require.Equal(t, []consensus.Synced{{Took: 30 * time.Millisecond}}, told)

		store.err = gone
		time.Sleep(1100 * time.Millisecond)
		require.Equal(t, consensus.Synced{Took: 30 * time.Millisecond, Err: gone}, told[len(told)-1])

		store.err, store.takes = nil, time.Hour
		time.Sleep(3 * time.Second)
		last := told[len(told)-1]
		require.ErrorIs(t, last.Err, context.DeadlineExceeded)
		require.Equal(t, consensus.SyncTimeout(consensus.DefaultLease), last.Took)

		before := len(told)
		leaving, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = m.Leave(leaving) // in the middle of a sync
		time.Sleep(time.Minute)
		require.Len(t, told, before, "a sync that Leave cuts short is not told")
	})
}
