package world

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
)

// A line that is deaf neither hears news nor sends any, and a cut one saves and loads nothing.
func TestFaultsOfALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		defer s.Close()
		a, b := NewLine(s, s), NewLine(s, s)
		heard := 0
		stop, err := b.Watch(t.Context(), "p", func([]byte) { heard++ })
		require.NoError(t, err)
		defer stop()
		_, err = a.Sync(t.Context(), request("a"))
		require.NoError(t, err)
		push := func() error {
			err := a.Push(t.Context(), "p", []byte("news"))
			synctest.Wait()
			return err
		}
		require.NoError(t, push())
		require.Equal(t, 1, heard)
		b.Deaf.Store(true)
		require.NoError(t, push())
		require.Equal(t, 1, heard)
		a.Deaf.Store(true)
		require.Error(t, push())
		require.EqualValues(t, 2, a.Pushed.Load())

		save := func() (took time.Duration, err error) {
			began := time.Now()
			_, err = a.Save(t.Context(), "p", driver.DocumentReport{Name: "x", Version: 1 << 16, Body: []byte("x")})
			return time.Since(began), err
		}
		a.Cut.Store(true)
		_, err = save()
		require.ErrorIs(t, err, ErrCut)
		_, _, err = a.Load(t.Context(), "p")
		require.ErrorIs(t, err, ErrCut)
		a.Mend()
		a.Saves.Store(int64(time.Second))
		took, err := save()
		require.NoError(t, err)
		require.Equal(t, time.Second, took)
		docs, _, err := a.Load(t.Context(), "p")
		require.NoError(t, err)
		require.Len(t, docs, 1)
		require.True(t, a.Deaf.Load(), "news are another way")
	})
}

// A server goes back to a copy, or loses everything, and freezes the pool then.
func TestServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer()
		sync := func(id string, seq uint64) (rows int, frozen bool) {
			req := request(id)
			req.Seq = seq
			_, err := s.Sync(t.Context(), req)
			require.NoError(t, err)
			s.Record(func(r *driver.Record) { rows, frozen = len(r.Rows), r.FrozenUntil > 0 })
			return rows, frozen
		}
		check := func(id string, seq uint64, wantRows int, wantFrozen bool) {
			t.Helper()
			rows, frozen := sync(id, seq)
			require.Equal(t, wantRows, rows)
			require.Equal(t, wantFrozen, frozen)
		}
		check("a", 1, 1, false)
		failOver := s.Snapshot()
		check("b", 1, 2, false)
		failOver()
		check("a", 2, 1, true)
		s.Wipe()
		s.Skew(time.Hour)
		check("c", 1, 1, true)
	})
}
