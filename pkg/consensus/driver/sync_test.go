package driver

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// The times of these tests: the record stands at t0, on both clocks.
const t0 = int64(1_800_000_000_000_000)

// after is a moment of a server that has kept its identity.
func after(d time.Duration) At {
	return At{Now: t0 + micros(d), Identity: "server", Longest: longest}
}

// standing returns a record at t0 with rows that were heard of at t0.
func standing(rows ...Row) *Record {
	r := &Record{Store: "server", Revision: 50, Clock: t0, Wall: t0, Lease: longest, Rows: rows}
	for i := range r.Rows {
		if r.Rows[i].LastSeen == 0 {
			r.Rows[i].LastSeen = t0
		}
	}
	return r
}

// holder is a live row whose newest request is #7 with nonce 700.
func holder(id, incarnation string, claim Share) Row {
	return Row{
		RowKey: RowKey{id, incarnation}, Seq: 7, Nonce: 700,
		Holding: Holding{Claim: claim, InUse: claim, Answered: claim, Demand: claim, PoolSize: 2},
	}
}

// closed is a row in another state.
func closed(state RowState, row Row) Row {
	row.State = state
	return row
}

// follow is a request of a/1 after the answer to #7.
func follow(report Report) Request {
	return Request{
		Pool: "pool", ID: "a", Incarnation: "1", Seq: 8, Nonce: 800, LastSeq: 7, LastNonce: 700,
		LastTime: t0, Revision: 50, Lease: longest, Report: report,
	}
}

// TestJudgement is about what becomes of a request of a/1, in a pool in which a
// has a row and b/1 has half of the limit.
func TestJudgement(t *testing.T) {
	type request struct {
		seq, nonce, lastSeq, lastNonce uint64
		unanswered                     []Ticket
	}
	// sent lists requests with the nonces that the numbers go with here.
	sent := func(from, to uint64) (tickets []Ticket) {
		for seq := from; seq <= to; seq++ {
			tickets = append(tickets, Ticket{seq, 100 * seq})
		}
		return tickets
	}
	live, second := holder("a", "1", half), holder("a", "2", 0)
	alone := []Row{live}
	for _, c := range []struct {
		name     string
		rows     []Row
		request  request
		recalled Ticket
		want     Status
		freeze   FreezeCause
	}{
		{"the next request", alone, request{8, 800, 7, 700, nil}, Ticket{}, Granted, ""},
		{"after lost requests", alone, request{12, 900, 7, 700, sent(8, 11)}, Ticket{}, Granted, ""},
		{"after a lost answer", alone, request{8, 800, 5, 500, sent(6, 7)}, Ticket{}, Granted, ""},
		{"again", alone, request{7, 700, 5, 500, nil}, Ticket{}, Granted, ""},
		{"older", alone, request{6, 600, 5, 500, nil}, Ticket{}, Late, ""},
		{"the same number, another nonce", alone, request{7, 701, 5, 500, nil}, Ticket{}, Cloned, ""},
		{"remembers an answer between the last two", alone, request{8, 800, 6, 600, nil}, Ticket{}, Cloned, ""},
		{"remembers an answer before the last two", alone, request{8, 800, 4, 400, nil}, Ticket{}, Cloned, ""},
		{"has sent others since the answer before the last", alone, request{9, 900, 5, 500, []Ticket{{6, 601}, {7, 701}, {8, 801}}}, Ticket{}, Cloned, ""},
		{"has sent others since the newest", alone, request{9, 900, 5, 500, sent(8, 8)}, Ticket{}, Cloned, ""},
		{"names as many as it can, the newest first", alone, request{39, 900, 5, 500, sent(7, 6+wire.MaxUnanswered)}, Ticket{}, Granted, ""},
		{"names as many as it can, and all are newer", alone, request{40, 900, 5, 500, sent(8, 7+wire.MaxUnanswered)}, Ticket{}, Cloned, ""},
		{"has had no answer, and sent the newest", alone, request{8, 800, 0, 0, sent(1, 7)}, Ticket{}, Granted, ""},
		{"remembers no answer", alone, request{8, 800, 0, 0, nil}, Ticket{}, Cloned, ""},
		{"remembers another nonce", alone, request{8, 800, 7, 701, nil}, Ticket{}, Cloned, ""},
		{"remembers the older nonce under the newer number", alone, request{8, 800, 7, 500, nil}, Ticket{}, Cloned, ""},
		{"remembers an answer that the row does not know", alone, request{9, 900, 8, 800, nil}, Ticket{7, 700}, Granted, FreezeLostRow},
		{"remembers a later answer, and has not been asked yet", alone, request{9, 900, 8, 800, nil}, Ticket{}, Behind, ""},
		{"recalls another nonce", alone, request{9, 900, 8, 800, nil}, Ticket{7, 701}, Behind, ""},
		{"recalls another number", alone, request{9, 900, 8, 800, nil}, Ticket{6, 700}, Behind, ""},
		{"recalls the newest, and has sent others since", alone, request{11, 900, 8, 800, sent(9, 10)}, Ticket{7, 700}, Granted, FreezeLostRow},

		{"closed because of a clone", []Row{closed(RowCloned, live)}, request{8, 800, 7, 700, nil}, Ticket{}, Cloned, ""},
		{"closed because of a clone, again", []Row{closed(RowCloned, live)}, request{7, 700, 5, 500, nil}, Ticket{}, Cloned, ""},
		{"left", []Row{closed(RowLeft, live)}, request{6, 600, 5, 500, nil}, Ticket{}, Removed, ""},
		{"left, and another incarnation is live", []Row{closed(RowLeft, live), second}, request{8, 800, 7, 700, nil}, Ticket{}, Replaced, ""},
		{"replaced", []Row{closed(RowReplaced, live), second}, request{8, 800, 7, 700, nil}, Ticket{}, Replaced, ""},
		{"replaced, again", []Row{closed(RowReplaced, live), second}, request{7, 700, 5, 500, nil}, Ticket{}, Replaced, ""},
		{"replaced by one that left", []Row{closed(RowReplaced, live), closed(RowLeft, second)}, request{8, 800, 7, 700, nil}, Ticket{}, Removed, ""},
		{
			"replaced by one that was replaced",
			[]Row{closed(RowReplaced, live), closed(RowReplaced, second), holder("a", "3", 0)},
			request{8, 800, 7, 700, nil},
			Ticket{},
			Replaced, "",
		},

		{"new", nil, request{1, 100, 0, 0, nil}, Ticket{}, Granted, ""},
		{"new, though not the first request", nil, request{4, 400, 0, 0, nil}, Ticket{}, Granted, ""},
		{"new beside an older incarnation", []Row{holder("a", "0", half)}, request{1, 100, 0, 0, nil}, Ticket{}, Granted, ""},
		{"remembers an answer, but has no row", nil, request{8, 800, 7, 700, nil}, Ticket{}, Granted, FreezeLostRow},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := standing(append(slices.Clone(c.rows), holder("b", "1", half))...)
			before := copyRecord(r)
			req := follow(Report{InUse: 0, Wanted: half})
			req.Seq, req.Nonce, req.LastSeq, req.LastNonce = c.request.seq, c.request.nonce, c.request.lastSeq, c.request.lastNonce
			req.Unanswered, req.Recalled = c.request.unanswered, c.recalled
			require.NoError(t, req.Validate())
			ans, changed := r.Sync(&req, after(time.Second))

			require.Equal(t, c.want, ans.Status)
			require.Equal(t, req.Seq, ans.Seq)
			require.Equal(t, req.Nonce, ans.Nonce)
			require.Equal(t, c.freeze, ans.FrozenBy)
			require.Equal(t, changed, r.Revision > before.Revision)
			if !changed {
				require.Equal(t, before, r, "nothing changes, not even the clock")
			}
			if c.want != Granted {
				want := Answer{Status: c.want, Seq: req.Seq, Nonce: req.Nonce}
				if c.want == Behind {
					want.Newest = Ticket{7, 700}
				}
				require.Equal(t, want, ans, "a refusal tells nothing else")
				require.Equal(t, c.want == Behind, r.FrozenBy == FreezeLostRow, "somebody holds what is not on record")
				require.Equal(t, before.Claims(), r.Claims(), "the claim stays")
				require.Equal(t, before.Rows[0].Seq, r.Rows[0].Seq)
			}
		})
	}
}

func TestNewIncarnationClosesTheOthersOfItsID(t *testing.T) {
	r := standing(closed(RowLeft, holder("a", "0", 0)), holder("a", "00", half), closed(RowCloned, holder("a", "2", half/2)), holder("b", "1", 0))
	req := follow(Report{Wanted: Whole})
	req.LastSeq, req.LastNonce = 0, 0
	ans, _ := r.Sync(&req, after(time.Second))
	require.Equal(t, half/2, ans.Share)
	states := map[RowKey]RowState{}
	for _, row := range r.Rows {
		states[row.RowKey] = row.State
	}
	require.Equal(t, map[RowKey]RowState{
		{"a", "0"}: RowLeft, {"a", "00"}: RowReplaced, {"a", "1"}: RowLive, {"a", "2"}: RowCloned, {"b", "1"}: RowLive,
	}, states)
	require.Equal(t, 2, ans.Live, "a and b")
	require.Equal(t, half+half/2, ans.Closed)
}

// A leave of one that cannot have sent the newest request comes from a clone. It does not speak for the other process, which may still draw.
func TestLeave(t *testing.T) {
	live, newest := holder("a", "1", half), []Ticket{{7, 700}}
	for _, c := range []struct {
		name    string
		row     Row
		leave   Leave
		changes bool
		want    RowState
	}{
		{"a live row", live, Leave{Seq: 8, LastSeq: 5, LastNonce: 500, Unanswered: newest}, true, RowLeft},
		{"older than the newest request", live, Leave{Seq: 6, LastSeq: 5, LastNonce: 500}, false, RowLive},
		{"under the number of the newest request", live, Leave{Seq: 7, LastSeq: 5, LastNonce: 500}, false, RowLive},
		{"a replaced row", closed(RowReplaced, live), Leave{Seq: 8, LastSeq: 5, LastNonce: 500}, false, RowReplaced},
		{"a cloned row", closed(RowCloned, live), Leave{Seq: 8, LastSeq: 5, LastNonce: 500}, false, RowCloned},
		{"a row that has left", closed(RowLeft, holder("a", "1", 0)), Leave{Seq: 8, LastSeq: 5, LastNonce: 500}, false, RowLeft},
		{"another incarnation", holder("a", "2", half), Leave{Seq: 8, LastSeq: 5, LastNonce: 500}, false, RowLive},
		{"another ID", holder("b", "1", half), Leave{Seq: 8, LastSeq: 5, LastNonce: 500}, false, RowLive},

		{"the answer to the newest request", live, Leave{Seq: 9, LastSeq: 7, LastNonce: 700}, true, RowLeft},
		{
			"an answer before, and the newest request", live,
			Leave{Seq: 9, LastSeq: 5, LastNonce: 500, Unanswered: []Ticket{{6, 600}, {7, 700}}},
			true, RowLeft,
		},
		{"an answer that the record has forgotten", live, Leave{Seq: 9, LastSeq: 8, LastNonce: 800}, true, RowCloned},
		{"no answer at all", live, Leave{Seq: 9}, true, RowCloned},
		{"an answer before", live, Leave{Seq: 9, LastSeq: 5, LastNonce: 500}, true, RowCloned},
		{
			"an answer before, and another request under the newest number", live,
			Leave{Seq: 9, LastSeq: 5, LastNonce: 500, Unanswered: []Ticket{{6, 600}, {7, 701}}},
			true, RowCloned,
		},
		{"the same number with another nonce", live, Leave{Seq: 9, LastSeq: 7, LastNonce: 701}, true, RowCloned},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := standing(c.row)
			before := copyRecord(r)
			c.leave.Pool, c.leave.ID, c.leave.Incarnation = "pool", "a", "1"
			require.NoError(t, c.leave.Validate())
			require.Equal(t, c.changes, r.Leave(&c.leave, after(time.Second)))
			require.Equal(t, c.want, r.Rows[0].State)
			switch {
			case !c.changes:
				require.Equal(t, before, r)
			case c.want == RowCloned:
				require.Equal(t, half, r.Claims(), "the claim stays until removal")
			default:
				require.Zero(t, r.Claims())
				require.Equal(t, c.leave.Seq, r.Rows[0].Seq)
				require.Equal(t, t0+micros(time.Second), r.Rows[0].LastSeen, "the tombstone stays for one removal time")
				require.Equal(t, before.Revision+1, r.Revision)
			}
		})
	}
	var none Record
	require.False(t, none.Leave(&Leave{Pool: "pool", ID: "a", Incarnation: "1", Seq: 1}, after(0)), "there is no pool")
	require.Equal(t, Record{}, none)
}

// sent33 is one unanswered request more than may be named.
func sent33() (tickets []Ticket) {
	for seq := range uint64(wire.MaxUnanswered + 1) {
		tickets = append(tickets, Ticket{Seq: 20 + seq})
	}
	return tickets
}

func TestValidateKeepsNumbersFromWrapping(t *testing.T) {
	for _, c := range []struct {
		field string
		spoil func(*Request)
	}{
		{"Revision", func(r *Request) { r.Revision = math.MaxUint64 }},
		{"LastTime", func(r *Request) { r.LastTime = math.MinInt64 }},
		{"LastTime", func(r *Request) { r.LastTime = math.MaxInt64 }},
		{"Unanswered", func(r *Request) { r.LastSeq, r.Unanswered = 5, []Ticket{{6, 1}, {6, 2}} }},
		{"Unanswered", func(r *Request) { r.LastSeq, r.Unanswered = 5, []Ticket{{5, 1}} }},
		{"Unanswered", func(r *Request) { r.Unanswered = []Ticket{{r.Seq, 1}} }},
		{"Unanswered", func(r *Request) { r.Seq, r.Unanswered = 100, sent33() }},
		{"Recalled", func(r *Request) { r.LastSeq, r.Recalled = 5, Ticket{5, 1} }},
	} {
		req := follow(Report{})
		require.NoError(t, req.Validate())
		c.spoil(&req)
		var bad *RequestError
		require.ErrorAs(t, req.Validate(), &bad)
		require.Equal(t, c.field, bad.Field)
	}
}

// A clone tells of a store that went back as well as its original does, for it
// draws on what the store has forgotten.
func TestCloneThatHasSeenANewerStoreFreezesThePool(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Request)
		cause  FreezeCause
	}{
		"a later revision": {func(r *Request) { r.LastNonce, r.Revision = 701, 99 }, FreezeRollback},
		"neither":          {func(r *Request) { r.LastNonce = 701 }, FreezeNone},
	} {
		t.Run(name, func(t *testing.T) {
			r := standing(holder("a", "1", half))
			req := follow(Report{InUse: half, Wanted: half})
			c.change(&req)
			ans, _ := r.Sync(&req, after(time.Second))
			require.Equal(t, Cloned, ans.Status)
			require.Equal(t, RowCloned, r.Rows[0].State)
			require.Equal(t, c.cause, r.FrozenBy)
			require.Equal(t, c.cause != FreezeNone, r.FrozenUntil > r.Clock)
			require.GreaterOrEqual(t, r.Revision, req.Revision)
		})
	}
}

// The death of an incarnation that is not on record, or has left, changes no row.
func TestDeathsOfOthersChangeNoRow(t *testing.T) {
	r := standing(holder("a", "2", half), closed(RowLeft, holder("a", "4", 0)))
	req := follow(Report{})
	req.Incarnation, req.LastSeq, req.LastNonce, req.LastTime = "9", 0, 0, 0
	req.Dead = []Death{{Incarnation: "1"}, {Incarnation: "3"}, {Incarnation: "4", Last: Ticket{7, 700}}}
	require.NoError(t, req.Validate())
	ans, _ := r.Sync(&req, after(time.Second))
	require.Equal(t, Granted, ans.Status)
	require.Equal(t, []RowState{RowReplaced, RowLeft, RowLive}, []RowState{r.Rows[0].State, r.Rows[1].State, r.Rows[2].State})
	require.Equal(t, half, r.Claims())
}
