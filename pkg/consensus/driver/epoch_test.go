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

func newLifetime(t *testing.T) *lifetime {
	t.Helper()
	return &lifetime{t: t, at: At{Now: t0, Identity: "server", Remembers: remembers, Longest: longest}, seq: map[string]uint64{}}
}

// sync lets time pass, and an incarnation "1" of id make its next request.
func (l *lifetime) sync(after time.Duration, id string) Answer {
	l.t.Helper()
	l.at.Now += micros(after)
	l.seq[id]++
	req := follow(Report{})
	req.ID, req.Seq, req.Nonce, req.LastSeq, req.LastNonce, req.Revision = id, l.seq[id], l.seq[id], l.seq[id]-1, l.seq[id]-1, 0
	if req.LastSeq == 0 {
		req.LastTime = 0
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
	l := newLifetime(t)
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
	l := newLifetime(t)
	began := l.sync(0, "a").Epoch
	for _, id := range []string{"b", "c", "d"} {
		l.rec.Rows = nil // all have left and are removed, and the clock has not moved
		ans := l.sync(time.Hour, id)
		require.Equal(t, began+1, ans.Epoch)
		require.Equal(t, t0, ans.Time)
		began = ans.Epoch
	}
}
