package driver

import (
	"bytes"
	"encoding"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

var _ encoding.BinaryAppender = (*Record)(nil)

// written returns the binary form of a record.
func written(tb testing.TB, r *Record) []byte {
	tb.Helper()
	b, err := r.AppendBinary(nil)
	require.NoError(tb, err)
	return b
}

// smallRecord is the least that a store writes.
func smallRecord() *Record {
	return &Record{Revision: 1, Lease: DefaultLease}
}

// fullRecord has every field set, and each state.
func fullRecord() *Record {
	return &Record{
		Store: "2026-11-21T10:00:00Z node-1", Revision: 77,
		Clock: 1_795_000_000_000_000, Wall: 1_795_000_000_500_000,
		FrozenUntil: 1_795_000_003_000_000, FrozenSince: -5, FrozenBy: FreezeLostRow,
		Lease: 3 * time.Second, Unstamped: RowKey{"b", "2"}, FreezeUnstamped: true,
		Epoch: 1_794_000_000_000_000, Silence: 90 * time.Minute, EpochUnstamped: true,
		Documents: []Document{
			{"a_9", 1, []byte{0}},
			{"limit", wire.MaxVersion, bytes.Repeat([]byte{0xff}, wire.MaxDocumentBytes)},
			{strings.Repeat("z", 32), 1 << 16, []byte("{}")},
		},
		Permits: Permits{
			Issuing: true, Spacing: wire.MaxSpacing, SpacingUntil: 1, StrictUntil: 2, SharesUntil: 3, Last: maxNanos, Step: maxStep,
			Count: wire.MaxSlots, Serial: maxRevision, Hold: 4, Held: wire.MaxMicros,
			Pending: pendingReservation{Count: 1, Step: 333_333_334, Window: maxSpan},
			Recent:  []reservation{{Revision: 76, Time: 6, Count: 2, Wait: time.Second, Step: 1}, {Revision: 77}},
		},
		TagBuckets: []TagBucket{
			{Key: 0, Paid: 0, Full: wire.MaxMicros},
			{
				Key: 1 << 63, Version: wire.MaxVersion, Paid: 1_795_000_000_900_000, Full: 1_795_000_000_900_000,
				Spent: []Spent{{-5, 7, maxSpent}, {1_794_999_000_000_000, 1_795_999_000_000_000, 0}},
			},
			{Key: math.MaxUint64, Version: wire.MaxVersion, Paid: 1, Full: 2},
		},
		Names: Names{
			TagBuckets: []TagBucket{{Key: 4, Paid: 1, Full: 1}, {Key: 5, Version: 7, Paid: 2, Full: 2, Spent: []Spent{{1, 2, 3}}}},
			Cells: []Cell{{0, -minute, 0}, {17, 1_795_000_020_000_000, maxSpent}, {wire.FirstPaid, minute, 5000}, {
				wire.MaxCells - 1, 0,
				wire.MaxMicros / 1000 * 1000,
			}},
		},
		Rows: []Row{
			{RowKey: RowKey{"a", "1"}, State: RowLeft, Seq: 9, LastSeen: 1_795_000_000_000_000},
			{
				RowKey: RowKey{"b", "1"}, State: RowReplaced, Seq: math.MaxUint64, Nonce: math.MaxUint64,
				LastSeen: 1_795_000_001_000_000, Holding: Holding{Claim: Whole, InUse: Whole, TagClaims: []TagClaim{{7, 0, 2, 0}}},
			},
			{
				RowKey: RowKey{"b", "2"}, Seq: 5, Nonce: 6, LastSeen: 1,
				Holding: Holding{
					Claim: 500, InUse: 400, Answered: 500, Demand: Whole, PoolSize: maxPoolSize, Note: "max=10 \xff", Busy: "\x00\xff",
					TagClaims: []TagClaim{{0, 1, 0, 0}, {7, wire.MaxTokens, wire.MaxTokens, wire.MaxTokens}, {math.MaxUint64, 0, 0, 1}},
				},
			},
			{RowKey: RowKey{strings.Repeat("ü", 128), "1"}, State: RowCloned, Seq: 1},
		},
	}
}

func TestRecordRoundTrip(t *testing.T) {
	synced := &Record{}
	for i, id := range []string{"pod-b", "pod-a", "pod-c"} {
		req := Request{
			Pool: "p", ID: id, Incarnation: "i", Seq: 1, Nonce: uint64(i), Lease: DefaultLease,
			Report: Report{InUse: 7, Wanted: Whole / 3, Demand: Whole},
		}
		_, changed := synced.Sync(&req, At{Now: int64(i) * 1_700_000_000_000_000, Identity: "s", Deferred: true})
		require.True(t, changed)
	}
	synced.Leave(&Leave{Pool: "p", ID: "pod-b", Incarnation: "i", Seq: 2}, At{Now: 1_700_000_001_000_000, Deferred: true})

	for name, r := range map[string]*Record{"small": smallRecord(), "full": fullRecord(), "synced": synced} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseRecord(written(t, r))
			require.NoError(t, err)
			require.Equal(t, r, got)
		})
	}
}

func TestRecordIsAppended(t *testing.T) {
	b, err := fullRecord().AppendBinary([]byte("before"))
	require.NoError(t, err)
	require.Equal(t, append([]byte("before"), written(t, fullRecord())...), b)
}

// The unstamped row is written as its place, so one that names no row cannot be.
func TestRecordUnstampedWithoutRow(t *testing.T) {
	r := fullRecord()
	r.Unstamped = RowKey{"gone", "1"}
	got, err := ParseRecord(written(t, r))
	require.NoError(t, err)
	r.Unstamped = RowKey{}
	require.Equal(t, r, got)
}

func TestRecordIsCompact(t *testing.T) {
	r := smallRecord()
	r.Clock = 1_795_000_000_000_000
	for i := range 100 {
		r.Rows = append(r.Rows, Row{
			RowKey: RowKey{fmt.Sprintf("my-pipeline-my-vertex-%03d-abcde", i), fmt.Sprintf("%016x", i)},
			Seq:    100_000, Nonce: 1, LastSeen: r.Clock - 500_000,
			Holding: Holding{Claim: Whole / 100, InUse: Whole / 100, Answered: Whole / 100, Demand: Whole, PoolSize: 100},
		})
	}
	names := 100 * len("my-pipeline-my-vertex-000-abcde"+"0123456789abcdef")
	require.Less(t, len(written(t, r)), names+100*52, "beside its names a row takes about 50 bytes")
}

func TestAppendBinaryRefusesWhatCannotBeRead(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(r *Record)
		want  string
	}{
		"no revision":          {func(r *Record) { r.Revision = 0 }, "the revision is 0, allowed: 1 to 9223372036854775807"},
		"a far revision":       {func(r *Record) { r.Revision = math.MaxUint64 }, "the revision is 18446744073709551615, allowed: 1 to"},
		"an early clock":       {func(r *Record) { r.Clock = -1 }, "the clock is -1us, allowed: 0 or more"},
		"an early row":         {func(r *Record) { r.Rows[2].LastSeen = -1 }, "row 2: last-seen is -1us, allowed: 0 or more"},
		"no lease":             {func(r *Record) { r.Lease = 0 }, "the lease is 0s, allowed: 1ms to 10s"},
		"a longer lease":       {func(r *Record) { r.Lease = time.Hour }, "the lease is 1h0m0s"},
		"a far clock":          {func(r *Record) { r.Clock = math.MaxInt64 }, "the clock is 9223372036854775807us"},
		"a far wall":           {func(r *Record) { r.Wall = math.MinInt64 }, "the wall clock is"},
		"a far last-seen":      {func(r *Record) { r.Rows[2].LastSeen = math.MaxInt64 }, "row 2: last-seen is"},
		"a long identity":      {func(r *Record) { r.Store = strings.Repeat("x", 513) }, "the store's identity is 513 bytes"},
		"a long cause":         {func(r *Record) { r.FrozenBy = FreezeCause(strings.Repeat("x", 65)) }, "the cause of the freeze is 65 bytes"},
		"an unknown state":     {func(r *Record) { r.Rows[0].State = 4 }, "row 0: the state is 4, allowed: 0 to 3"},
		"no ID":                {func(r *Record) { r.Rows[0].ID = "" }, `row 0: the ID is ""`},
		"NUL in a name":        {func(r *Record) { r.Rows[0].Incarnation = "\x00" }, `row 0: the incarnation is "\x00"`},
		"rows out of order":    {func(r *Record) { slices.Reverse(r.Rows) }, "not above the row before it"},
		"a row twice":          {func(r *Record) { r.Rows[1].RowKey = r.Rows[2].RowKey }, "row 2: not above the row before it"},
		"a claim below 0":      {func(r *Record) { r.Rows[2].Claim = -1 }, "row 2: the claim is -1, allowed: 0 to 1000000000"},
		"too much in use":      {func(r *Record) { r.Rows[2].InUse = Whole + 1 }, "the share in use is 1000000001"},
		"too high a demand":    {func(r *Record) { r.Rows[2].Demand = math.MaxInt64 }, "the demand is"},
		"a wrong answer":       {func(r *Record) { r.Rows[2].Answered = Whole + 1 }, "the share answered is"},
		"a huge pool":          {func(r *Record) { r.Rows[2].PoolSize = maxPoolSize + 1 }, "the pool size is 1000001"},
		"a long note":          {func(r *Record) { r.Rows[2].Note = strings.Repeat("x", 129) }, "row 2: the note is"},
		"NUL in a note":        {func(r *Record) { r.Rows[2].Note = "\x00" }, `the note is "\x00", allowed: at most 128 bytes without NUL`},
		"an early beginning":   {func(r *Record) { r.Epoch = -1 }, "the beginning is -1us, allowed: 0 or more"},
		"a far beginning":      {func(r *Record) { r.Epoch = math.MaxInt64 }, "the beginning is 9223372036854775807us"},
		"a silence below 0":    {func(r *Record) { r.Silence = -time.Microsecond }, "the silence before the beginning is -1µs"},
		"an odd silence":       {func(r *Record) { r.Silence = 1 }, "the silence before the beginning is 1ns, allowed: whole microseconds from 0 to"},
		"an endless silence":   {func(r *Record) { r.Silence = math.MaxInt64 }, "the silence before the beginning is"},
		"a nameless document":  {func(r *Record) { r.Documents[0].Name = "" }, `the name of a document is ""`},
		"a document's name":    {func(r *Record) { r.Documents[0].Name = "A" }, `the name of a document is "A", allowed: 1 to 32 bytes of a-z, 0-9 and _`},
		"a document twice":     {func(r *Record) { r.Documents[1].Name = "a_9" }, `document "a_9": not above the document before it`},
		"a document unversed":  {func(r *Record) { r.Documents[1].Version = 0 }, "the version of document limit is 0"},
		"a far version":        {func(r *Record) { r.Documents[1].Version++ }, "the version of document limit is 9223372036854775808"},
		"an empty document":    {func(r *Record) { r.Documents[1].Body = nil }, "the body of document limit is 0 bytes"},
		"a document too large": {func(r *Record) { r.Documents[1].Body = make([]byte, 4097) }, "the body of document limit is 4097 bytes"},
		"too many documents":   {func(r *Record) { r.Documents = make([]Document, 9) }, "the number of documents is 9, allowed: at most 8"},
		"an early slot":        {func(r *Record) { r.Permits.Last = -1 }, "the newest slot is -1"},
		"a far slot":           {func(r *Record) { r.Permits.Last = math.MaxInt64 }, "the newest slot is 9223372036854775807, allowed: 0 to 89"},
		"a far hold":           {func(r *Record) { r.Permits.Hold = math.MaxInt64 }, "the end of the hold is"},
		"a wide spacing":       {func(r *Record) { r.Permits.Spacing = wire.MaxSpacing + 1 }, "the pool's spacing is 744h0m0.000000001s"},
		"too many slots":       {func(r *Record) { r.Permits.Count = wire.MaxSlots + 1 }, "the number of slots is 65"},
		"a pending surplus":    {func(r *Record) { r.Permits.Pending.Count = wire.MaxSlots + 1 }, "pending: the number of slots is 65"},
		"a wide window":        {func(r *Record) { r.Permits.Pending.Window = -1 }, "the pending window is -1ns"},
		"a far reservation":    {func(r *Record) { r.Permits.Serial = math.MaxUint64 }, "the newest reservation is"},
		"a long memory":        {func(r *Record) { r.Permits.Recent = make([]reservation, maxRecent+1) }, "the number of recent reservations is 17"},
		"a negative wait":      {func(r *Record) { r.Permits.Recent[1].Wait = -1 }, "recent reservation 1: the wait is -1ns"},
		"a long busy list":     {func(r *Record) { r.Rows[2].Busy = strings.Repeat("x", 449) }, "row 2: what is busy is 449 bytes, allowed: at most 448"},
		"too many tags":        {func(r *Record) { r.Rows[2].TagClaims = make([]TagClaim, 513) }, "row 2: the number of tags with slots is 513"},
		"a tag of nothing":     {func(r *Record) { r.Rows[2].TagClaims[1] = TagClaim{Key: 7} }, "row 2: tag 0000000000000007: there is nothing of it"},
		"tags out of order":    {func(r *Record) { slices.Reverse(r.Rows[2].TagClaims) }, "row 2: tag 0000000000000007: not above the one before it"},
		"a tag twice":          {func(r *Record) { r.Rows[2].TagClaims[1].Key = 0 }, "row 2: tag 0000000000000000: not above the one before it"},
		"slots below 0":        {func(r *Record) { r.Rows[2].TagClaims[0].InUse = -1 }, "the slots in use is -1, allowed: 0 to 1000000000"},
		"too many tag slots":   {func(r *Record) { r.Rows[2].TagClaims[1].Granted++ }, "the slots granted is 1000000001"},
		"too much slot demand": {func(r *Record) { r.Rows[2].TagClaims[2].Demand = math.MaxInt64 }, "the demand for slots is"},
		"too many names": {
			func(r *Record) { r.Names.TagBuckets = make([]TagBucket, wire.MaxNames+1) },
			"the number of tag buckets is 4097, allowed: 0 to 4096",
		},
		"a cell in a ms":     {func(r *Record) { r.Names.Cells = []Cell{{wire.FirstPaid, 0, 1}} }, "whole milliseconds"},
		"a cell twice":       {func(r *Record) { r.Names.Cells = []Cell{{3, 0, 1}, {3, 0, 1}} }, "the index of a cell is 3"},
		"a cell in a minute": {func(r *Record) { r.Names.Cells = []Cell{{3, 1, 1}} }, "until a whole minute"},
		"too much in a cell": {func(r *Record) { r.Names.Cells = []Cell{{3, 0, maxSpent + 1}} }, "0 to 4e15 tokens"},
		"too many tag buckets": {
			func(r *Record) { r.TagBuckets = make([]TagBucket, wire.MaxTagBuckets+1) },
			"the number of tag buckets is 2049, allowed: 0 to 2048",
		},
		"tag buckets out of order":    {func(r *Record) { slices.Reverse(r.TagBuckets) }, "tag bucket 1: not above the one before it"},
		"a tag bucket twice":          {func(r *Record) { r.TagBuckets[1].Key = 0 }, "tag bucket 1: not above the one before it"},
		"a tag bucket's far version":  {func(r *Record) { r.TagBuckets[1].Version++ }, "tag bucket 1: the version is 9223372036854775808"},
		"paid below 0":                {func(r *Record) { r.TagBuckets[0].Paid = -1 }, "tag bucket 0: what is given out, and when it is full, is -1us"},
		"a tag bucket more than full": {func(r *Record) { r.TagBuckets[2].Full = 0 }, "tag bucket 2: what is given out, and when it is full, is 1us, 0us"},
		"full too late":               {func(r *Record) { r.TagBuckets[2].Full = wire.MaxMicros + 1 }, "when it is full, is 1us, 1152921504606846977us"},
		"too many windows": {
			func(r *Record) { r.TagBuckets[1].Spent = make([]Spent, 7) },
			"tag bucket 1: the number of windows is 7, allowed: 0 to 6",
		},
		"an empty window":      {func(r *Record) { r.TagBuckets[1].Spent[0].End = -5 }, "tag bucket 1: a window is -5us to -5us"},
		"windows out of order": {func(r *Record) { slices.Reverse(r.TagBuckets[1].Spent) }, "tag bucket 1: a window is -5us to 7us"},
		"a far window":         {func(r *Record) { r.TagBuckets[1].Spent[1].End = math.MaxInt64 }, "tag bucket 1: a window is 1794999000000000us to"},
		"spent below 0": {
			func(r *Record) { r.TagBuckets[1].Spent[0].Tokens = -1 },
			"tag bucket 1: what is spent is -1, allowed: 0 to 4000000000000000",
		},
		"spent too much": {func(r *Record) { r.TagBuckets[1].Spent[0].Tokens++ }, "tag bucket 1: what is spent is 4000000000000001"},
	} {
		t.Run(name, func(t *testing.T) {
			r := fullRecord()
			tt.spoil(r)
			b, err := r.AppendBinary([]byte("before"))
			require.ErrorContains(t, err, tt.want)
			require.Equal(t, "before", string(b))
		})
	}
}

// A record in which there is everything that there can be of names is a third of a megabyte, the smallest message that a NATS server takes
// by default.
func TestRecordOfManyNamesIsBounded(t *testing.T) {
	r := smallRecord()
	r.Clock, r.Wall = 1_795_000_000_000_000, 1_795_000_000_000_000
	for i := range uint64(wire.MaxNames) {
		r.Names.TagBuckets = append(r.Names.TagBuckets, TagBucket{
			Key: i << 50, Paid: r.Clock - int64(i)*1000, Full: r.Clock + 60_000_000,
			Spent: []Spent{{r.Wall - 80_000_000_000, r.Wall + 6_400_000_000, 123_456_789}},
		})
	}
	for i := range wire.MaxCells {
		c := Cell{i, (r.Wall/minute + 1440) * minute, 123_456_789}
		if i >= wire.FirstPaid {
			c.Value = r.Clock + int64(i)*millisecond
		}
		r.Names.Cells = append(r.Names.Cells, c)
	}
	require.Less(t, len(written(t, r)), 384<<10)
}

// Records without tag buckets are written as before there were any, and those of a pool with a thousand are small, with a budget each.
func TestRecordWithTagBucketsIsCompact(t *testing.T) {
	require.Zero(t, written(t, smallRecord())[len(written(t, smallRecord()))-6], "no flags")
	r := smallRecord()
	r.Clock, r.Wall = 1_795_000_000_000_000, 1_795_000_000_000_000
	for i := range uint64(1000) {
		r.TagBuckets = append(r.TagBuckets, TagBucket{
			Key: i << 54, Version: wire.MaxVersion, Paid: r.Clock + int64(i)*1000,
			Full: r.Clock + int64(i)*1000 + 100_000,
		})
	}
	without := len(written(t, r))
	require.Less(t, without, 1000*18)
	for i := range r.TagBuckets {
		r.TagBuckets[i].Spent = []Spent{{r.Wall - 80_000_000_000, r.Wall + 6_400_000_000, 123_456_789}}
	}
	with := len(written(t, r))
	require.Less(t, with-without, 1000*17)
	t.Logf("1,000 tag buckets: %d bytes, with a budget each %d", without, with)
}

func TestParseRecordRefuses(t *testing.T) {
	good := written(t, fullRecord())
	newer := bytes.Clone(good)
	newer[2] = wire.FormatVersion + 1
	older := bytes.Clone(good)
	older[2] = 0
	// A small record ends with the flag of the freeze, the beginning in three bytes, and
	// the numbers of documents and rows.
	small := written(t, smallRecord())
	end := len(small) - 6
	// with is the small record with other bytes at its end.
	with := func(last ...byte) []byte { return append(bytes.Clone(small[:end]), last...) }
	for name, tt := range map[string]struct {
		b    []byte
		want string
	}{
		"nothing":                 {nil, "0 bytes that are not a pool's record"},
		"the magic alone":         {[]byte("NT"), "not a pool's record"},
		"foreign text":            {[]byte(`{"share": 1}`), "not a pool's record"},
		"a newer format":          {newer, "the record has format 2, written by a newer release; this one reads up to format 1"},
		"format 0":                {older, "the record has format 0, allowed: 1"},
		"a byte more":             {append(bytes.Clone(good), 0), "1 bytes too many"},
		"a flag of 64":            {with(64, 0, 0, 0, 0, 0), "the flags are 64, allowed: 0 to 63"},
		"no tags":                 {with(32, 0, 0, 0, 0, 0, 0), "no row has slots of a tag, though the flags say so"},
		"many tags":               {with(32, 0, 0, 0, 0, 0, 0xff, 0x03), "511 keys of tags in the 0 bytes that are left"},
		"a tag of nobody":         {with(32, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1), "there is a key of a tag that no row has slots of"},
		"no names":                {with(16, 0, 0, 0, 0, 0, 0, 0), "there are no names, though the flags say so"},
		"names of no tag buckets": {with(16, 0, 0, 0, 0, 0, 1, 0), "0 tag buckets, allowed: 1 to 4096"},
		"names and a 2":           {with(16, 0, 0, 0, 0, 0, 2, 0), "whether names have tag buckets is 2"},
		"many cells":              {with(16, 0, 0, 0, 0, 0, 0, 0xff, 0x03), "511 cells in the 0 bytes that are left"},
		"a far cell":              {with(16, 0, 0, 0, 0, 0, 0, 1, 0x80, 0x80, 2, 0, 0), "a cell is 32768 from the one before"},
		"a cell too many":         {with(16, 0, 0, 0, 0, 0, 0, 2, 0xff, 0xff, 1, 0, 0, 0, 0, 0), "the index of a cell is 32768"},
		"a cell for ever":         {with(16, 0, 0, 0, 0, 0, 0, 1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0), "minutes from now"},
		"no tag buckets":          {with(4, 0, 0, 0, 0, 0, 0), "0 tag buckets, allowed: 1 to 2048 if the flags say so"},
		"many tag buckets":        {with(4, 0, 0, 0, 0, 0, 0xff, 0x03), "511 tag buckets in the 0 bytes that are left"},
		"a version repeated": {append(
			with(4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1), 0, 0, 0), "is written out though it is that of the one before"},
		"seven windows": {
			append(with(4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7), make([]byte, 30)...),
			"7 windows of a tag bucket, allowed",
		},
		"nothing busy":         {with(8, 0, 0, 0, 0, 0), "nothing is busy, though the flags say so"},
		"a beginning of 2":     {with(0, 0, 0, 2, 0, 0), "the flag of the beginning is 2"},
		"an endless silence":   {with(0, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20, 0, 0, 0), "the silence before the beginning is 23058430092"},
		"nine documents":       {append(with(0, 0, 0, 0, 9), make([]byte, 60)...), "9 documents, allowed: at most 8"},
		"a million documents":  {with(0, 0, 0, 0, 0xc0, 0x84, 0x3d), "1000000 documents in the 0 bytes that are left"},
		"a document of none":   {with(0, 0, 0, 0, 1, 1, 'a', 0, 1, 'b', 0), "the version of document a is 0, allowed: 1 to"},
		"a body of nothing":    {with(0, 0, 0, 0, 1, 2, 'a', 'b', 1, 0, 0), "the body of document ab is 0 bytes, allowed: 1 to 4096"},
		"a document cut short": {with(0, 0, 0, 0, 1, 1, 'a', 1, 9, 'b'), "ends in the middle of a field"},
		"too long a body":      {with(0, 0, 0, 0, 1, 1, 'a', 1, 0x81, 0x20), "the body of a document has 4097 bytes, allowed: at most 4096"},
		"a million rows":       {with(0, 0, 0, 0, 0, 0xc0, 0x84, 0x3d), "1000000 rows in the 0 bytes that are left"},
		"a long number":        {with(0, 0, 0, 0, 0, 0x80, 0x00), "not a number in its shortest form"},
		"an endless number":    {append(with(0, 0, 0, 0, 0), bytes.Repeat([]byte{0xff}, 11)...), "not a number in its shortest form"},
		"an unstamped nobody":  {append(bytes.Clone(small[:end-1]), 1, 0, 0, 0, 0, 0, 0), "the unstamped row is number 1 of 0"},
		"empty permits":        {with(2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), "there are no permits"},
		"a string beyond most": {append([]byte("NT\x01"), 0xff, 0xff, 0x03), "the store's identity has 65535 bytes, allowed: at most 512"},
		"a number cut short":   {small[:len(small)-1], "ends in the middle of a field"},
		"a string cut short":   {append([]byte("NT\x01"), 9, 'x'), "ends in the middle of a field"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseRecord(tt.b)
			require.ErrorIs(t, err, ErrWrongAnswer)
			require.ErrorContains(t, err, tt.want)
		})
	}
	for n := range good {
		_, err := ParseRecord(good[:n])
		require.ErrorIs(t, err, ErrWrongAnswer, "cut after %d bytes", n)
	}
}

// No request is to blame for what the store holds, so the error is no *RequestError.
func TestParseRecordBlamesNoRequest(t *testing.T) {
	b := bytes.Replace(written(t, fullRecord()), []byte("max=10 \xff"), []byte("max=10 \x00"), 1)
	_, err := ParseRecord(b)
	require.ErrorIs(t, err, ErrWrongAnswer)
	require.ErrorContains(t, err, "the note is")
	var request *RequestError
	require.NotErrorAs(t, err, &request)
}
