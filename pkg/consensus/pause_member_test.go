package consensus_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/internal/world"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Many that are refused at once are one pause, and the latest end counts but for the slack.
func TestManyPauseAtOnce(t *testing.T) {
	eachServer(t, func(t *testing.T, s *world.Server) {
		pool := newPods(s)
		all := pool.start(t, 20)
		until := time.Now().Add(time.Minute)
		done := make(chan error)
		for i, p := range all {
			go func() {
				_, err := p.th.Pause(t.Context(), until.Add(time.Duration(i)*20*time.Millisecond), "refused")
				done <- err
			}()
		}
		for range all {
			require.NoError(t, <-done)
		}
		requireStill(t, time.Minute-time.Second, all...)
		for _, p := range all {
			left := time.Until(p.end(t)).Seconds()
			require.GreaterOrEqual(t, left, 1.1)
			require.LessOrEqual(t, left, 2.5)
		}
		require.LessOrEqual(t, pauseChanges(t, s), 20)
	})
}

// pauseChanges counts the changes of the document.
func pauseChanges(t *testing.T, s driver.Store) int {
	t.Helper()
	return int(pauseDocument(t, s).Version >> 16)
}

func pauseDocument(t *testing.T, s driver.Store) driver.Document {
	t.Helper()
	docs, _, err := s.Load(t.Context(), "pool")
	require.NoError(t, err)
	i := slices.IndexFunc(docs, func(d driver.Document) bool { return d.Name == "pause" })
	require.GreaterOrEqual(t, i, 0, "no pause is on record")
	return docs[i]
}

// News stop at once, and resume nobody; what is not on record is forgotten.
func TestNewsCanOnlyStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPods(memstore.New())
		all := pool.start(t, 2)
		push := func(news string) {
			require.NoError(t, pool.hub.Push(t.Context(), "pool", []byte(news)))
			synctest.Wait()
		}
		push(`{"form":1,"from":"stranger","version":4294967296,"pause":{"pauses":[{"reason":"never saved"}]}}`)
		require.True(t, all[0].paused())
		require.True(t, all[1].paused())
		push(`{"form":1,"from":"stranger","version":4294967297,"pause":{"pauses":[]}}`)
		require.True(t, all[0].paused(), "news resume nobody")
		time.Sleep(4 * time.Second)
		require.False(t, all[0].paused(), "nothing of it is on record")
		require.False(t, all[1].paused())
		all[0].pause(t, time.Minute)
		require.NoError(t, all[0].th.Resume(t.Context()))
		time.Sleep(10 * time.Second)
		push(`{"form":1,"from":"stranger","version":65537,"pause":{"pauses":[{"reason":"old news"}]}}`)
		require.False(t, all[0].paused(), "late")
		for _, junk := range []string{
			`{}`, "x", `{"form":2,"from":"s","version":4294967296,"pause":{"pauses":[{}]}}`, `{"form":1,"from":"s","version":4294967296}`,
			`{"form":1,"from":"s","version":4294967296,"pause":{"pauses":[{}],"other":1}}`, strings.Repeat("[", wire.MaxNewsBytes),
		} {
			push(junk)
			require.False(t, all[0].paused(), junk)
		}
	})
}

// News come before the pause is on record. Who syncs meanwhile, and is shown nothing of it, holds still.
func TestNewsHoldWhileThePauseIsSaved(t *testing.T) {
	eachServer(t, func(t *testing.T, s *world.Server) {
		pool := newPods(s)
		all := pool.start(t, 20)
		all[0].line.Saves.Store(int64(450 * time.Millisecond))
		done := make(chan throttle.PauseReceipts, 1)
		go func() {
			r, err := all[0].th.Pause(t.Context(), time.Now().Add(time.Minute), "")
			assert.NoError(t, err)
			done <- r
		}()
		synctest.Wait()
		requireStill(t, 10*time.Second, all...)
		require.Empty(t, (<-done).Missing)
	})
}

// Operators pause and resume without being in the pool.
func TestOperatorsPause(t *testing.T) {
	eachServer(t, func(t *testing.T, s *world.Server) {
		ctx := t.Context()
		pool := newPods(s)
		require.ErrorIs(t, protocol.SavePause(ctx, s, "pool", throttle.Paused{}), driver.ErrNoPool)
		all := pool.start(t, 3)
		none, err := protocol.LoadPauses(ctx, s, "pool")
		require.NoError(t, err)
		require.Empty(t, none)
		store := world.NewLine(s, pool.hub)
		end := time.Now().Add(time.Hour).Truncate(time.Second)
		require.NoError(t, protocol.SavePause(ctx, store, "pool", throttle.Paused{Until: end, Reason: "maintenance"}))
		synctest.Wait()
		for _, p := range all {
			require.True(t, p.paused(), "it is pushed")
		}
		require.NoError(t, protocol.SavePause(ctx, store, "pool", throttle.Paused{Until: end.Add(-time.Minute)}))
		require.NoError(t, protocol.SavePause(ctx, store, "pool", throttle.Paused{Tag: "gpt"}))
		list, err := protocol.LoadPauses(ctx, s, "pool")
		require.NoError(t, err)
		require.Len(t, list, 2)
		require.True(t, end.Equal(list[0].Until))
		require.Equal(t, "maintenance", list[0].Reason)
		require.Equal(t, throttle.Paused{Tag: "gpt"}, list[1])
		requireStill(t, 10*time.Minute, all...)
		for i, p := range all {
			require.WithinDuration(t, end, p.end(t), 4*time.Second)
			all[i] = pool.restart(t, p, fmt.Sprint("q", i), true)
		}
		requireStill(t, time.Minute, all...)
		for _, p := range all {
			require.WithinDuration(t, end, p.end(t), 4*time.Second)
		}
		require.NoError(t, protocol.ClearPause(ctx, s, "pool", ""))
		require.NoError(t, protocol.ClearPause(ctx, s, "pool", "another"))
		time.Sleep(4 * time.Second)
		require.NotZero(t, granted(time.Second, all...))
		require.ErrorContains(t, protocol.SavePause(ctx, s, "pool", throttle.Paused{Until: time.Now()}), "end of the pause")
		require.ErrorContains(t, protocol.ClearPause(ctx, s, "pool", "\n"), "tag of the pause")
	})
}

func TestPauseAfterLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPods(memstore.New()).start(t, 1)[0]
		require.NoError(t, p.m.Leave(t.Context()))
		_, err := p.m.Pause(t.Context(), time.Time{}, "")
		require.ErrorIs(t, err, throttle.ErrClosed)
		require.ErrorIs(t, p.m.Resume(t.Context()), throttle.ErrClosed)
		_, err = p.m.Pause(t.Context(), time.Time{}, "\n")
		require.ErrorContains(t, err, "reason of the pause")
	})
}

// Nothing is renewed by who cannot read what is paused.
func TestUnreadablePauseRenewsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		all := newPods(s).start(t, 2)
		_, err := s.Save(t.Context(), "pool", driver.DocumentReport{Name: "pause", Version: 1 << 16, Body: []byte(`{"pauses":[],"of":"later"}`)})
		require.NoError(t, err)
		time.Sleep(driver.DefaultLease + 2*interval)
		requireStill(t, time.Minute, all...)
		held, _ := all[0].th.Throttled()
		require.Equal(t, throttle.ReasonUnreadable, held.Reason)
		_, err = all[0].th.Pause(t.Context(), time.Time{}, "")
		require.ErrorContains(t, err, "what is paused cannot be read")
		_, err = protocol.LoadPauses(t.Context(), s, "pool")
		require.ErrorContains(t, err, "holds no pauses")
		_, err = s.Save(t.Context(), "pool", driver.DocumentReport{Name: "pause", Version: 2 << 16, Base: 1 << 16, Body: []byte(`{"pauses":[]}`)})
		require.NoError(t, err)
		time.Sleep(2 * interval)
		require.NotZero(t, granted(time.Second, all...))
	})
}
