package driver

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// recordOfTags is a record of a hundred rows with slots of so many tags each.
func recordOfTags(tags int) *Record {
	r := smallRecord()
	r.Clock = 1_795_000_000_000_000
	for i := range 100 {
		row := Row{
			RowKey: RowKey{fmt.Sprintf("my-pipeline-my-vertex-%03d-abcde", i), fmt.Sprintf("%016x", i)}, Seq: 100_000, Nonce: 1, LastSeen: r.Clock - 500_000,
			Holding: Holding{Claim: Whole / 100, InUse: Whole / 100, Answered: Whole / 100, Demand: Whole, PoolSize: 100},
		}
		for k := range tags {
			each := 1024 / tags
			row.TagClaims = append(row.TagClaims, TagClaim{uint64(k*each+i%each) << 54, 1, 1, 3})
		}
		r.Rows = append(r.Rows, row)
	}
	return r
}

// Each tag of a row takes four bytes, and eight once for its key, so that 1,024 tags on 100 pods fit into a record.
func TestRecordWithTagSlotsIsCompact(t *testing.T) {
	without := len(written(t, recordOfTags(0)))
	for _, tags := range []int{8, wire.MaxTagSlots} {
		r := recordOfTags(tags)
		claims := 0
		for i := range r.Rows {
			claims += len(r.Rows[i].TagClaims)
		}
		with := len(written(t, r))
		require.LessOrEqual(t, with-without, 4*claims+8*len(r.tagKeys())+2*len(r.Rows)+2)
		t.Logf("100 rows with %d claims of %d tags: %d bytes, without %d", claims, len(r.tagKeys()), with, without)
		got, err := ParseRecord(written(t, r))
		require.NoError(t, err)
		require.Equal(t, r, got)
	}
}

// A record without slots of tags is written as before there were any: the part begins where such a record ends.
func TestRecordWithoutTagSlotsIsAsBefore(t *testing.T) {
	r, without := fullRecord(), fullRecord()
	for i := range without.Rows {
		without.Rows[i].TagClaims = nil
	}
	with, old := written(t, r), written(t, without)
	at := flagsAt(with, old)
	require.Equal(t, byte(knownFlags), with[at])
	old[at] |= flagTagClaims
	require.Equal(t, old, with[:len(old)])
}

// flagsAt is the place of the only byte that differs.
func flagsAt(a, b []byte) int {
	for i := range b {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

// There is one form: what a hand can forge of it is refused.
func TestParseTagSlotsRefuses(t *testing.T) {
	r := smallRecord()
	r.Rows = []Row{{RowKey: RowKey{"a", "1"}, Holding: Holding{TagClaims: []TagClaim{{5, 1, 2, 3}, {9, 1, 2, 3}}}}}
	good := written(t, r)
	body := len(good) - (1 + 2*tagKeyBytes + 1 + 2*minTagClaimBytes)
	forged := func(bytes ...byte) []byte { return append(good[:body:body], bytes...) }
	key := func(last ...byte) (keys []byte) {
		for _, k := range last {
			keys = append(keys, 0, 0, 0, 0, 0, 0, 0, k)
		}
		return append([]byte{byte(len(last))}, keys...)
	}
	for name, tt := range map[string]struct {
		b    []byte
		want string
	}{
		"as it is":                 {forged(append(key(5, 9), 2, 0, 1, 2, 3, 0, 1, 2, 3)...), ""},
		"keys that fall":           {forged(append(key(9, 5), 2, 0, 1, 2, 3, 0, 1, 2, 3)...), "the keys of tags are not rising"},
		"a key twice":              {forged(append(key(5, 5), 2, 0, 1, 2, 3, 0, 1, 2, 3)...), "the keys of tags are not rising"},
		"a key of nobody":          {forged(append(key(5, 7, 9), 2, 0, 1, 2, 3, 1, 1, 2, 3)...), "a key of a tag that no row has slots of"},
		"a place beyond the keys":  {forged(append(key(5, 9), 2, 0, 1, 2, 3, 1, 1, 2, 3)...), "the place of a tag is 2 of 2"},
		"a place that wraps":       {forged(append(key(5), 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1, 2, 3)...), "is -1 of 1"},
		"nothing of a tag":         {forged(append(key(5), 1, 0, 0, 0, 0)...), "there is nothing of it"},
		"more tags than bytes":     {forged(append(key(5), 9, 0, 1, 2, 3)...), "9 tags of a row in the 4 bytes that are left"},
		"slots beyond all numbers": {forged(append(key(5), 1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3)...), "the slots in use is -1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseRecord(tt.b)
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, ErrWrongAnswer)
			require.ErrorContains(t, err, tt.want)
		})
	}
}
