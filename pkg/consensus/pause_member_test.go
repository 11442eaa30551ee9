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
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// One call stops everybody at once, and says so.
func TestPauseStopsThePoolAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPods(memstore.New())
		all := pool.start(t, 20)
		began := time.Now()
		r := all[7].pause(t, time.Minute)
		require.Less(t, time.Since(began), time.Millisecond)
		require.Empty(t, r.Missing)
		require.Len(t, r.Answered, 20)
		require.True(t, slices.IsSorted(r.Answered))
		require.NotZero(t, r.Generation)
		for _, p := range all {
			require.True(t, p.paused())
			require.Equal(t, "the service is down", p.th.Status().Paused.Reason)
		}
		requireStill(t, time.Minute-time.Second, all...)
		for _, p := range all {
			require.InDelta(t, 0, time.Since(p.end(t).Add(-time.Second)).Seconds(), 0.01)
		}
		time.Sleep(3 * time.Second)
		n := granted(10*time.Second, all...)
		require.InDelta(t, 10_000, n, 150, "all is used again")
	})
}

// Without a channel each stops at its next sync, and its note is the receipt.
func TestPauseWithoutAChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPods(memstore.New())
		all := pool.start(t, 5)
		for _, p := range all {
			p.line.deaf.Store(true)
		}
		began := time.Now()
		r := all[0].pause(t, time.Minute)
		require.Equal(t, 100*time.Millisecond, time.Since(began), "so long it waits for receipts unless it is told otherwise")
		require.Equal(t, []string{"p0"}, r.Answered)
		require.Equal(t, []string{"p1", "p2", "p3", "p4"}, r.Missing)
		time.Sleep(interval + interval/10)
		requireStill(t, 5*time.Second, all...)
		r = all[0].pause(t, 10*time.Second) // one that is covered asks for receipts
		require.Empty(t, r.Missing)
		require.Empty(t, all[3].m.View().PauseMissing)
		again := all[1].pause(t, time.Hour, throttle.WaitForReceipts(5*time.Second))
		require.Empty(t, again.Missing)
		require.Greater(t, again.Generation, r.Generation)
	})
}

// Of two pauses the later end wins, whoever says so.
func TestPausesMerge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPods(memstore.New())
		all := pool.start(t, 3)
		first := all[0].pause(t, time.Minute)
		shorter := all[1].pause(t, 20*time.Second)
		require.Equal(t, first.Generation, shorter.Generation, "nothing has changed")
		require.InDelta(t, time.Minute.Seconds(), time.Until(shorter.Until).Seconds(), 0.01)
		longer := all[2].pause(t, 2*time.Minute)
		require.Greater(t, longer.Generation, first.Generation)
		tag := all[1].pause(t, 0, throttle.PauseTag("gpt"))
		require.True(t, tag.Until.IsZero())
		time.Sleep(2 * interval)
		for _, p := range all {
			require.InDelta(t, 118, time.Until(p.end(t)).Seconds(), 0.1)
			e, ok := p.th.Paused("gpt")
			require.True(t, ok)
			require.True(t, e.Until.IsZero())
		}
		time.Sleep(2 * time.Minute)
		require.NotZero(t, granted(time.Second, all...), "a pause of a tag holds nobody else")
	})
}

// A pause of a tag stops the limiters of that tag, whoever has them, and nobody else.
func TestPauseOfATagInAPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPods(memstore.New())
		plain := pool.start(t, 2)
		pool.tag = "gpt"
		gpt := pool.join(t, "gpt")
		pool.tag = "claude"
		others := []*pod{plain[0], plain[1], pool.join(t, "claude")}
		time.Sleep(5 * time.Second)
		r := plain[0].pause(t, 0, throttle.PauseTag("gpt"))
		require.Equal(t, []string{"claude", "gpt", "p0", "p1"}, r.Answered)
		requireStill(t, time.Minute, gpt)
		held, _ := gpt.th.Throttled()
		require.Equal(t, throttle.ReasonPause, held.Reason)
		require.Equal(t, &throttle.Paused{Tag: "gpt", Reason: "the service is down", By: "p0"}, gpt.th.Status().Paused)
		for _, p := range others {
			require.False(t, p.paused())
			require.NotZero(t, granted(time.Second, p))
		}
		require.NoError(t, plain[1].th.Resume(t.Context()))
		requireStill(t, 2*interval, gpt)
		require.NoError(t, plain[1].th.Resume(t.Context(), throttle.PauseTag("gpt")))
		time.Sleep(2*interval + time.Second) // and the stagger
		require.False(t, gpt.paused())
		require.NotZero(t, granted(time.Second, gpt))
	})
}

// Many that are refused at once are one pause, and the latest end counts but for the slack.
func TestManyPauseAtOnce(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
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

func TestResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPods(memstore.New())
		all := pool.start(t, 4)
		require.True(t, all[0].pause(t, 0).Until.IsZero())
		requireStill(t, 10*time.Minute, all...)
		pushed := all[1].line.pushed.Load()
		require.NoError(t, all[1].th.Resume(t.Context()))
		require.Equal(t, pushed, all[1].line.pushed.Load(), "a notification can only stop")
		time.Sleep(3 * time.Second)
		for _, p := range all {
			require.False(t, p.paused())
		}
		require.NotZero(t, granted(time.Second, all...))
	})
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
	eachServer(t, func(t *testing.T, s *server) {
		pool := newPods(s)
		all := pool.start(t, 20)
		all[0].line.slow.Store(int64(450 * time.Millisecond))
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
	eachServer(t, func(t *testing.T, s *server) {
		ctx := t.Context()
		pool := newPods(s)
		require.ErrorIs(t, protocol.SavePause(ctx, s, "pool", throttle.Paused{}), driver.ErrNoPool)
		all := pool.start(t, 3)
		none, err := protocol.LoadPauses(ctx, s, "pool")
		require.NoError(t, err)
		require.Empty(t, none)
		store := &line{Link: world.Link{Store: s}, hub: pool.hub}
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

// Every slot in flight is held back by the pool's pause, too.
func TestPauseOfAPoolOfSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		var all []*throttle.InFlight
		for i := range 3 {
			m, err := consensus.Join(t.Context(), s, "slots", consensus.WithID(fmt.Sprint(i)), consensus.WithLogger(quiet))
			require.NoError(t, err)
			f, err := throttle.NewInFlight(30, throttle.WithSharer(m), throttle.OnClose(m.Leave))
			require.NoError(t, err)
			t.Cleanup(func() { _ = f.Close() })
			all = append(all, f)
		}
		time.Sleep(5 * time.Second)
		r, err := all[0].Pause(t.Context(), time.Now().Add(time.Minute), "")
		require.NoError(t, err)
		require.Equal(t, []string{"0", "1", "2"}, r.Answered)
		time.Sleep(5 * time.Second)
		for _, f := range all {
			_, ok := f.TryAcquire(1)
			require.False(t, ok)
		}
		time.Sleep(time.Minute)
		for _, f := range all {
			_, ok := f.TryAcquire(1)
			require.True(t, ok)
		}
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
