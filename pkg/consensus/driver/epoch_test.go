package driver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A lifetime is a pool of which the beginning is looked at.
type lifetime struct {
	t   *testing.T
	rec Record
	at  At
	seq map[string]uint64
}

func newLifetime(t *testing.T, deferred bool) *lifetime {
	t.Helper()
	return &lifetime{t: t, at: At{Now: t0, Identity: "server", Remembers: remembers, Deferred: deferred, Longest: longest}, seq: map[string]uint64{}}
}

// sync lets time pass, and an incarnation "1" of id make its next request.
func (l *lifetime) sync(after time.Duration, id string, change ...func(*Request)) Answer {
	l.t.Helper()
	l.at.Now += micros(after)
	l.seq[id]++
	req := follow(Report{})
	req.ID, req.Seq, req.Nonce, req.LastSeq, req.LastNonce, req.Revision = id, l.seq[id], l.seq[id], l.seq[id]-1, l.seq[id]-1, 0
	if req.LastSeq == 0 {
		req.LastTime = 0
	}
	for _, c := range change {
		c(&req)
	}
	ans, _ := l.rec.Sync(&req, l.at)
	require.Equal(l.t, Granted, ans.Status)
	return ans
}

func (l *lifetime) leave(after time.Duration, id string) {
	l.t.Helper()
	l.at.Now += micros(after)
	l.seq[id]++
	require.True(l.t, l.rec.Leave(&Leave{
		Pool: "pool", ID: id, Incarnation: "1", Seq: l.seq[id], LastSeq: l.seq[id] - 1, LastNonce: l.seq[id] - 1,
	}, l.at))
	delete(l.seq, id)
}

func TestAPoolBeginsAnewWhenAllRowsAreRemoved(t *testing.T) {
	l := newLifetime(t, false)
	l.sync(0, "a")
	l.leave(time.Second, "a")
	l.sync(time.Second, "b")
	began := l.sync(time.Second, "b").Epoch
	// A processor has died long ago. As long as its row is there, the pool goes on.
	l.rec.Rows[1].LastSeen -= micros(Removal(longest) - 3*time.Second)
	for range 9 {
		require.Equal(t, began, l.sync(2*time.Second, "d").Epoch)
	}
	require.Len(t, l.rec.Rows, 1)
	// Only a row that is removed in the very step leaves nobody.
	l.rec.Rows[0].LastSeen -= micros(Removal(longest))
	ans := l.sync(time.Second, "e")
	require.Equal(t, ans.Time, ans.Epoch)
	require.Equal(t, time.Second, ans.Silence)
}

func TestNoTwoLivesBeginAtTheSameTime(t *testing.T) {
	l := newLifetime(t, false)
	began := l.sync(0, "a").Epoch
	for _, id := range []string{"b", "c", "d"} {
		l.rec.Rows = nil // all have left and are removed, and the clock has not moved
		ans := l.sync(time.Hour, id)
		require.Equal(t, began+1, ans.Epoch)
		require.Equal(t, t0, ans.Time)
		began = ans.Epoch
	}
}

// A store that learns the time of a step with the next one tells of a beginning then.
func TestADeferredStoreTellsOfABeginningOneStepLater(t *testing.T) {
	l := newLifetime(t, true)
	clock := l.at.Now
	// step makes a step at the next moment: the store knows the time of the last one.
	step := func(after time.Duration, do func() Answer) Answer {
		l.at.Now = clock
		clock += micros(after)
		return do()
	}
	sync := func(after time.Duration, id string) Answer {
		return step(after, func() Answer { return l.sync(0, id) })
	}
	l.at.Now = 0
	require.Zero(t, l.sync(0, "a").Epoch)
	ans := sync(time.Second, "a")
	require.Equal(t, t0, ans.Epoch)
	require.Zero(t, ans.Silence)
	require.Equal(t, ans.Epoch, sync(time.Second, "b").Epoch)
	step(time.Second, func() Answer { l.leave(0, "a"); return Answer{} })
	step(time.Second, func() Answer { l.leave(0, "b"); return Answer{} })

	ans = sync(3*time.Hour, "c") // clock was its own time all along
	require.Zero(t, ans.Epoch)
	require.Zero(t, ans.Silence)
	joined := clock
	ans = sync(time.Second, "c")
	require.Equal(t, 3*time.Hour, ans.Silence)
	require.Equal(t, joined-micros(3*time.Hour), ans.Epoch, "the leap counts as no time")
	began := ans.Epoch
	for range 3 {
		ans = sync(time.Second, "c")
		require.Equal(t, began, ans.Epoch)
		require.Equal(t, 3*time.Hour, ans.Silence)
	}
}

// What a processor remembers is older than a record that does not know of it.
func TestABeginningIsNotKnownToAStoreThatHasForgottenSomething(t *testing.T) {
	remembers := func(r *Request) { r.LastSeq, r.Seq, r.LastTime, r.Revision = r.LastSeq+20, r.Seq+20, t0, 40 }
	t.Run("a wiped one that somebody has joined", func(t *testing.T) {
		l := newLifetime(t, false)
		require.NotZero(t, l.sync(0, "b").Epoch)
		ans := l.sync(time.Second, "a", remembers)
		require.Zero(t, ans.Epoch)
		require.Zero(t, ans.Silence)
		require.Zero(t, l.sync(time.Second, "b").Epoch)
		require.Zero(t, l.sync(time.Second, "c").Epoch, "the pool goes on")
		l.leave(time.Second, "b")
		l.leave(0, "c")
		require.True(t, l.rec.Leave(&Leave{Pool: "pool", ID: "a", Incarnation: "1", Seq: 22, LastSeq: 21, LastNonce: 1}, l.at))
		ans = l.sync(time.Minute, "d")
		require.Equal(t, ans.Time, ans.Epoch, "until it begins anew")
		require.Equal(t, time.Minute, ans.Silence)
	})
	t.Run("one that has forgotten a row", func(t *testing.T) {
		l := newLifetime(t, false)
		require.NotZero(t, l.sync(0, "b").Epoch)
		l.sync(time.Second, "b")
		require.Zero(t, l.sync(time.Second, "a", remembers, func(r *Request) { r.Revision = 1 }).Epoch)
	})
	t.Run("an older copy", func(t *testing.T) {
		l := newLifetime(t, false)
		require.NotZero(t, l.sync(0, "a").Epoch)
		require.Zero(t, l.sync(time.Second, "a", func(r *Request) { r.Revision = 400 }).Epoch)
	})
	t.Run("one that learns the time later", func(t *testing.T) {
		l := newLifetime(t, true)
		l.sync(0, "b")
		require.Zero(t, l.sync(time.Second, "a", remembers).Epoch)
		require.Zero(t, l.sync(time.Second, "b").Epoch)
	})
	t.Run("a process that starts anew after a wipe", func(t *testing.T) {
		l := newLifetime(t, false)
		require.Zero(t, l.sync(0, "a", func(r *Request) { r.Revision = 40 }).Epoch)
	})
}
