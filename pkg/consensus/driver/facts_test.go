package driver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// A claim is never below what is in use, whatever is granted, and what another process reports never lowers it.
func TestClaimsCoverWhatIsInUse(t *testing.T) {
	r := standing(holder("a", "1", Whole/2))
	req := follow(Report{InUse: Whole / 2, Wanted: Whole / 10})
	ans, _ := r.Sync(&req, after(time.Second))
	require.Equal(t, Whole/10, ans.Share)
	require.Equal(t, Whole/2, r.Rows[0].Claim)
	for reported, want := range map[Share][2]Share{30: {50, 80}, 60: {60, 80}, 90: {90, 90}} {
		r := standing(holder("a", "1", 80))
		r.Rows[0].InUse = 50
		req := follow(Report{InUse: reported})
		r.begin(0, after(0)).behind(&req, r.Rows[0].RowKey)
		require.Equal(t, want, [2]Share{r.Rows[0].InUse, r.Rows[0].Claim})
	}
}

// A store that went back doesn't know when the pool began.
func TestAnOlderRecordHasNoBeginning(t *testing.T) {
	for revision, want := range map[uint64]int64{50: 5, 51: 0} {
		r := standing(holder("a", "1", 0))
		r.Epoch = 5
		req := follow(Report{})
		req.Revision = revision
		ans, _ := r.Sync(&req, after(time.Second))
		require.Equal(t, Granted, ans.Status)
		require.Equal(t, want, r.Epoch)
	}
}

func TestARowThatEndedIsReplacedOnlyByItsOwnID(t *testing.T) {
	for id, want := range map[string]Status{"a": Replaced, "b": Removed} {
		gone, other := holder("a", "1", 0), holder(id, "2", 0)
		gone.State = RowLeft
		r := standing(gone, other)
		req := follow(Report{})
		ans, _ := r.Sync(&req, after(time.Second))
		require.Equal(t, want, ans.Status)
	}
}

func TestAnswersTellOfFreezesThatLast(t *testing.T) {
	for left, want := range map[int64]FreezeCause{1: FreezeLostRow, 0: FreezeNone, -1: FreezeNone} {
		r := standing(holder("a", "1", 0))
		r.Wall, r.FrozenUntil, r.FrozenBy = left, t0+left, FreezeLostRow
		var ans Answer
		req := follow(Report{})
		r.begin(0, At{Now: t0}).fill(&ans, &req, &r.Rows[0])
		require.Equal(t, want, ans.FrozenBy)
		require.Equal(t, time.Duration(max(left, 0))*time.Microsecond, ans.Frozen)
		require.Equal(t, max(left, 0), ans.Wall)
	}
}

// The live rows agree on the pool size if all name the number of them.
func TestWhetherRowsAgree(t *testing.T) {
	for _, tc := range []struct {
		sizes  []int
		most   int
		agreed bool
	}{
		{nil, 0, true},
		{[]int{1}, 1, true},
		{[]int{2}, 2, false},
		{[]int{2, 2}, 2, true},
		{[]int{2, 1}, 2, false},
		{[]int{1, 2}, 2, false},
		{[]int{3, 3}, 3, false},
	} {
		r := standing()
		for i, size := range tc.sizes {
			row := holder(letters(int64(i+1)), "1", 0)
			row.PoolSize = size
			r.Rows = append(r.Rows, row)
		}
		g := r.Grant(t0)
		require.Equal(t, [3]any{len(tc.sizes), tc.most, tc.agreed}, [3]any{g.Live, g.PoolSize, g.Agreed}, "%v", tc.sizes)
	}
}

func TestACloneThatLeavesChangesTheRecord(t *testing.T) {
	r := standing(holder("a", "1", 5))
	require.True(t, r.Leave(&Leave{Pool: "pool", ID: "a", Incarnation: "1", Seq: 9, LastSeq: 7, LastNonce: 1}, after(0)))
	require.Equal(t, uint64(51), r.Revision)
	require.Equal(t, RowCloned, r.Rows[0].State)
}

// The tag bucket that is worth least makes room: the one that has been full for longest, without a window that lasts, and not of the request.
func TestWhichTagBucketMakesRoom(t *testing.T) {
	window := func(end int64) []Spent { return []Spent{{0, end, 1}} }
	for name, tc := range map[string]struct {
		buckets []TagBucket
		want    int
	}{
		"none":                     {nil, -1},
		"the first":                {[]TagBucket{{Full: 5}, {Full: 9}}, 0},
		"the second":               {[]TagBucket{{Full: 9}, {Full: 5}, {Full: 7}}, 1},
		"the first of two alike":   {[]TagBucket{{Full: 5}, {Full: 5}}, 0},
		"one that is full now":     {[]TagBucket{{Full: 100}}, 0},
		"one that is not full":     {[]TagBucket{{Full: 101}}, -1},
		"one whose window is over": {[]TagBucket{{Full: 5, Spent: window(1000)}}, 0},
		"one whose window lasts":   {[]TagBucket{{Full: 5, Spent: window(1001)}}, -1},
		"one of the request":       {[]TagBucket{{Key: 77, Full: 5}}, -1},
	} {
		r := &Record{TagBuckets: tc.buckets}
		g := &granter{step: &step{rec: r, at: At{Now: 1000}, clock: 100}, req: &Request{Draws: []Draw{{Key: 77}}}}
		require.Equal(t, tc.want, g.dispensable(), name)
	}
	for _, key := range []uint64{5, 1 << 40} { // before and behind the one that goes
		r := &Record{TagBuckets: buckets(wire.MaxTagBuckets)}
		for i := range r.TagBuckets {
			r.TagBuckets[i].Key += 100
			r.TagBuckets[i].Full = 100 + int64(i%2)
		}
		g := &granter{step: &step{rec: r, clock: 100}, req: &Request{}}
		require.Equal(t, key, g.tagBucket(key, false).Key)
		require.NoError(t, CheckTagBuckets(r.TagBuckets))
		require.Len(t, r.TagBuckets, wire.MaxTagBuckets)
		_, first := findTagBucket(r.TagBuckets, 100)
		require.False(t, first)
	}
}

// What is given back counts only of draws whose answer the store surely remembers.
func TestWhatIsGivenBackCountsOnce(t *testing.T) {
	r := standing(holder("a", "1", 0))
	r.FrozenUntil, r.FrozenBy = t0, FreezeLostRow
	st := r.begin(0, At{Now: t0, Identity: "server"})
	hold := r.FrozenUntil - st.freezeTime() + st.holdTime()
	for name, tc := range map[string]struct {
		newest, forgot bool
		lastTime       int64
		want           bool
	}{
		"the newest":             {true, false, hold, true},
		"an earlier one":         {false, false, hold, false},
		"from before the hold":   {true, false, hold - 1, false},
		"of a store that forgot": {true, true, hold, false},
	} {
		require.Equal(t, tc.want, st.granter(&Request{LastTime: tc.lastTime}, tc.newest, tc.forgot).back, name)
	}
	r.FreezeUnstamped = true
	require.False(t, st.granter(&Request{LastTime: hold}, true, false).back, "a freeze that has not begun")
}

// A draw by an older version of the quotas gets nothing, and what its sender owes counts all the same.
func TestADrawByAnOlderVersion(t *testing.T) {
	r := standing(holder("a", "1", 0))
	r.TagBuckets = []TagBucket{{Key: 1, Version: 5, Paid: t0, Full: t0 + 10}}
	d := Draw{Key: 1, Version: 4, Total: 1, Per: time.Second, Ask: 1, Owed: 3}
	g := r.begin(0, At{Now: t0}).granter(&Request{Draws: []Draw{d}}, true, false)
	drawn := g.serve()
	require.Equal(t, []Drawn{{Key: 1, Paid: t0 + 3_000_000, Lack: LackVersion}}, drawn)
	require.Equal(t, []TagBucket{{Key: 1, Version: 5, Paid: t0 + 3_000_000, Full: t0 + 3_000_000}}, r.TagBuckets)
}

func TestSharesAreWritten(t *testing.T) {
	require.InDelta(t, 0.25, (Whole / 4).Fraction(), 0)
	require.Equal(t, "25%", (Whole / 4).String())
}

func TestTagBucketsOfNoPool(t *testing.T) {
	_, err := (&Record{}).LoadTagBuckets()
	require.ErrorIs(t, err, ErrNoPool)
	_, err = (&Record{Revision: 1}).LoadTagBuckets()
	require.NoError(t, err)
}
