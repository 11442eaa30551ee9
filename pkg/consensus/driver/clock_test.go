package driver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// TestClock lets a processor sync at some times of the store's clock, and looks at
// the pool's. The lease is 10 s: the clamp 2.5 s, the removal time 15 s.
func TestClock(t *testing.T) {
	s := func(seconds ...float64) []time.Duration {
		out := make([]time.Duration, len(seconds))
		for i, f := range seconds {
			out[i] = time.Duration(f * float64(time.Second))
		}
		return out
	}
	for _, c := range []struct {
		name  string
		store []time.Duration
		pool  []time.Duration
	}{
		{name: "it follows the store's", store: s(0, 1, 1, 1.5, 4), pool: s(0, 1, 1, 1.5, 4)},
		{name: "it never runs backwards", store: s(5, 3, 3.5, 4), pool: s(5, 5, 5.5, 6)},
		{name: "a gap up to the clamp is time", store: s(0, 2.5, 5), pool: s(0, 2.5, 5)},
		{name: "a longer one is none", store: s(0, 2.500001, 3), pool: s(0, 0, 0.499999)},
		{name: "however many there are", store: s(0, 3600, 7200, 7201, 9000), pool: s(0, 0, 0, 1, 1)},
		{name: "a leap back and forth is none", store: s(0, -3600, 0, 1), pool: s(0, 0, 0, 1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &Record{}
			var pool []time.Duration
			for i, now := range c.store {
				req := Request{Pool: "pool", ID: "a", Incarnation: "1", Seq: uint64(i + 1), LastSeq: uint64(i), Lease: longest, Report: Report{}}
				ans, _ := r.Sync(&req, after(now))
				pool = append(pool, time.Duration(ans.Time-t0)*time.Microsecond)
			}
			require.Equal(t, c.pool, pool)
		})
	}
}

// TestRemoval is about a row that was heard of at t0, and what others find later.
func TestRemoval(t *testing.T) {
	for _, c := range []struct {
		name  string
		row   Row
		since time.Duration // on the pool's clock
		gone  bool
	}{
		{name: "live, in time", row: holder("b", "1", half), since: 15 * time.Second},
		{name: "live, too late", row: holder("b", "1", half), since: 15*time.Second + time.Microsecond, gone: true},
		{name: "replaced, in time", row: closed(RowReplaced, holder("b", "1", half)), since: 15 * time.Second},
		{name: "replaced, too late", row: closed(RowReplaced, holder("b", "1", half)), since: 16 * time.Second, gone: true},
		{name: "cloned, too late", row: closed(RowCloned, holder("b", "1", half)), since: 16 * time.Second, gone: true},
		{name: "tombstone, in time", row: closed(RowLeft, holder("b", "1", 0)), since: 15 * time.Second},
		{name: "tombstone, too late", row: closed(RowLeft, holder("b", "1", 0)), since: 16 * time.Second, gone: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.row.LastSeen = t0 + micros(time.Second-c.since)
			r := standing(holder("a", "1", 0), c.row)
			req := follow(Report{Wanted: Whole})
			ans, _ := r.Sync(&req, after(time.Second))
			_, found := r.find(c.row.RowKey)
			require.Equal(t, c.gone, !found)
			room := Whole
			if !c.gone {
				room -= c.row.Claim
			}
			require.Equal(t, room, ans.Share)
		})
	}
}

// TestRowThatWasRemoved is about a processor that comes back without a row: it was
// removed if that can be, else the store has lost it.
func TestRowThatWasRemoved(t *testing.T) {
	for _, c := range []struct {
		name   string
		last   time.Duration // before the step, on the pool's clock: the last answer
		seen   uint64        // revision
		other  []Row
		status Status
		freeze FreezeCause
	}{
		{name: "too long ago", last: 15 * time.Second, seen: 50, status: Removed},
		{name: "too long ago, and replaced", last: 15 * time.Second, seen: 50, other: []Row{holder("a", "2", 0)}, status: Replaced},
		{name: "too recently", last: 15*time.Second - time.Microsecond, seen: 50, status: Granted, freeze: FreezeLostRow},
		{name: "in the future of an older record", last: -time.Hour, seen: 50, status: Granted, freeze: FreezeLostRow},
		{name: "long ago, but the record is older", last: 15 * time.Second, seen: 51, status: Granted, freeze: FreezeRollback},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := standing(c.other...)
			req := follow(Report{InUse: half, Wanted: Whole})
			req.LastTime, req.Revision = t0+micros(time.Second-c.last), c.seen
			ans, _ := r.Sync(&req, after(time.Second))
			require.Equal(t, c.status, ans.Status)
			require.Equal(t, c.freeze, ans.FrozenBy)
			if c.status == Granted {
				require.Equal(t, half, ans.Share, "what is in use may go on, but not grow")
			}
		})
	}
}

// TestFreeze is about what the store may have forgotten when a/1 asks for everything.
func TestFreeze(t *testing.T) {
	empty := func() *Record { return &Record{} }
	known := func() *Record { return standing(holder("a", "1", half)) }
	const removal = 15 * time.Second // of the longest lease
	// joins makes the request that of a process that remembers nothing, in a store that remembers for some time.
	joins := func(remembers, outlasts time.Duration) func(*Record, *Request, *At) {
		return func(_ *Record, req *Request, at *At) {
			at.Remembers, req.Outlasts = remembers, outlasts
			req.Revision, req.LastSeq, req.LastNonce, req.LastTime = 0, 0, 0, 0
		}
	}
	elsewhere := func(longest, lease time.Duration) func(*Record, *Request, *At) {
		return func(r *Record, _ *Request, at *At) { at.Identity, at.Longest, r.Lease = "another", longest, lease }
	}
	frozen := func(d time.Duration) func(*Record, *Request, *At) {
		return func(r *Record, _ *Request, _ *At) { r.FrozenUntil, r.FrozenBy = t0+micros(d), FreezeNewRecord }
	}
	for _, c := range []struct {
		name     string
		record   func() *Record
		change   func(r *Record, req *Request, at *At)
		cause    FreezeCause
		frozen   time.Duration
		revision uint64
	}{
		{"nothing", known, nil, "", 0, 51},
		{"everything", empty, nil, FreezeNewRecord, removal, 51},
		{"everything, and nobody remembers", empty, joins(0, 0), FreezeNewRecord, removal, 1},
		{"the pool is known to be new", empty, joins(remembers, 0), "", 0, 1},
		{"the pool is new for who stops without the store", empty, joins(removal, 0), "", 0, 1},
		{"there may be shares of it", empty, joins(removal-1, 0), FreezeNewRecord, removal, 1},
		{"the pool is new, for no share of it can be left", empty, joins(removal+wire.MaxOutlasts, wire.MaxOutlasts), "", 0, 1},
		{
			"there may be shares of it that are used without the store", empty, joins(removal+wire.MaxOutlasts-1, wire.MaxOutlasts),
			FreezeNewRecord, removal, 1,
		},
		{
			"the pool is said to be new, but somebody remembers it", empty,
			func(_ *Record, _ *Request, at *At) { at.Remembers = remembers }, FreezeRollback, removal, 51,
		},
		{"the identity", known, elsewhere(longest, longest), FreezeIdentity, removal, 51},
		{"a revision", known, func(_ *Record, req *Request, _ *At) { req.Revision = 1000 }, FreezeRollback, removal, 1001},
		{
			"an answer", known, func(_ *Record, req *Request, _ *At) { req.LastSeq, req.Seq, req.Recalled = 9, 10, Ticket{7, 700} },
			FreezeLostRow, removal, 51,
		},
		{"a row", known, func(r *Record, _ *Request, _ *At) { r.Rows = nil }, FreezeLostRow, removal, 51},
		{"something, in a pool with a short lease", known, elsewhere(longest, short), FreezeIdentity, removal, 51},
		{"something, where all leases are short", known, elsewhere(short, short), FreezeIdentity, 6 * time.Second, 51},
		{"something, where nothing is known of leases", known, elsewhere(0, longest), FreezeIdentity, wire.Removal(MaxLease), 51},
		{
			"something, while it is frozen for longer", known, func(r *Record, req *Request, at *At) {
				frozen(time.Hour)(r, req, at)
				at.Identity = "another"
			}, FreezeIdentity, time.Hour - time.Second, 51,
		},
		{"nothing, while it is frozen", known, frozen(2 * time.Second), FreezeNewRecord, time.Second, 51},
		{"nothing, and the freeze is over", known, frozen(time.Second), "", 0, 51},
		{
			"all of it, but it is a memory store", empty, func(_ *Record, req *Request, at *At) { at.Identity, req.Revision = "", 1000 },
			"", 0, 1001,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, at := c.record(), after(time.Second)
			req := follow(Report{InUse: half, Wanted: Whole})
			if c.change != nil {
				c.change(r, &req, &at)
			}
			ans, changed := r.Sync(&req, at)
			require.True(t, changed)
			require.Equal(t, c.cause, ans.FrozenBy)
			require.Equal(t, c.frozen, ans.Frozen)
			require.Equal(t, c.revision, ans.Revision)
			want := Whole
			if c.frozen > 0 {
				want = half
			}
			require.Equal(t, want, ans.Share)
			require.Equal(t, at.Identity, r.Store)
		})
	}
}

// TestDeferred is about a store that learns the time of a step with the next one.
func TestDeferred(t *testing.T) {
	r := &Record{}
	seq := map[string]uint64{}
	// sync syncs at a time when the newest step known was at last; 0: none.
	sync := func(id string, last time.Duration, want Share) Answer {
		seq[id]++
		at := after(last)
		at.Deferred = true
		if last == 0 {
			at.Now = 0
		}
		req := Request{
			Pool: "pool", ID: id, Incarnation: "1", Seq: seq[id], Nonce: seq[id], LastSeq: seq[id] - 1, LastNonce: seq[id] - 1, Lease: longest,
			Report: Report{Wanted: want},
		}
		ans, _ := r.Sync(&req, at)
		return ans
	}
	seen := func(id string) time.Duration {
		i, found := r.find(RowKey{id, "1"})
		require.True(t, found)
		return time.Duration(r.Rows[i].LastSeen-t0) * time.Microsecond
	}

	ans := sync("a", 0, Whole) // happens at 1 s
	require.Zero(t, ans.Time, "no time is known yet")
	require.Equal(t, 15*time.Second, ans.Frozen)

	ans = sync("b", time.Second, Whole) // happens at 2 s
	require.Equal(t, time.Second, seen("a"), "the row is stamped with the time at which it was written")
	require.Equal(t, 15*time.Second, ans.Frozen, "so is the freeze")
	require.Equal(t, t0+micros(time.Second), ans.Time)

	for last := 2 * time.Second; last < 16*time.Second; last += time.Second {
		require.Zero(t, sync("b", last, Whole).Share, "at %s", last)
	}
	require.Equal(t, Whole, sync("b", 16*time.Second, Whole).Share)
	require.Equal(t, 16*time.Second, seen("b"), "not before the step before it; the next one knows better")
	require.Equal(t, 2, sync("b", 16*time.Second, Whole).Live)
	require.Equal(t, 1, sync("b", 16*time.Second+time.Microsecond, Whole).Live, "a was heard of at 1 s")
}
