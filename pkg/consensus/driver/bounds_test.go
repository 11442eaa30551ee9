package driver

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// A bound is a field of a T whose values from least to most are accepted.
type bound[T any] struct {
	name        string
	least, most int64
	set         func(of *T, n int64)
}

// requireBounds requires that check accepts the least and the most of each field, and refuses what is beyond.
func requireBounds[T any](t *testing.T, good func() *T, check func(*T) error, all ...bound[T]) {
	t.Helper()
	require.NoError(t, check(good()))
	for _, b := range all {
		for n, ok := range map[int64]bool{b.least: true, b.most: true, b.least - 1: false, b.most + 1: false} { // the last may wrap
			v := good()
			b.set(v, n)
			require.Equal(t, ok, check(v) == nil, "%s is %d", b.name, n)
		}
	}
}

// letters returns a text of a length.
func letters(n int64) string { return strings.Repeat("x", int(max(n, 0))) }

// An answer holds no number that no store gives, nor one that no request may report.
func TestBoundsOfAnswers(t *testing.T) {
	good := func() *Answer {
		a := &Answer{Lease: MinLease, Draws: []Drawn{{Spent: []int64{1}}}, TagSlots: make([]TagGrant, 1)}
		a.Roster = []RosterRow{{ID: "a", TagClaims: []TagClaim{{Key: 5, Demand: 1}}}, {ID: "b"}}
		return a
	}
	whole := int64(Whole)
	type b = bound[Answer]
	requireBounds(t, good, (*Answer).Check,
		b{"share", 0, whole, func(a *Answer, n int64) { a.Share = Share(n) }},
		b{"closed", 0, whole, func(a *Answer, n int64) { a.Closed = Share(n) }},
		b{"lease", int64(time.Millisecond), int64(MaxLease), func(a *Answer, n int64) { a.Lease = time.Duration(n) }},
		b{"time", 0, wire.MaxMicros, func(a *Answer, n int64) { a.Time = n }},
		b{"revision", 0, maxRevision, func(a *Answer, n int64) { a.Revision = uint64(n) }},
		b{"freeze", 0, int64(wire.MaxReach), func(a *Answer, n int64) { a.Frozen = time.Duration(n) }},
		b{"epoch", 0, wire.MaxMicros, func(a *Answer, n int64) { a.Epoch = n }},
		b{"silence", 0, int64(wire.MaxReach), func(a *Answer, n int64) { a.Silence = time.Duration(n) }},
		b{"clock", 0, wire.MaxMicros, func(a *Answer, n int64) { a.Wall = n }},
		b{"live", 0, math.MaxInt64, func(a *Answer, n int64) { a.Live = int(n) }},
		b{"pool size", 0, maxPoolSize, func(a *Answer, n int64) { a.PoolSize = int(n) }},
		b{"claim of a row", 0, whole, func(a *Answer, n int64) { a.Roster[1].Claim = Share(n) }},
		b{"demand of a row", 0, whole, func(a *Answer, n int64) { a.Roster[1].Demand = Share(n) }},
		b{"pool size of a row", 0, maxPoolSize, func(a *Answer, n int64) { a.Roster[1].PoolSize = int(n) }},
		b{"ID of a row", 1, wire.MaxNameBytes, func(a *Answer, n int64) { a.Roster[1].ID = letters(n) }},
		b{"slots of a row", 0, wire.MaxTokens, func(a *Answer, n int64) { a.Roster[0].TagClaims[0].InUse = n }},
		b{"tokens drawn", 0, wire.MaxTokens, func(a *Answer, n int64) { a.Draws[0].Tokens = n }},
		b{"when they can be used", 0, int64(wire.MaxReach), func(a *Answer, n int64) { a.Draws[0].From = time.Duration(n) }},
		b{"when there are more", 0, int64(wire.MaxReach), func(a *Answer, n int64) { a.Draws[0].Again = time.Duration(n) }},
		b{"when they are earned", 0, wire.MaxMicros, func(a *Answer, n int64) { a.Draws[0].Paid = n }},
		b{"spent", 0, maxSpent, func(a *Answer, n int64) { a.Draws[0].Spent[0] = n }},
		b{"slots granted", 0, wire.MaxTokens, func(a *Answer, n int64) { a.TagSlots[0].Granted = n }},
		b{"slots claimed", 0, math.MaxInt64, func(a *Answer, n int64) { a.TagSlots[0].Claimed = n }},
		b{"slots others want", 0, math.MaxInt64, func(a *Answer, n int64) { a.TagSlots[0].Demand = n }},
	)
	for name, spoil := range map[string]func(a *Answer){
		"a lack that is none": func(a *Answer) { a.Draws[0].Lack = LackFull + 1 },
		"too many budgets":    func(a *Answer) { a.Draws[0].Spent = make([]int64, wire.MaxBudgets+1) },
		"too many draws":      func(a *Answer) { a.Draws = make([]Drawn, wire.MaxDraws+1) },
		"too much is busy":    func(a *Answer) { a.Roster[1].Busy = letters(wire.MaxBusyBytes + 1) },
	} {
		a := good()
		spoil(a)
		require.ErrorIs(t, a.Check(), ErrWrongAnswer, name)
		require.Equal(t, name != "too much is busy", CheckLoaded(nil, a.Roster) == nil, name)
	}
	most := good()
	most.Draws, most.Roster[1].Busy = make([]Drawn, wire.MaxDraws), letters(wire.MaxBusyBytes)
	most.Draws[0] = Drawn{Lack: LackFull, Spent: make([]int64, wire.MaxBudgets)}
	for i := range 2 * wire.MaxDocuments { // as many are there, and as many are not
		most.Documents = append(most.Documents, Document{Name: "a" + letters(int64(i))})
	}
	require.NoError(t, most.Check())
	require.NoError(t, CheckLoaded(nil, most.Roster))
	for status := Granted - 1; status <= Behind+1; status++ {
		a := &Answer{Status: status} // whose lease no granted answer has
		err := a.Check()
		require.Equal(t, status > Granted && status <= Behind, err == nil, status)
		require.True(t, err == nil || errors.Is(err, ErrWrongAnswer))
	}
}

func TestBoundsOfReservations(t *testing.T) {
	type b = bound[Reserved]
	requireBounds(t, func() *Reserved { return &Reserved{} }, func(r *Reserved) error { return r.Check(8) },
		b{"count", 0, 8, func(r *Reserved, n int64) { r.Count = int(n) }},
		b{"wait", 0, int64(wire.MaxReach), func(r *Reserved, n int64) { r.Wait = time.Duration(n) }},
		b{"spacing", 0, int64(maxStep), func(r *Reserved, n int64) { r.Spacing = time.Duration(n) }},
		b{"retry", 0, int64(wire.MaxReach), func(r *Reserved, n int64) { r.Retry = time.Duration(n) }},
		b{"freeze", 0, int64(wire.MaxReach), func(r *Reserved, n int64) { r.Frozen = time.Duration(n) }},
		b{"name", 0, maxRevision, func(r *Reserved, n int64) { r.Last = n }},
		b{"time", 0, wire.MaxMicros, func(r *Reserved, n int64) { r.Time = n }},
		b{"revision", 0, maxRevision, func(r *Reserved, n int64) { r.Revision = uint64(n) }},
	)
	type q = bound[Reserve]
	good := func() *Reserve { return &Reserve{Pool: "p", Count: 1, Spacing: time.Second, Lease: MinLease} }
	requireBounds(t, good, (*Reserve).Validate,
		q{"pool", 1, wire.MaxNameBytes, func(r *Reserve, n int64) { r.Pool = letters(n) }},
		q{"count", 0, wire.MaxSlots, func(r *Reserve, n int64) { r.Count = int(n) }},
		q{"spacing", int64(wire.MinSpacing), int64(wire.MaxSpacing), func(r *Reserve, n int64) { r.Spacing = time.Duration(n) }},
		q{"ahead", 0, wire.MaxAhead, func(r *Reserve, n int64) { r.Ahead = int(n) }},
		q{"revision", 0, maxRevision, func(r *Reserve, n int64) { r.Revision = uint64(n) }},
		q{"unused", 0, wire.MaxSlots, func(r *Reserve, n int64) { r.Unused = int(n) }},
		q{"return", 0, math.MaxInt64, func(r *Reserve, n int64) { r.Return = n }},
		q{"lease in ms", 1, MaxLease.Milliseconds(), func(r *Reserve, n int64) { r.Lease = time.Duration(n) * time.Millisecond }},
	)
	odd := good()
	odd.Lease++
	require.Error(t, odd.Validate(), "no whole milliseconds")
}

// A request holds no number from which a store's would wrap.
func TestBoundsOfRequests(t *testing.T) {
	good := func() *Request {
		r := follow(Report{TagSlots: []TagSlots{{Demand: 1}}})
		r.Draws = []Draw{{Key: 1, Total: 1, Per: time.Second, Budgets: []BudgetDraw{{Start: 1, End: 2}}}, {Key: 2}}
		r.LastSeq, r.Seq, r.Spacing = 1000, 2000, time.Second
		return &r
	}
	whole := int64(Whole)
	type b = bound[Request]
	requireBounds(t, good, (*Request).Validate,
		b{"unanswered", 1001, 1999, func(r *Request, n int64) { r.Unanswered = []Ticket{{Seq: uint64(n)}} }},
		b{"a second one unanswered", 1502, 1999, func(r *Request, n int64) { r.Unanswered = []Ticket{{Seq: 1501}, {Seq: uint64(n)}} }},
		b{"recalled", 0, 999, func(r *Request, n int64) { r.Recalled.Seq = uint64(n) }},
		b{"last time", 0, wire.MaxMicros, func(r *Request, n int64) { r.LastTime = n }},
		b{"revision", 0, maxRevision, func(r *Request, n int64) { r.Revision = uint64(n) }},
		b{"lease in ms", 1, MaxLease.Milliseconds(), func(r *Request, n int64) { r.Lease = time.Duration(n) * time.Millisecond }},
		b{"spacing", int64(wire.MinSpacing), int64(wire.MaxSpacing), func(r *Request, n int64) { r.Spacing = time.Duration(n) }},
		b{"reach", 0, int64(wire.MaxReach), func(r *Request, n int64) { r.Reach = time.Duration(n) }},
		b{"outlasts", 0, int64(wire.MaxOutlasts), func(r *Request, n int64) { r.Outlasts = time.Duration(n) }},
		b{"in use", 0, whole, func(r *Request, n int64) { r.InUse = Share(n) }},
		b{"wanted", 0, whole, func(r *Request, n int64) { r.Wanted = Share(n) }},
		b{"demand", 0, whole, func(r *Request, n int64) { r.Demand = Share(n) }},
		b{"pool size", 0, maxPoolSize, func(r *Request, n int64) { r.PoolSize = int(n) }},
		b{"total", 0, wire.MaxTokens, func(r *Request, n int64) { r.Draws[0].Total = n }},
		b{"burst", 0, wire.MaxTokens, func(r *Request, n int64) { r.Draws[0].Burst = n }},
		b{"ask", 0, wire.MaxTokens, func(r *Request, n int64) { r.Draws[0].Ask = n }},
		b{"back", 0, wire.MaxTokens, func(r *Request, n int64) { r.Draws[0].Back = n }},
		b{"owed", 0, wire.MaxTokens, func(r *Request, n int64) { r.Draws[0].Owed = n }},
		b{"ahead", 0, int64(wire.MaxReach), func(r *Request, n int64) { r.Draws[0].Ahead = time.Duration(n) }},
		b{"version", 0, wire.MaxVersion, func(r *Request, n int64) { r.Draws[0].Version = Version(n) }},
		b{"per in us", wire.MinPer.Microseconds(), wire.MaxSpacing.Microseconds(), func(r *Request, n int64) {
			r.Draws[0].Per = time.Duration(n) * time.Microsecond
		}},
		b{"per without a total", 0, wire.MaxSpacing.Microseconds(), func(r *Request, n int64) { r.Draws[1].Per = time.Duration(n) * time.Microsecond }},
		b{"amount", 0, wire.MaxAmount, func(r *Request, n int64) { r.Draws[0].Budgets[0].Amount = n }},
		b{"seen", 0, maxSpent, func(r *Request, n int64) { r.Draws[0].Budgets[0].Seen = n }},
		b{"start", 0, 1, func(r *Request, n int64) { r.Draws[0].Budgets[0].Start = n }},
		b{"end", 2, maxWindowEnd, func(r *Request, n int64) { r.Draws[0].Budgets[0].End = n }},
		b{"slots in use", 0, wire.MaxTokens, func(r *Request, n int64) { r.TagSlots[0].InUse = n }},
		b{"slots wanted", 0, wire.MaxTokens, func(r *Request, n int64) { r.TagSlots[0].Wanted = n }},
		b{"slots it would use", 1, wire.MaxTokens, func(r *Request, n int64) { r.TagSlots[0].Demand = n }},
		b{"slots of a tag", 0, wire.MaxTokens, func(r *Request, n int64) { r.TagSlots[0].Total = n }},
	)
	for name, c := range map[string]struct {
		change func(r *Request)
		ok     bool
	}{
		"the least number":         {func(r *Request) { r.Seq, r.LastSeq = 1, 0 }, true},
		"number 0":                 {func(r *Request) { r.Seq, r.LastSeq = 0, 0 }, false},
		"the number of the last":   {func(r *Request) { r.Seq = r.LastSeq }, false},
		"the next number":          {func(r *Request) { r.Seq = r.LastSeq + 1 }, true},
		"the most unanswered":      {func(r *Request) { r.Unanswered = unanswered(wire.MaxUnanswered) }, true},
		"one unanswered too many":  {func(r *Request) { r.Unanswered = unanswered(wire.MaxUnanswered + 1) }, false},
		"the most draws":           {func(r *Request) { r.Draws = draws(wire.MaxDraws) }, true},
		"a draw too many":          {func(r *Request) { r.Draws = draws(wire.MaxDraws + 1) }, false},
		"a key twice":              {func(r *Request) { r.Draws = append(r.Draws, Draw{Key: 1}) }, false},
		"the most budgets":         {func(r *Request) { r.Draws[0].Budgets = windows(wire.MaxBudgets) }, true},
		"a budget too many":        {func(r *Request) { r.Draws[0].Budgets = windows(wire.MaxBudgets + 1) }, false},
		"the longest busy":         {func(r *Request) { r.Busy = letters(wire.MaxBusyBytes) }, true},
		"a longer busy":            {func(r *Request) { r.Busy = letters(wire.MaxBusyBytes + 1) }, false},
		"the longest note":         {func(r *Request) { r.Note = letters(wire.MaxNoteBytes) }, true},
		"a longer note":            {func(r *Request) { r.Note = letters(wire.MaxNoteBytes + 1) }, false},
		"a note with NUL":          {func(r *Request) { r.Note = "a\x00" }, false},
		"a part of a microsecond":  {func(r *Request) { r.Draws[0].Per++ }, false},
		"a part of a millisecond":  {func(r *Request) { r.Lease++ }, false},
		"no spacing":               {func(r *Request) { r.Spacing = 0 }, true},
		"strict":                   {func(r *Request) { r.Strict = true }, true},
		"strict without a spacing": {func(r *Request) { r.Strict, r.Spacing = true, 0 }, false},
		"a spacing by a document":  {spacingBy("limit", 1), true},
		"by one without a version": {spacingBy("limit", 0), false},
		"by one that isn't there":  {func(r *Request) { r.SpacingBy = "limit" }, false},
		"without a spacing":        {func(r *Request) { spacingBy("limit", 1)(r); r.Spacing = 0 }, false},
		"slots by no document":     {func(r *Request) { r.TagSlotsBy = "limit" }, false},
		"slots by a document":      {func(r *Request) { r.TagSlotsBy, r.Documents = "limit", []DocumentReport{{Name: "limit"}} }, true},
		"the most documents":       {func(r *Request) { r.Documents = reports(wire.MaxDocuments) }, true},
		"a document too many":      {func(r *Request) { r.Documents = reports(wire.MaxDocuments + 1) }, false},
		"the most deaths":          {func(r *Request) { r.Dead = deaths(wire.MaxDead) }, true},
		"a death too many":         {func(r *Request) { r.Dead = deaths(wire.MaxDead + 1) }, false},
		"its own death":            {func(r *Request) { r.Dead = []Death{{Incarnation: r.Incarnation}} }, false},
		"a death twice":            {func(r *Request) { r.Dead = append(deaths(1), deaths(1)...) }, false},
		"a death out of order": {func(r *Request) {
			r.Dead = []Death{{Incarnation: "d", Last: Ticket{Seq: 5}, Unanswered: []Ticket{{Seq: 5}}}}
		}, false},
		"a death in order": {func(r *Request) {
			r.Dead = []Death{{Incarnation: "d", Last: Ticket{Seq: 5}, Unanswered: []Ticket{{Seq: 6}}}}
		}, true},
		"the most tags with slots":   {func(r *Request) { r.TagSlots = slots(wire.MaxTagSlots) }, true},
		"a tag with slots too many":  {func(r *Request) { r.TagSlots = slots(wire.MaxTagSlots + 1) }, false},
		"a tag in use alone":         {func(r *Request) { r.TagSlots = []TagSlots{{InUse: 1}} }, true},
		"a tag of nothing":           {func(r *Request) { r.TagSlots = []TagSlots{{Wanted: 1}} }, false},
		"tags with slots that fall":  {func(r *Request) { r.TagSlots = []TagSlots{{Key: 2, InUse: 1}, {Key: 1, InUse: 1}} }, false},
		"a tag with slots, repeated": {func(r *Request) { r.TagSlots = []TagSlots{{Key: 2, InUse: 1}, {Key: 2, InUse: 1}} }, false},
	} {
		r := good()
		c.change(r)
		err := r.Validate()
		require.Equal(t, c.ok, err == nil, "%s: %v", name, err)
		var bad *RequestError
		require.True(t, err == nil || errors.As(err, &bad), name)
	}
}

func spacingBy(name string, version Version) func(r *Request) {
	return func(r *Request) { r.SpacingBy, r.Documents = name, []DocumentReport{{Name: name, Version: version}} }
}

func unanswered(n int) (all []Ticket) {
	for i := range n {
		all = append(all, Ticket{Seq: uint64(1001 + i)})
	}
	return all
}

func draws(n int) (all []Draw) {
	for i := range n {
		all = append(all, Draw{Key: uint64(i)})
	}
	return all
}

func windows(n int) (all []BudgetDraw) {
	for i := range n {
		all = append(all, BudgetDraw{Start: int64(i), End: int64(i) + 1})
	}
	return all
}

func reports(n int) (all []DocumentReport) {
	for i := range n {
		all = append(all, DocumentReport{Name: "a" + letters(int64(i))})
	}
	return all
}

func deaths(n int) (all []Death) {
	for i := range n {
		all = append(all, Death{Incarnation: "dead" + letters(int64(i))})
	}
	return all
}

func slots(n int) (all []TagSlots) {
	for i := range n {
		all = append(all, TagSlots{Key: uint64(i), InUse: 1})
	}
	return all
}

func TestBoundsOfLeaves(t *testing.T) {
	type b = bound[Leave]
	requireBounds(t, func() *Leave { return &Leave{Pool: "p", ID: "a", Incarnation: "i", Seq: 20, LastSeq: 10} }, (*Leave).Validate,
		b{"ID", 1, wire.MaxNameBytes, func(l *Leave, n int64) { l.ID = letters(n) }},
		b{"incarnation", 1, wire.MaxNameBytes, func(l *Leave, n int64) { l.Incarnation = letters(n) }},
		b{"last", 0, 19, func(l *Leave, n int64) { l.LastSeq = uint64(n) }},
		b{"unanswered", 11, 19, func(l *Leave, n int64) { l.Unanswered = []Ticket{{Seq: uint64(n)}} }},
	)
	require.Error(t, (&Leave{Pool: "p", ID: "a", Incarnation: "i"}).Validate(), "request 0")
}
