package driver

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// A record has no number that no store writes, and what can be written can be read.
func TestBoundsOfRecords(t *testing.T) {
	check := func(r *Record) error {
		b, err := r.AppendBinary(nil)
		if err != nil {
			return err
		}
		got, err := ParseRecord(b)
		require.NoError(t, err)
		require.Equal(t, r, got)
		return nil
	}
	good := func() *Record {
		return &Record{
			Revision: 1, Lease: MinLease,
			Rows: []Row{{
				RowKey: RowKey{"a", "1"}, Seq: 1, LastSeen: 5,
				Holding: Holding{Busy: "x", TagClaims: []TagClaim{{Key: 1, Demand: 1}, {Key: 9, Demand: 1}}},
			}},
			Permits:    Permits{Pending: pendingReservation{Count: 1}, Recent: make([]reservation, 1)},
			TagBuckets: []TagBucket{{Key: 5, Full: 1000, Spent: []Spent{{Start: 10, End: 20}, {Start: 30, End: 40}}}},
			Documents:  []Document{{"a", 1, []byte("x")}},
			Names:      Names{Cells: []Cell{{Index: 2}, {Index: 4}, {Index: wire.FirstPaid + 4}}},
		}
	}
	whole := int64(Whole)
	type b = bound[Record]
	requireBounds(t, good, check,
		b{"identity", 0, maxIdentityBytes, func(r *Record, n int64) { r.Store = atLeastNothing(r, n) }},
		b{"cause", 0, maxCauseBytes, func(r *Record, n int64) { r.FrozenBy = FreezeCause(atLeastNothing(r, n)) }},
		b{"revision", 1, maxRevision, func(r *Record, n int64) { r.Revision = uint64(n) }},
		b{"clock", 0, wire.MaxMicros, func(r *Record, n int64) { r.Clock = n }},
		b{"wall", -wire.MaxMicros, wire.MaxMicros, func(r *Record, n int64) { r.Wall = n }},
		b{"frozen-until", -wire.MaxMicros, wire.MaxMicros, func(r *Record, n int64) { r.FrozenUntil = n }},
		b{"frozen-since", -wire.MaxMicros, wire.MaxMicros, func(r *Record, n int64) { r.FrozenSince = n }},
		b{"lease", int64(time.Millisecond), int64(MaxLease), func(r *Record, n int64) { r.Lease = time.Duration(n) }},
		b{"beginning", 0, wire.MaxMicros, func(r *Record, n int64) { r.Epoch = n }},
		b{"silence", 0, maxSilence.Microseconds(), func(r *Record, n int64) { r.Silence = time.Duration(n) * time.Microsecond }},
		b{"ID", 1, wire.MaxNameBytes, func(r *Record, n int64) { r.Rows[0].ID = letters(n) }},
		b{"state", 0, int64(RowLeft), func(r *Record, n int64) { r.Rows[0].State = RowState(n) }},
		b{"last-seen", 0, wire.MaxMicros, func(r *Record, n int64) { r.Rows[0].LastSeen = n }},
		b{"claim", 0, whole, func(r *Record, n int64) { r.Rows[0].Claim = Share(n) }},
		b{"in use", 0, whole, func(r *Record, n int64) { r.Rows[0].InUse = Share(n) }},
		b{"answered", 0, whole, func(r *Record, n int64) { r.Rows[0].Answered = Share(n) }},
		b{"demand", 0, whole, func(r *Record, n int64) { r.Rows[0].Demand = Share(n) }},
		b{"pool size", 0, maxPoolSize, func(r *Record, n int64) { r.Rows[0].PoolSize = int(n) }},
		b{"note", 0, wire.MaxNoteBytes, func(r *Record, n int64) { r.Rows[0].Note = atLeastNothing(r, n) }},
		b{"busy", 0, wire.MaxBusyBytes, func(r *Record, n int64) { r.Rows[0].Busy = atLeastNothing(r, n) }},
		b{"slots in use", 0, wire.MaxTokens, func(r *Record, n int64) { r.Rows[0].TagClaims[0].InUse = n }},
		b{"slots granted", 0, wire.MaxTokens, func(r *Record, n int64) { r.Rows[0].TagClaims[0].Granted = n }},
		b{"demand for slots", 1, wire.MaxTokens, func(r *Record, n int64) { r.Rows[0].TagClaims[0].Demand = n }},
		b{"key of a tag with slots", 2, 8, func(r *Record, n int64) {
			r.Rows[0].TagClaims = []TagClaim{{Key: 1, Demand: 1}, {Key: uint64(n), Demand: 1}, {Key: 9, Demand: 1}}
		}},
		b{"spacing-until", 0, wire.MaxMicros, func(r *Record, n int64) { r.Permits.SpacingUntil = n }},
		b{"strict-until", 0, wire.MaxMicros, func(r *Record, n int64) { r.Permits.StrictUntil = n }},
		b{"shares-until", 0, wire.MaxMicros, func(r *Record, n int64) { r.Permits.SharesUntil = n }},
		b{"newest slot", 0, maxNanos, func(r *Record, n int64) { r.Permits.Last = n }},
		b{"hold", 0, wire.MaxMicros, func(r *Record, n int64) { r.Permits.Hold = n }},
		b{"held", 0, wire.MaxMicros, func(r *Record, n int64) { r.Permits.Held = n }},
		b{"spacing", 0, int64(wire.MaxSpacing), func(r *Record, n int64) { r.Permits.Spacing = time.Duration(n) }},
		b{"step", 0, int64(maxStep), func(r *Record, n int64) { r.Permits.Step = time.Duration(n) }},
		b{"slots", 0, wire.MaxSlots, func(r *Record, n int64) { r.Permits.Count = int(n) }},
		b{"serial", 0, maxRevision, func(r *Record, n int64) { r.Permits.Serial = uint64(n) }},
		b{"pending slots", 0, wire.MaxSlots, func(r *Record, n int64) { r.Permits.Pending.Count = int(n) }},
		b{"pending step", 0, int64(maxStep), func(r *Record, n int64) { r.Permits.Pending.Step = time.Duration(n) }},
		b{"pending window", 0, int64(maxSpan), func(r *Record, n int64) { r.Permits.Pending.Window = time.Duration(n) }},
		b{"recent wait", 0, int64(maxSpan), func(r *Record, n int64) { r.Permits.Recent[0].Wait = time.Duration(n) }},
		b{"recent slots", 0, wire.MaxSlots, func(r *Record, n int64) { r.Permits.Recent[0].Count = int(n) }},
		b{"recent time", 0, wire.MaxMicros, func(r *Record, n int64) { r.Permits.Recent[0].Time = n }},
		b{"version of a bucket", 0, wire.MaxVersion, func(r *Record, n int64) { r.TagBuckets[0].Version = Version(n) }},
		b{"given out", 0, 1000, func(r *Record, n int64) { r.TagBuckets[0].Paid = n }},
		b{"full", 0, wire.MaxMicros, func(r *Record, n int64) { r.TagBuckets[0].Full = n }},
		b{"start of a window", 11, 39, func(r *Record, n int64) { r.TagBuckets[0].Spent[1].Start = n }},
		b{"first start of a window", -wire.MaxMicros, 19, func(r *Record, n int64) { r.TagBuckets[0].Spent[0].Start = n }},
		b{"end of a window", 31, wire.MaxMicros, func(r *Record, n int64) { r.TagBuckets[0].Spent[1].End = n }},
		b{"spent", 0, maxSpent, func(r *Record, n int64) { r.TagBuckets[0].Spent[0].Tokens = n }},
		b{"key of a bucket", 4, 6, func(r *Record, n int64) { r.TagBuckets = []TagBucket{{Key: 3}, {Key: uint64(n)}, {Key: 7}} }},
		b{"index of a cell", 3, wire.FirstPaid + 3, func(r *Record, n int64) { r.Names.Cells[1] = Cell{Index: int(n)} }},
		b{"last index of a cell", 5, wire.MaxCells - 1, func(r *Record, n int64) { r.Names.Cells[2] = Cell{Index: int(n)} }},
		b{"first index of a cell", 0, 3, func(r *Record, n int64) { r.Names.Cells[0] = Cell{Index: int(n)} }},
		b{"value of a cell", 0, maxSpent, func(r *Record, n int64) { r.Names.Cells[0].Value = n }},
		b{"time of a cell in ms", 0, wire.MaxMicros / 1000, func(r *Record, n int64) { r.Names.Cells[2].Value = n * 1000 }},
		b{"end of a cell in minutes", -wire.MaxMicros / minute, wire.MaxMicros / minute, func(r *Record, n int64) { r.Names.Cells[0].End = n * minute }},
	)
	for name, c := range map[string]struct {
		change func(r *Record)
		ok     bool
	}{
		"the most documents":      {func(r *Record) { r.Documents = documents(wire.MaxDocuments) }, true},
		"a document too many":     {func(r *Record) { r.Documents = documents(wire.MaxDocuments + 1) }, false},
		"the longest body":        {func(r *Record) { r.Documents[0].Body = []byte(letters(wire.MaxDocumentBytes)) }, true},
		"a longer body":           {func(r *Record) { r.Documents[0].Body = []byte(letters(wire.MaxDocumentBytes + 1)) }, false},
		"the longest name":        {func(r *Record) { r.Documents[0].Name = letters(maxDocumentName) }, true},
		"a longer name":           {func(r *Record) { r.Documents[0].Name = letters(maxDocumentName + 1) }, false},
		"the most reservations":   {func(r *Record) { r.Permits.Recent = make([]reservation, maxRecent) }, true},
		"a reservation too many":  {func(r *Record) { r.Permits.Recent = make([]reservation, maxRecent+1) }, false},
		"the most buckets":        {func(r *Record) { r.TagBuckets = buckets(wire.MaxTagBuckets) }, true},
		"a bucket too many":       {func(r *Record) { r.TagBuckets = buckets(wire.MaxTagBuckets + 1) }, false},
		"the most names":          {func(r *Record) { r.Names.TagBuckets = buckets(wire.MaxNames) }, true},
		"a name too many":         {func(r *Record) { r.Names.TagBuckets = buckets(wire.MaxNames + 1) }, false},
		"the most windows":        {func(r *Record) { r.TagBuckets[0].Spent = spans(maxWindows) }, true},
		"a window too many":       {func(r *Record) { r.TagBuckets[0].Spent = spans(maxWindows + 1) }, false},
		"the most tags of a row":  {func(r *Record) { r.Rows[0].TagClaims = claimsOf(slots(maxTagClaims)) }, true},
		"a tag too many":          {func(r *Record) { r.Rows[0].TagClaims = claimsOf(slots(maxTagClaims + 1)) }, false},
		"a part of a microsecond": {func(r *Record) { r.Silence = 1 }, false},
		"a part of a minute":      {func(r *Record) { r.Names.Cells[0].End = 1 }, false},
		"the same at the first":   {func(r *Record) { r.Names.Cells[2] = Cell{Index: wire.FirstPaid, Value: 1} }, false},
		"a part of a millisecond": {func(r *Record) { r.Names.Cells[2].Value = 1 }, false},
		"a row twice":             {func(r *Record) { r.Rows = append(r.Rows, r.Rows[0]) }, false},
		"a second incarnation":    {func(r *Record) { r.Rows = append(r.Rows, Row{RowKey: RowKey{"a", "2"}}) }, true},
		"an earlier incarnation":  {func(r *Record) { r.Rows = append(r.Rows, Row{RowKey: RowKey{"a", "0"}}) }, false},
		"an earlier ID":           {func(r *Record) { r.Rows = append(r.Rows, Row{RowKey: RowKey{"A", "2"}}) }, false},
		"nobody busy":             {func(r *Record) { r.Rows[0].Busy = "" }, true},
		"a slot granted alone":    {func(r *Record) { r.Rows[0].TagClaims = []TagClaim{{Granted: 1}} }, true},
		"a slot in use alone":     {func(r *Record) { r.Rows[0].TagClaims = []TagClaim{{InUse: 1}} }, true},
		"a tag of nothing":        {func(r *Record) { r.Rows[0].TagClaims = []TagClaim{{}} }, false},
	} {
		r := good()
		c.change(r)
		err := check(r)
		require.Equal(t, c.ok, err == nil, "%s: %v", name, err)
	}
	// Each fact about permits is written though it is the only one.
	facts := []Permits{
		{Issuing: true},
		{Spacing: 1},
		{SpacingUntil: 1},
		{StrictUntil: 1},
		{SharesUntil: 1},
		{Last: 1},
		{Step: 1},
		{Count: 1},
		{Serial: 1},
		{Hold: 1},
		{Held: 1},
		{Pending: pendingReservation{Count: 1}},
		{Pending: pendingReservation{Step: 1}},
		{Pending: pendingReservation{Window: 1}},
		{Recent: make([]reservation, 1)},
	}
	for i, p := range append(facts, Permits{}) {
		r := good()
		r.Permits = p
		require.NoError(t, check(r), i)
	}
}

// atLeastNothing returns a text of a length; for one below 0 it spoils the record.
func atLeastNothing(r *Record, n int64) string {
	if n < 0 {
		r.Revision = 0
	}
	return strings.Repeat("x", int(max(n, 0)))
}

func documents(n int) (all []Document) {
	for i := range n {
		all = append(all, Document{"a" + letters(int64(i)), 1, []byte("x")})
	}
	return all
}

func buckets(n int) (all []TagBucket) {
	for i := range n {
		all = append(all, TagBucket{Key: uint64(i)})
	}
	return all
}

func spans(n int) (all []Spent) {
	for i := range n {
		all = append(all, Spent{Start: int64(i), End: int64(i) + 1})
	}
	return all
}

// The lease of a step is that of the pool while it has rows, else the sender's.
func TestTheLeaseOfAStep(t *testing.T) {
	for _, tc := range []struct {
		rows  int
		lease time.Duration
		want  time.Duration
	}{{0, MinLease, MinLease}, {0, 0, MaxLease}, {1, MinLease, MaxLease}, {1, 0, MaxLease}} {
		r := &Record{Lease: MaxLease, Rows: make([]Row, tc.rows)}
		require.Equal(t, micros(wire.Removal(tc.want)), r.begin(tc.lease, At{Now: 1}).removal)
	}
}

// A freeze whose time was not known ends later than it looked, and what is held for it, too.
func TestAHoldMovesWithItsFreeze(t *testing.T) {
	freeze := micros(wire.Removal(MaxLease))
	until := 1_000_000 + freeze // as it looked at the time of the last step but one
	for held, want := range map[int64]int64{until: 500 + 20_000, until - 1: 500} {
		r := &Record{
			Revision: 1, Lease: MaxLease, Clock: 1_000_000, Wall: 5, FrozenUntil: until, FreezeUnstamped: true,
			Permits: Permits{Hold: 500, Held: held},
		}
		r.begin(0, At{Now: 5 + 20_000, Identity: "s", Deferred: true}).stampLast()
		require.Equal(t, until+20_000, r.FrozenUntil)
		require.Equal(t, want, r.Permits.Hold)
	}
}
