package driver

import (
	"bytes"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// allocated returns how many bytes f allocated.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Any bytes are an error, or the one form of a record; neither costs more memory
// than the bytes justify.
func FuzzParseRecord(f *testing.F) {
	full := written(f, fullRecord())
	small := written(f, smallRecord())
	f.Add(full)
	f.Add(full[:len(full)/2])
	f.Add(append(bytes.Clone(full), 'x'))
	f.Add(small)
	f.Add(append(bytes.Clone(small[:len(small)-1]), 0xff, 0xff, 0x03))                                            // 65,535 rows in no byte
	f.Add(append(append(bytes.Clone(small[:len(small)-1]), 0x64), bytes.Repeat([]byte{0x01}, minRowBytes*99)...)) // 100 in room for 99
	f.Add([]byte("NT\x02"))
	f.Add([]byte("value of another program"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var r *Record
		var err error
		cost := allocated(func() { r, err = ParseRecord(b) })
		require.LessOrEqual(t, cost, uint64(32<<10+16*len(b)))
		if err != nil {
			require.ErrorIs(t, err, ErrWrongAnswer)
			require.Nil(t, r)
			return
		}
		require.Equal(t, b, written(t, r), "a record has one form")
		again, err := ParseRecord(b)
		require.NoError(t, err)
		require.Equal(t, r, again)
		require.NotZero(t, r.Revision)
		require.True(t, slices.IsSortedFunc(r.Rows, func(a, b Row) int { return strings.Compare(a.ID+"\x00"+a.Incarnation, b.ID+"\x00"+b.Incarnation) }))
		for i := range r.Rows {
			require.NotEmpty(t, r.Rows[i].ID)
			require.LessOrEqual(t, r.Rows[i].Claim, Whole)
		}
		if r.Unstamped != (RowKey{}) {
			_, ok := r.find(r.Unstamped)
			require.True(t, ok)
		}
	})
}

// A dice makes values of bytes, so that the fuzzer has records and requests that
// are nearly always whole to change. When the bytes are used up all is 0.
type dice struct{ b []byte }

func (d *dice) byte() byte {
	if len(d.b) == 0 {
		return 0
	}
	c := d.b[0]
	d.b = d.b[1:]
	return c
}

// number is mostly small, and at times anything up to the largest.
func (d *dice) number() uint64 {
	switch c := d.byte(); {
	case c < 200:
		return uint64(c % 16)
	case c < 220:
		return uint64(d.byte())<<(d.byte()%64) + uint64(d.byte())
	case c < 240:
		return math.MaxUint64 - uint64(d.byte())
	default:
		return math.MaxInt64 - 8 + uint64(c%16)
	}
}

// share is 0 to Whole, often a round part of it.
func (d *dice) share() Share {
	c := d.byte()
	if c < 64 {
		return Whole * Share(c%9) / 8
	}
	return Share(uint64(c)<<24+uint64(d.byte())<<16+uint64(d.byte())<<8) % (Whole + 1)
}

func (d *dice) name() string { return string(rune('a' + d.byte()%4)) }

// The time at which the fuzzed steps are made.
const fuzzNow = int64(1_795_000_000_000_000)

// micros is a time that lies before or shortly after fuzzNow, by a few removal times.
func (d *dice) micros() int64 {
	return fuzzNow + (int64(d.byte())-250)*250_000
}

// record is one that ParseRecord takes.
func (d *dice) record() *Record {
	r := &Record{
		Store: d.name(), Revision: d.number(), Clock: d.micros(), Wall: d.micros(), FrozenUntil: d.micros(), FrozenSince: d.micros(),
		Lease: time.Duration(1+d.byte()%10) * time.Second, FreezeUnstamped: d.byte()%8 == 1,
	}
	r.Revision = min(max(r.Revision, 1), maxRevision)
	for range d.byte() % 8 {
		row := Row{
			RowKey: RowKey{d.name(), d.name()}, State: RowState(d.byte() % 5 % 4), Seq: d.number(), Nonce: uint64(d.byte() % 4), LastSeen: d.micros(),
		}
		row.Holding = Holding{InUse: d.share(), Answered: d.share(), Demand: d.share(), PoolSize: int(d.byte()), Note: d.note(), Busy: d.note()}
		row.Claim = max(row.InUse, row.Answered)
		if i, found := r.find(row.RowKey); !found {
			r.Rows = slices.Insert(r.Rows, i, row)
		}
	}
	r.Epoch, r.Silence, r.EpochUnstamped = d.micros(), time.Duration(d.byte())*time.Second, d.byte()%8 == 1
	for _, report := range d.documents() {
		if report.Version = min(max(report.Version, 1), wire.MaxVersion); len(report.Body) > 0 && len(report.Body) <= wire.MaxDocumentBytes {
			r.putDocument(&report)
		}
	}
	for range d.byte() % 4 {
		tagBucket := TagBucket{Key: uint64(d.byte()%4) << 62, Version: Version(d.byte() % 2), Paid: d.micros()}
		tagBucket.Full = tagBucket.Paid + int64(d.byte())*1000
		if d.byte()%2 == 1 {
			tagBucket.Spent = []Spent{{fuzzNow - 1000, fuzzNow + int64(d.byte()), int64(d.byte())}}
		}
		if i, found := findTagBucket(r.TagBuckets, tagBucket.Key); !found {
			r.TagBuckets = slices.Insert(r.TagBuckets, i, tagBucket)
		}
	}
	for key := range uint64(d.byte() % 4) {
		r.Names.TagBuckets = append(r.Names.TagBuckets, TagBucket{Key: key << 62, Paid: fuzzNow, Full: fuzzNow + int64(d.byte())})
		r.Names.Cells = append(r.Names.Cells, Cell{int(key) * wire.FirstPaid / 2, fuzzNow / minute * minute, int64(d.byte()) * millisecond})
	}
	if n := len(r.Rows); n > 0 && d.byte()%2 == 1 {
		r.Unstamped = r.Rows[int(d.byte())%n].RowKey
	}
	for i := range r.Rows {
		for key := range uint64(d.byte() % 4) {
			claim := TagClaim{key << 62, int64(d.byte() % 16), int64(d.byte() % 16), int64(d.byte() % 2)}
			if claim.Claim() > 0 {
				r.Rows[i].TagClaims = append(r.Rows[i].TagClaims, claim)
			}
		}
	}
	return r
}

// tickets are some requests, mostly between last and seq.
func (d *dice) tickets(last, seq uint64) []Ticket {
	var tickets []Ticket
	for range d.byte() % 5 % 4 {
		last += 1 + uint64(d.byte()%3)
		tickets = append(tickets, Ticket{last, uint64(d.byte() % 4)})
	}
	if d.byte() == 255 {
		tickets = append(tickets, make([]Ticket, 40)...)
	}
	if n := len(tickets); n > 0 && tickets[n-1].Seq >= seq && d.byte()%4 != 3 {
		return nil
	}
	return tickets
}

// request is mostly one that Validate takes.
func (d *dice) request() Request {
	r := Request{
		Pool: "p", ID: d.name(), Incarnation: d.name(), Seq: d.number(), Nonce: uint64(d.byte() % 4), LastSeq: d.number(), LastNonce: uint64(d.byte() % 4),
		LastTime: d.micros(), Revision: d.number(), Lease: time.Duration(1+d.byte()%10) * time.Second,
	}
	if r.LastSeq >= r.Seq && d.byte()%8 != 7 {
		r.Seq, r.LastSeq = max(r.Seq, r.LastSeq, 1), min(r.Seq, r.LastSeq)
		if r.LastSeq == r.Seq {
			r.LastSeq--
		}
	}
	r.Unanswered = d.tickets(r.LastSeq, r.Seq)
	if d.byte()%4 == 0 {
		r.Recalled = Ticket{d.number(), uint64(d.byte() % 4)}
	}
	r.Report = Report{InUse: d.share(), Wanted: d.share(), Demand: d.share(), PoolSize: int(d.byte()), Note: d.note(), Busy: d.note()}
	r.Documents, r.Draws = d.documents(), d.draws()
	_, _ = d.byte(), d.byte() // or the seeds on record would mean something else
	if d.byte()%2 == 1 {
		r.Outlasts = max(r.Outlasts, wire.MaxOutlasts)
	}
	for key := range uint64(d.byte() % 4) {
		r.TagSlots = append(r.TagSlots, TagSlots{key << 62, int64(d.byte() % 16), int64(d.number() % (wire.MaxTokens + 2)), 1, int64(d.byte() % 32)})
	}
	return r
}

// draws are some draws that Validate takes.
func (d *dice) draws() (draws []Draw) {
	for key := range uint64(d.byte() % 4) {
		draw := Draw{
			Key: key << 62, Version: Version(d.byte() % 3), Total: int64(d.number() % (wire.MaxTokens + 1)), Per: time.Duration(1+d.byte()) * wire.MinPer,
			Burst: int64(d.number() % (wire.MaxTokens + 1)), Ask: int64(d.number() % (wire.MaxTokens + 1)), Owed: int64(d.byte()) << (d.byte() % 23),
			Back: int64(d.byte()) << (d.byte() % 23), Ahead: time.Duration(d.number() % uint64(wire.MaxReach)),
		}
		for range d.byte() % 3 {
			_ = d.micros() // or the seeds on record would mean something else
			draw.Budgets = append(draw.Budgets, BudgetDraw{
				Amount: int64(d.number() % (wire.MaxAmount + 1)), Seen: int64(d.byte()),
				Start: fuzzNow - int64(d.byte())*10_000, End: fuzzNow + 1 + int64(d.byte())*10_000,
			})
		}
		draws = append(draws, draw)
	}
	return draws
}

func (d *dice) note() string { return strings.Repeat("n", int(d.byte()%4)) }

// documents are some reports, of which Validate takes most.
func (d *dice) documents() (reports []DocumentReport) {
	for i := range int(d.byte()%8) - 4 {
		r := DocumentReport{Name: string(rune('a' + i)), Version: Version(d.number()), Body: bytes.Repeat([]byte{d.byte()}, int(d.byte()%3))}
		switch d.byte() % 4 {
		case 0:
			r.Base = r.Version
		case 1:
			r.Base = Version(d.number())
		case 2:
			r.Base = max(r.Version, 1) - 1
		}
		reports = append(reports, r)
	}
	return reports
}

// at is the moment of a step.
func (d *dice) at() At {
	return At{
		Now: max(fuzzNow+(int64(d.byte())-64)*100_000, 0), Identity: []string{"a", "b", ""}[d.byte()%3],
		Remembers: []time.Duration{0, wire.Removal(MaxLease), 0, wire.Removal(MaxLease) + wire.MaxOutlasts}[d.byte()%4],
		Deferred:  d.byte()%2 == 1, Longest: []time.Duration{0, MaxLease, MinLease}[d.byte()%3],
	}
}

// copyOf is the same record by way of its binary form.
func copyOf(t *testing.T, r *Record) *Record {
	t.Helper()
	again, err := ParseRecord(written(t, r))
	require.NoError(t, err)
	return again
}

// otherClaims is the sum of the claims of all rows but one.
func otherClaims(r *Record, key RowKey) Share {
	sum := r.Claims()
	if i, ok := r.find(key); ok {
		sum -= r.Rows[i].Claim
	}
	return sum
}

// requireStep fails unless what a valid request has made of a record is right.
func requireStep(t *testing.T, before, after *Record, req *Request, at At, ans *Answer, changed bool) {
	t.Helper()
	require.Equal(t, req.Seq, ans.Seq)
	require.Equal(t, req.Nonce, ans.Nonce)
	if !changed {
		require.Equal(t, written(t, before), written(t, after), "%v", ans.Status)
	} else {
		require.Greater(t, after.Revision, before.Revision)
	}
	require.GreaterOrEqual(t, after.Clock, before.Clock, "time runs on")
	key := RowKey{req.ID, req.Incarnation}
	require.LessOrEqual(t, otherClaims(after, key), otherClaims(before, key), "a step lifts no claim of another")
	if ans.Status != Granted {
		require.Empty(t, ans.Grant)
		require.Empty(t, ans.Documents)
		require.Empty(t, ans.TagSlots)
		require.Equal(t, before.Documents, after.Documents)
		facts := Share(0)
		if ans.Status == Behind {
			facts = req.InUse // they count, whoever's row it is
		}
		require.LessOrEqual(t, after.Claims(), before.Claims()+facts, "%v", ans.Status)
		return
	}
	// The next request reports what this answer said.
	next := Request{
		Pool: req.Pool, ID: req.ID, Incarnation: req.Incarnation, Seq: req.Seq + 1, LastSeq: req.Seq, LastNonce: req.Nonce, LastTime: ans.Time,
		Revision: ans.Revision, Lease: req.Lease, Report: req.Report,
	}
	next.InUse, next.PoolSize = ans.Share, ans.Live
	next.TagSlots = slices.Clone(req.TagSlots)
	for i, g := range ans.TagSlots {
		next.TagSlots[i].InUse = g.Granted
	}
	require.Len(t, ans.Roster, ans.Live)
	require.True(t, slices.IsSortedFunc(ans.Roster, func(a, b RosterRow) int { return strings.Compare(a.ID, b.ID) }))
	if changed { // else it is a repeat, which is answered as before
		limit := req.Wanted
		if ans.Frozen > 0 || after.FreezeUnstamped {
			limit = req.InUse
		}
		require.LessOrEqual(t, ans.Share, limit, "a frozen pool lets no share grow")
		require.True(t, slices.ContainsFunc(ans.Roster, func(r RosterRow) bool { return r.ID == req.ID }))
	}
	if req.Seq < math.MaxUint64 {
		require.NoError(t, next.Validate(), "an answer can be reported back")
	}
	require.NoError(t, ans.Check())
	require.True(t, ans.Epoch >= 0 && ans.Silence >= 0)
	if changed {
		requireDraws(t, after, req, ans)
	}
	requireDocuments(t, before, after, req, ans)
	if changed {
		requireTagClaims(t, before, after, req, ans)
		require.LessOrEqual(t, after.Claims(), max(Whole, otherClaims(after, key)+req.InUse), "an answer never lifts the claims above the whole")
		if at.Identity != "" && before.Store != at.Identity {
			require.Positive(t, ans.Frozen, "another server has forgotten everything")
		}
	}
}

// requireDraws fails unless tag buckets give what was asked for at the most, and only what is earned and in no budget too much.
func requireDraws(t *testing.T, after *Record, req *Request, ans *Answer) {
	t.Helper()
	require.Len(t, ans.Draws, len(req.Draws))
	lead := wire.Interval(after.Lease, len(after.Rows)).Microseconds()
	for i, d := range req.Draws {
		got := ans.Draws[i]
		require.Equal(t, d.Key, got.Key)
		require.LessOrEqual(t, got.Tokens, d.Ask)
		require.Equal(t, got.Tokens < d.Ask, got.Lack != LackNothing && d.Ask > 0)
		require.False(t, got.Tokens > 0 && got.Lack > LackBudget)
		k, ok := findTagBucket(after.TagBuckets, d.Key)
		require.True(t, ok)
		if got.Tokens > 0 && d.Total > 0 {
			require.LessOrEqual(t, after.TagBuckets[k].Paid, after.Clock+max(lead, got.From.Microseconds()))
		}
		require.LessOrEqual(t, got.From, d.Ahead)
		for j, b := range d.Budgets {
			require.True(t, got.Tokens == 0 || got.Spent[j] <= b.Amount)
		}
	}
}

// requireDocuments fails unless no version falls, no two bodies have one version, and
// the sender knows after the answer what is on record.
func requireDocuments(t *testing.T, before, after *Record, req *Request, ans *Answer) {
	t.Helper()
	for _, d := range before.Documents {
		now := after.document(d.Name)
		require.GreaterOrEqual(t, now.Version, d.Version)
		if now.Version == d.Version {
			require.Equal(t, d, now)
		}
	}
	known := map[string]Document{}
	for _, r := range req.Documents {
		known[r.Name] = Document{r.Name, r.Version, r.Body}
	}
	for _, d := range ans.Documents {
		known[d.Name] = d
	}
	for _, d := range after.Documents {
		require.Equal(t, d.Version, known[d.Name].Version)
		if len(known[d.Name].Body) > 0 {
			require.Equal(t, d.Body, known[d.Name].Body)
		}
		delete(known, d.Name)
	}
	for _, d := range known {
		require.Zero(t, d.Version, "it is not on record")
	}
}

// Any request on any record is refused by Validate, or is a step that keeps what
// the protocol promises, and that can be written, read and repeated.
func FuzzSync(f *testing.F) {
	f.Add(written(f, fullRecord()), []byte{1, 0, 5, 1, 4, 1, 100, 3}, []byte("0123"))
	f.Add([]byte{0, 7, 250, 250, 0, 0, 9, 0, 3, 0, 0, 0, 4, 1, 250, 1, 4, 4, 8, 2}, []byte{0, 0, 5, 1, 4, 1, 250, 7, 9, 0, 0, 0}, []byte{100, 0, 0, 0, 1})
	for _, seed := range []string{"aaaaaaaaaaaaaaaa", "0123456789abcdefghijklmnopqrstuvwxyz", strings.Repeat("\x00\xc8\xd2\xfa", 20)} {
		for _, step := range []string{"", "abcdefgh", "\x00\xff\x01\xfe"} {
			f.Add([]byte(seed), []byte(seed+step), []byte(step))
		}
	}
	f.Fuzz(func(t *testing.T, record, request, moment []byte) {
		r, err := ParseRecord(record)
		if err != nil {
			r = (&dice{record}).record()
		}
		req, at := (&dice{request}).request(), (&dice{moment}).at()
		if err := req.Validate(); err != nil {
			var refused *RequestError
			require.ErrorAs(t, err, &refused)
			require.NotEmpty(t, refused.Field)
			require.Less(t, len(err.Error()), 400)
			return
		}
		if max(r.Revision, req.Revision) > maxRevision-4 || max(r.Clock, r.FrozenUntil) > 1<<59 {
			// Thousands of years from now. The step is refused when it is written.
			r.Sync(&req, at)
			_, _ = r.AppendBinary(nil)
			return
		}

		before := copyOf(t, r)
		ans, changed := r.Sync(&req, at)
		requireStep(t, before, copyOf(t, r), &req, at, &ans, changed)
		if changed && ans.Status == Granted {
			stepped := copyOf(t, r)
			again, changed := r.Sync(&req, at)
			require.False(t, changed, "a repeat changes nothing")
			ans.Draws = nil // what a repeat brings none of
			require.Equal(t, ans, again)
			require.Equal(t, stepped, copyOf(t, r))
		}

		left := copyOf(t, r)
		leave := Leave{Pool: req.Pool, ID: req.ID, Incarnation: req.Incarnation, Seq: req.Seq + 1, LastSeq: req.Seq, LastNonce: req.Nonce}
		if leave.Seq == 0 {
			require.Error(t, leave.Validate())
			return
		}
		changed = r.Leave(&leave, at)
		require.LessOrEqual(t, r.Claims(), left.Claims(), "leaving lifts no claim")
		if changed && ans.Status == Granted {
			i, ok := r.find(RowKey{req.ID, req.Incarnation})
			require.True(t, ok, "a tombstone is left")
			require.Equal(t, RowLeft, r.Rows[i].State)
			require.False(t, r.Rows[i].claims())
		}
		copyOf(t, r)
	})
}
