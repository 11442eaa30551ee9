package driver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A store with too much to do turns away who joins first, and who would lose a lease last.
func TestPatience(t *testing.T) {
	joins, joined := Request{Seq: 2}, Request{Seq: 2, LastSeq: 1}
	holds := Request{Seq: 2, LastSeq: 1, Report: Report{InUse: 1}}
	require.Equal(t, 250*time.Millisecond, joins.Patience(time.Second))
	require.Equal(t, 500*time.Millisecond, joined.Patience(time.Second))
	require.Equal(t, 750*time.Millisecond, holds.Patience(time.Second))
}

func TestHoldersWait(t *testing.T) {
	record := func(holders, late int, silent time.Duration, state RowState) *Record {
		r := &Record{Lease: DefaultLease, Clock: micros(time.Hour)}
		for i := range holders {
			row := Row{State: state, LastSeen: r.Clock - micros(time.Second), Holding: Holding{Claim: 1}}
			if i < late {
				row.LastSeen = r.Clock - micros(silent)
			}
			r.Rows = append(r.Rows, row)
		}
		return r
	}
	require.False(t, record(100, 1, 6*time.Second, RowLive).HoldersWait(), "one in a hundred may be in trouble of its own")
	require.True(t, record(100, 2, 6*time.Second, RowLive).HoldersWait())
	require.False(t, record(100, 100, 5*time.Second, RowLive).HoldersWait(), "as far apart as intervals may be")
	require.False(t, record(100, 100, 5500*time.Millisecond, RowLive).HoldersWait(), "as far apart at most")
	require.True(t, record(100, 100, DefaultLease, RowLive).HoldersWait(), "their leases last to the end")
	require.False(t, record(100, 50, 11*time.Second, RowLive).HoldersWait(), "their leases are over")
	require.False(t, record(60, 30, 6*time.Second, RowLive).HoldersWait(), "a small pool")
	require.False(t, record(100, 50, 6*time.Second, RowReplaced).HoldersWait())
}
