package driver

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// setSpentRecord is a record of one processor with a full table of tag buckets but one, at a time.
func setSpentRecord(t *testing.T, at At, tagBuckets int) *Record {
	t.Helper()
	r := &Record{}
	req := Request{Pool: "p", ID: "a", Incarnation: "1", Seq: 1, Nonce: 1, Lease: MinLease}
	_, changed := r.Sync(&req, at)
	require.True(t, changed)
	for i := range tagBuckets {
		r.TagBuckets = append(r.TagBuckets, TagBucket{Key: uint64(10 + i), Full: wire.MaxMicros, Paid: 1})
	}
	return r
}

const day = int64(86_400_000_000)

// A tag bucket that is made holds nothing but what is spent, and one that is there keeps the rest.
func TestSetSpentChangesOneNumber(t *testing.T) {
	at := At{Now: 10*day + 5}
	r := setSpentRecord(t, at, 2)
	r.TagBuckets[0].Spent = []Spent{{9 * day, 10 * day, 4}, {10 * day, 11 * day, 5}}
	before := *r
	s := SpentReport{Key: 10, Start: 10 * day, End: 40 * day, Tokens: 7}
	require.NoError(t, s.Validate("p"))
	require.NoError(t, r.SetSpent(&s, at))
	require.Equal(t, []Spent{{9 * day, 10 * day, 4}, {10 * day, 40 * day, 7}}, r.TagBuckets[0].Spent, "the later end counts")
	require.Equal(t, before.Revision+1, r.Revision)
	require.Equal(t, int64(5), before.TagBuckets[0].Spent[1].Tokens, "a copy of the record keeps its own")
	r.Revision, r.TagBuckets = before.Revision, before.TagBuckets
	require.Equal(t, before, *r, "nothing else")

	s.Key = 3
	require.NoError(t, r.SetSpent(&s, at))
	require.Equal(t, TagBucket{Key: 3, Paid: r.Clock, Full: r.Clock, Spent: []Spent{{10 * day, 40 * day, 7}}}, r.TagBuckets[0])
}

func TestSetSpentRefuses(t *testing.T) {
	at := At{Now: 10*day + 5}
	r := setSpentRecord(t, at, wire.MaxTagBuckets)
	s := SpentReport{Key: 3, Start: 10 * day, End: 11 * day}
	var bad *RequestError
	require.ErrorAs(t, r.SetSpent(&s, at), &bad)
	require.Equal(t, "Key", bad.Field)
	r.TagBuckets[0].Full = r.Clock // one that can go
	require.NoError(t, r.SetSpent(&s, at))
	require.Len(t, r.TagBuckets, wire.MaxTagBuckets)

	for _, now := range []int64{s.Start - 1, s.End} {
		before := r.Revision
		require.ErrorAs(t, r.SetSpent(&s, At{Now: now}), &bad)
		require.Equal(t, "Start", bad.Field)
		require.Contains(t, bad.Allowed, "1970-01-1", "the store's clock is told")
		require.Equal(t, before, r.Revision)
	}
	require.NoError(t, r.SetSpent(&s, At{Now: s.Start}), "its first moment")
	require.ErrorAs(t, s.Validate(""), &bad)
	require.Equal(t, "Pool", bad.Field)
	require.ErrorIs(t, (&Record{}).SetSpent(&s, at), ErrNoPool)
}

// A Deferred store may not know yet that a window has begun. What has ended it knows, and what it forgets for room is never what was set.
func TestSetSpentOnADeferredStore(t *testing.T) {
	at := At{Now: 10*day + 5, Deferred: true}
	r := setSpentRecord(t, at, 1)
	for i := range int64(maxWindows) {
		r.TagBuckets[0].Spent = append(r.TagBuckets[0].Spent, Spent{10*day + i, 30 * day, 1})
	}
	at.Now += 1000
	s := SpentReport{Key: 10, Start: 12 * day, End: 13 * day, Tokens: 7}
	require.NoError(t, r.SetSpent(&s, at))
	require.Equal(t, RowKey{}, r.Unstamped, "the last step is stamped")
	require.Equal(t, at.Now, r.Wall)
	require.Len(t, r.TagBuckets[0].Spent, maxWindows)
	require.Equal(t, Spent{12 * day, 13 * day, 7}, r.TagBuckets[0].Spent[maxWindows-1])
	require.Equal(t, 10*day+1, r.TagBuckets[0].Spent[0].Start)
	_, err := r.AppendBinary(nil)
	require.NoError(t, err)
	s.Start, s.End = 9*day, 10*day
	var bad *RequestError
	require.ErrorAs(t, r.SetSpent(&s, at), &bad)
}
