package driver

import (
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// Sync is one sync on the store's side: it changes the record as the request reports and returns the answer. The request must be valid. The
// steps are those of the package documentation, "One sync".
//
// changed reports whether the record changed and must be written back. A repeated request changes nothing. A refused one changes at most
// the clock, the freeze, silent rows, and the state or the claim of its own row.
func (r *Record) Sync(req *Request, at At) (ans Answer, changed bool) {
	st := r.begin(req.Lease, at)
	ans = Answer{Seq: req.Seq, Nonce: req.Nonce}
	verdict, row := st.judge(req)
	switch verdict {
	case verdictRepeat:
		st.fill(&ans, req, row)
		return ans, false
	case verdictLate, verdictRemoved:
		ans.Status = verdict.status()
		return ans, false
	case verdictReplaced:
		// Time goes on, or a replaced processor alone in its pool would wait for
		// ever for the one that replaced it and died.
		ans.Status = Replaced
		st.commit(nil, false)
		r.Revision++
		return ans, true
	case verdictBehind:
		ans.Status, ans.Newest = Behind, Ticket{row.Seq, row.Nonce}
		st.behind(req, row.RowKey)
		return ans, true
	case verdictClone:
		ans.Status = Cloned
		return ans, st.clone(req, row)
	case verdictAccept, verdictLostRow:
	}

	newest := row != nil && Ticket{row.Seq, row.Nonce} == Ticket{req.LastSeq, req.LastNonce}
	forgot, silence := verdict == verdictLostRow || r.Revision < req.Revision, st.silence()
	st.commit(req, verdict == verdictLostRow)
	if _, known := r.find(RowKey{req.ID, req.Incarnation}); forgot || !known {
		st.enterEpoch(forgot, silence)
	}
	st.row(req)
	st.bury(req)
	row = st.row(req) // where it stands now
	row.Seq, row.Nonce = req.Seq, req.Nonce
	st.stamp(row)
	row.report(&req.Report)
	st.notePermits(req)
	st.answer(row, req)
	st.grantTags(row, req)
	ans.Draws = st.granter(req, newest, forgot).serve()
	r.takeDocuments(req.Documents)
	r.Revision++
	st.fill(&ans, req, row)
	return ans, true
}

// behind records that the sender may use a share that the store has forgotten: nobody else may grow, and the facts count. The row's claim
// counts as well, because the row may be a clone's.
func (st *step) behind(req *Request, key RowKey) {
	st.commit(req, true)
	i, _ := st.rec.find(key)
	row := &st.rec.Rows[i]
	row.InUse = max(row.InUse, req.InUse)
	row.Claim = max(row.Claim, row.InUse)
	row.TagClaims = withFacts(row.TagClaims, req.TagSlots)
	st.rec.Revision++
}

// clone closes the row of an incarnation that two processes use. The claim stays for one removal time: both may draw on it. If the request
// knows of another or an older store, that counts all the same.
func (st *step) clone(req *Request, row *Row) (changed bool) {
	if row.State == RowCloned {
		return false
	}
	key := row.RowKey
	st.commit(req, false)
	i, _ := st.rec.find(key)
	st.rec.Rows[i].State = RowCloned
	st.rec.Revision++
	return true
}

// Leave frees the claims of an incarnation and leaves a tombstone, so that its late packets are known as such. changed is as in Sync.
func (r *Record) Leave(l *Leave, at At) (changed bool) {
	if r.Revision == 0 {
		return false
	}
	st := r.begin(r.Lease, at)
	i, ok := r.find(RowKey{l.ID, l.Incarnation})
	if !ok || r.Rows[i].State != RowLive || l.Seq <= r.Rows[i].Seq {
		return false
	}
	if row := &r.Rows[i]; !row.sentBy(Ticket{l.LastSeq, l.LastNonce}, l.Unanswered) {
		row.State = RowCloned // one of two processes leaves; the other may still draw
		r.Revision++
		return true
	}
	st.commit(nil, false)
	if i, ok = r.find(RowKey{l.ID, l.Incarnation}); ok {
		row := &r.Rows[i]
		row.State, row.Seq, row.Holding = RowLeft, l.Seq, Holding{}
		st.stamp(row)
	}
	r.Revision++
	return true
}

// A verdict is the outcome of a request.
type verdict int

const (
	verdictAccept  verdict = iota // record it
	verdictLostRow                // record it and freeze: the store forgot what it answered
	verdictBehind                 // freeze, and ask whose row this is
	verdictRepeat                 // the same request again
	verdictClone
	verdictLate
	verdictReplaced
	verdictRemoved
)

func (v verdict) status() Status {
	switch v {
	case verdictLate:
		return Late
	case verdictClone:
		return Cloned
	case verdictRemoved:
		return Removed
	default:
		return Granted
	}
}

// judge decides on a request by the requests before it, as the row of its incarnation shows them, if that is still there. It changes
// nothing.
func (st *step) judge(req *Request) (verdict, *Row) {
	i, ok := st.rec.find(RowKey{req.ID, req.Incarnation})
	if !ok || st.gone(&st.rec.Rows[i]) {
		return st.judgeUnknown(req), nil
	}
	row := &st.rec.Rows[i]
	switch row.State {
	case RowCloned:
		return verdictClone, row
	case RowReplaced, RowLeft:
		return st.judgeUnanswered(req), row
	case RowLive:
	}
	switch {
	case req.Seq == row.Seq && req.Nonce == row.Nonce:
		return verdictRepeat, row
	case req.Seq < row.Seq:
		return verdictLate, row
	case req.Seq == row.Seq:
		return verdictClone, row
	case req.LastSeq > row.Seq && req.Recalled == Ticket{row.Seq, row.Nonce}:
		return verdictLostRow, row
	case req.LastSeq > row.Seq:
		return verdictBehind, row
	case !row.sentBy(Ticket{req.LastSeq, req.LastNonce}, req.Unanswered):
		return verdictClone, row
	}
	return verdictAccept, row
}

// sentBy reports whether a process has sent the newest request on record: it took the answer to last, and has sent the unanswered ones
// since.
func (w *Row) sentBy(last Ticket, unanswered []Ticket) bool {
	newest := Ticket{w.Seq, w.Nonce}
	return newest == last || slices.Contains(unanswered, newest)
}

// judgeUnknown decides on a request of an incarnation that has no row (any more).
func (st *step) judgeUnknown(req *Request) verdict {
	if req.LastSeq == 0 {
		return verdictAccept
	}
	// The row was there when LastTime was answered. It can have been removed since only if a removal time has passed on this clock.
	if st.rec.Revision >= req.Revision && st.clock-req.LastTime >= st.removal {
		return st.judgeUnanswered(req)
	}
	return verdictLostRow
}

// judgeUnanswered decides on a request of an incarnation that gets no answers any more.
func (st *step) judgeUnanswered(req *Request) verdict {
	for i := range st.rec.Rows {
		row := &st.rec.Rows[i]
		if row.ID == req.ID && row.Incarnation != req.Incarnation && row.State == RowLive && !st.gone(row) {
			return verdictReplaced
		}
	}
	return verdictRemoved
}

// row returns the row of the request's incarnation, made if need be. A new
// incarnation closes every other one of its ID; their claims stay until removal.
func (st *step) row(req *Request) *Row {
	r := st.rec
	i, ok := r.find(RowKey{req.ID, req.Incarnation})
	if ok {
		return &r.Rows[i]
	}
	for j := range r.Rows {
		if r.Rows[j].ID != req.ID || r.Rows[j].State != RowLive {
			continue
		}
		r.Rows[j].State = RowReplaced
	}
	r.Rows = slices.Insert(r.Rows, i, Row{RowKey: RowKey{req.ID, req.Incarnation}})
	return &r.Rows[i]
}

// report records the facts first: what is reported in use is the claim, even when the total is above Whole.
func (w *Row) report(r *Report) {
	w.Holding = Holding{
		Claim: r.InUse, InUse: r.InUse, Demand: r.Demand, PoolSize: r.PoolSize, Note: r.Note, Busy: r.Busy, TagClaims: claimsOf(r.TagSlots),
	}
}

// answer grants a share as far as there is room.
func (st *step) answer(row *Row, req *Request) {
	room := max(Whole-(st.rec.Claims()-row.Claim), 0)
	row.Answered = min(Share(st.allowed(int64(req.InUse), int64(req.Wanted))), room)
	row.Claim = max(row.InUse, row.Answered)
}

// allowed returns how much of what is wanted the state of the pool allows. A frozen pool lets nothing grow, and one that issues permits grants
// nothing.
func (st *step) allowed(inUse, wanted int64) int64 {
	if st.frozen() {
		wanted = inUse
	}
	switch {
	case st.rec.Permits.Issuing:
		return 0
	case st.winding():
		return min(wanted, inUse)
	}
	return wanted
}

// fill writes a granted answer from the row as it is recorded.
func (st *step) fill(ans *Answer, req *Request, row *Row) {
	r := st.rec
	ans.Status = Granted
	ans.Time, ans.Revision, ans.Lease, ans.Wall = row.LastSeen, r.Revision, r.Lease, max(r.Wall, 0)
	if left := r.FrozenUntil - r.Clock; left > 0 {
		ans.Frozen, ans.FrozenBy = time.Duration(left)*time.Microsecond, r.FrozenBy
	}
	if !r.EpochUnstamped {
		ans.Epoch, ans.Silence = r.Epoch, r.Silence
	}
	ans.Documents = r.unreported(req.Documents)
	ans.Issuing = r.Permits.Issuing
	ans.Grant = r.Grant(ans.Time)
	ans.Share, ans.TagSlots = row.Answered, r.tagGrants(row, req.TagSlots)
}

// Grant returns the live processors as of a logical time, what other rows claim, and whether the live ones agree on the pool size. Its
// Share is 0.
func (r *Record) Grant(clock int64) (g Grant) {
	agreed := true
	g.Roster = make([]RosterRow, 0, len(r.Rows))
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.State != RowLive {
			g.Closed = min(g.Closed+row.Claim, Whole)
			continue
		}
		g.Live++
		agreed = agreed && (g.Live == 1 || row.PoolSize == g.PoolSize)
		g.PoolSize = max(g.PoolSize, row.PoolSize)
		silent := time.Duration(max(0, clock-row.LastSeen)) * time.Microsecond
		if row.RowKey == r.Unstamped { // it made the last step, whenever that was
			silent = 0
		}
		g.Roster = append(g.Roster, RosterRow{
			ID: row.ID, Claim: row.Claim, Demand: row.Demand, PoolSize: row.PoolSize, Note: row.Note, Busy: row.Busy,
			Silent: silent, Left: max(0, wire.Removal(r.Lease)-silent),
		})
	}
	g.Agreed = agreed && g.PoolSize == g.Live
	return g
}
