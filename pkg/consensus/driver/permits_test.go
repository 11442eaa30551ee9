package driver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

func TestGivingBack(t *testing.T) {
	newest := Permits{Last: 5000, Step: 100, Count: 3, Serial: 7}
	for name, tc := range map[string]struct {
		is     Permits
		serial int64
		unused int
		want   Permits
	}{
		"the last slot":               {newest, 7, 1, Permits{Last: 4900, Step: 100, Count: 2, Serial: 9}},
		"no number of them":           {newest, 7, 0, Permits{Last: 4900, Step: 100, Count: 2, Serial: 9}},
		"all slots":                   {newest, 7, 3, Permits{Last: 4700, Step: 100}},
		"more than there were":        {newest, 7, 4, newest},
		"slots of another":            {newest, 8, 1, newest},
		"slots of nobody":             {Permits{Last: 5000, Step: 100, Count: 3}, 0, 1, Permits{Last: 5000, Step: 100, Count: 3}},
		"slots from before all times": {Permits{Last: 50, Step: 100, Count: 2, Serial: 7}, 7, 1, Permits{Step: 100, Count: 1, Serial: 9}},
	} {
		is := tc.is
		require.Equal(t, tc.is.Last != tc.want.Last, is.giveBack(tc.serial, tc.unused, 9), name)
		require.Equal(t, tc.want, is, name)
	}
}

// The permits claim what no processor does, while they are issued and nothing is frozen.
func TestTheClaimOfPermits(t *testing.T) {
	for name, tc := range map[string]struct {
		issuing     bool
		frozenUntil int64
		claims      Share
		want        Share
	}{
		"all":                {true, 0, 0, Whole},
		"the rest":           {true, 0, Whole / 4, Whole - Whole/4},
		"nothing is left":    {true, 0, Whole, 0},
		"more than there is": {true, 0, Whole + 5, 0},
		"frozen":             {true, t0 + 1, 0, 0},
		"frozen until now":   {true, t0, 0, Whole},
		"not issued":         {false, 0, 0, 0},
	} {
		r := standing(holder("a", "1", tc.claims))
		r.Permits.Issuing, r.FrozenUntil = tc.issuing, tc.frozenUntil
		require.Equal(t, tc.want, r.begin(0, At{Now: t0}).permitClaim(), name)
	}
}

// Slots are held once for each freeze, for a spacing and as far as slots may lie ahead, and never for a shorter time than before.
func TestHolds(t *testing.T) {
	const spacing, reach = 1500 * time.Nanosecond, time.Millisecond
	for name, tc := range map[string]struct {
		until, held, hold int64
		want              int64
	}{
		"no freeze":                     {0, 0, 3, 3},
		"no freeze since another":       {0, t0, 3, 3},
		"one that lasts":                {t0 + 5, 0, 0, t0 + 5 + 2 + 1000},
		"one that lasts, held for":      {t0 + 5, t0 + 5, 0, t0 + 5 + 2 + 1000},
		"one that is over":              {t0 - 5, 0, 0, t0 - 5 + 2 + 1000},
		"one that is over, held for":    {t0 - 5, t0 - 5, 7, 7},
		"one that ends now, held for":   {t0, t0, 7, 7},
		"one that is held for longer":   {t0 + 5, 0, t0 + 9000, t0 + 9000},
		"one that is held for as long":  {t0 + 5, 0, t0 + 1007, t0 + 1007},
		"one before the clock of today": {-5, 0, 7, 7},
	} {
		r := standing()
		r.FrozenUntil, r.Permits = tc.until, Permits{Hold: tc.hold, Held: tc.held}
		longer := r.begin(0, At{Now: t0}).hold(spacing, reach)
		require.Equal(t, tc.want, r.Permits.Hold, name)
		require.Equal(t, tc.want != tc.hold, longer, name)
	}
}

// A Deferred store remembers the newest reservations, and reads from them what a step got.
func TestRecentReservations(t *testing.T) {
	r := issuing(100 * time.Millisecond)
	for i := range 2 * maxRecent {
		r.Revision++
		r.Permits.Pending = pendingReservation{Count: 1, Step: 100 * time.Millisecond, Window: time.Hour}
		st := r.begin(0, At{Now: t0})
		st.settle()
		require.Len(t, r.Permits.Recent, min(i+1, maxRecent))
		require.Equal(t, r.Revision, r.Permits.Recent[len(r.Permits.Recent)-1].Revision)
		require.Equal(t, pendingReservation{}, r.Permits.Pending)
	}
	req := &Reserve{Pool: "pool", Count: 1, Spacing: 40 * time.Millisecond, Ahead: 2, Lease: longest}
	got := r.ReadReservation(req, r.Revision-3, At{Now: t0})
	require.Equal(t, 1, got.Count)
	require.Equal(t, (2*maxRecent-4)*100*time.Millisecond, got.Wait)
	lost := r.ReadReservation(req, r.Revision-maxRecent, At{Now: t0})
	require.Zero(t, lost.Count)
	require.Equal(t, 2*maxRecent*100*time.Millisecond-2*40*time.Millisecond, lost.Retry, "until one is free within the window of two spacings")
	gone := new(Record).ReadReservation(req, r.Revision, At{Now: t0})
	require.Equal(t, Reserved{Retry: wire.Interval(longest, 1)}, gone, "the record went between the write and its reading")
}

// The largest spacing counts, for as long as it is named; that of the newest version of a document counts at once.
func TestWhichSpacingCounts(t *testing.T) {
	removal := micros(wire.Removal(longest))
	fresh, late := t0+removal, t0+removal/4*3-1
	for name, tc := range map[string]struct {
		until     int64 // of a spacing of 100
		spacing   time.Duration
		by        string
		want      time.Duration
		wantUntil int64
	}{
		"a larger one":                        {late + 1, 101, "", 101, fresh},
		"the same":                            {late + 1, 100, "", 100, late + 1},
		"the same, late":                      {late, 100, "", 100, fresh},
		"the same, by the newest document":    {late + 1, 100, "limit", 100, late + 1},
		"a smaller one":                       {t0 + 1, 99, "", 100, t0 + 1},
		"a smaller one at the end":            {t0, 99, "", 99, fresh},
		"a smaller one, by the newest":        {fresh, 99, "limit", 99, fresh},
		"a smaller one, by an older document": {fresh, 99, "old", 100, fresh},
		"none":                                {late, 0, "", 100, late},
	} {
		r := standing(holder("a", "1", 0))
		r.Documents = []Document{{"limit", 5, nil}, {"old", 6, nil}}
		r.Permits = Permits{Spacing: 100, SpacingUntil: tc.until}
		req := &Request{Spacing: tc.spacing, SpacingBy: tc.by, Documents: []DocumentReport{{Name: "limit", Version: 5}, {Name: "old", Version: 5}}}
		r.begin(0, At{Now: t0}).notePermits(req)
		require.Equal(t, tc.want, r.Permits.Spacing, name)
		require.Equal(t, tc.wantUntil, r.Permits.SpacingUntil, name)
		require.Equal(t, map[bool]int64{true: fresh}[tc.spacing == 0], r.Permits.SharesUntil, name)
	}
	two := standing(holder("a", "1", 0), holder("b", "1", 0))
	two.Permits.Issuing = true
	two.begin(0, At{Now: t0}).notePermits(&Request{Spacing: wire.Interval(longest, 2) / 4})
	require.True(t, two.Permits.Issuing, "each earns two tokens in an interval, not more")
	r := standing(holder("a", "1", 0))
	r.begin(0, At{Now: t0}).notePermits(&Request{})
	require.Equal(t, Permits{}, r.Permits, "a pool without permits")
}

// Permits are issued when a processor earns less than a token in a sync interval, until each row earns two, and as strict processors and
// those without permits have it.
func TestWhenPermitsAreIssued(t *testing.T) {
	begins := wire.Interval(longest, 2) / 2     // two processors are live
	ends := (wire.Interval(longest, 3) - 1) / 6 // there are three rows
	for name, tc := range map[string]struct {
		was                bool
		spacing            time.Duration
		strict             bool
		strictTo, sharesTo int64
		last               int64
		holds              bool
		want               bool
	}{
		"too many tokens":              {false, begins, false, 0, 0, 0, false, false},
		"few tokens":                   {false, begins + 1, false, 0, 0, 0, true, true},
		"still few":                    {true, ends + 1, false, 0, 0, 0, true, true},
		"enough":                       {true, ends, false, 0, 0, 0, false, false},
		"enough, and there were slots": {true, ends, false, 0, 0, 1, true, false},
		"a strict one":                 {false, ends, true, 0, 0, 0, true, true},
		"a strict one has been there":  {false, ends, false, t0 + 1, 0, 0, true, true},
		"it has gone":                  {true, ends, false, t0, 0, 0, false, false},
		"one without permits":          {true, begins + 1, false, 0, t0 + 1, 0, false, false},
		"it has gone, too":             {false, begins + 1, false, 0, t0, 0, true, true},
		"a strict one and one without": {false, begins + 1, true, 0, t0 + 1, 0, true, true},
	} {
		gone := holder("c", "1", 0)
		gone.State = RowLeft
		r := standing(holder("a", "1", 0), holder("b", "1", 0), gone)
		r.FrozenUntil = t0 + 1
		r.Permits = Permits{Issuing: tc.was, StrictUntil: tc.strictTo, SharesUntil: tc.sharesTo, Last: tc.last}
		r.begin(0, At{Now: t0}).notePermits(&Request{Spacing: tc.spacing, Strict: tc.strict})
		require.Equal(t, tc.want, r.Permits.Issuing, name)
		require.Equal(t, tc.holds, r.Permits.Hold > 0, name)
	}
}

// Permits are good until the newest slot, or the hold, and their validity are over.
func TestHowLongPermitsAreGood(t *testing.T) {
	validity := int64(wire.Validity(time.Second))
	for name, tc := range map[string]struct {
		last, hold int64 // before the clock, in ns and in us
		none       bool
		want       bool
	}{
		"the last moment": {validity - 1000, 60_000_000, false, true},
		"over":            {validity, 60_000_000, false, false},
		"held":            {validity, micros(time.Duration(validity)) - 1, false, true},
		"held before":     {validity, micros(time.Duration(validity)), false, false},
		"no slots":        {0, 0, true, false},
	} {
		r := standing()
		if r.Permits = (Permits{Last: nanos(t0) - tc.last, Hold: t0 - tc.hold, Step: time.Second}); tc.none {
			r.Permits.Last = 0
		}
		require.Equal(t, tc.want, r.begin(0, At{Now: t0}).winding(), name)
	}
}

func TestNewsAreBounded(t *testing.T) {
	for size, want := range map[int]bool{0: false, 1: true, wire.MaxNewsBytes: true, wire.MaxNewsBytes + 1: false} {
		require.Equal(t, want, ValidateNews("pool", make([]byte, size)) == nil, size)
	}
	require.Error(t, ValidateNews("", []byte("x")))
}

// A request for slots changes the record if it gets or gives back some, or if there is a freeze that slots are not held for yet.
func TestWhatAReservationChanges(t *testing.T) {
	const until = t0 + 5_000_000
	held := until + micros(100*time.Millisecond)
	for name, tc := range map[string]struct {
		frozen     int64
		hold, held int64
		returns    int64
		want       bool
	}{
		"nothing":                         {0, 0, 0, 0, false},
		"slots given back":                {0, 0, 0, 40, true},
		"slots that are another's":        {0, 0, 0, 41, false},
		"a freeze":                        {until, 0, 0, 0, true},
		"a freeze that is held for":       {until, held, until, 0, false},
		"a freeze, held for in a sync":    {until, held, 0, 0, true},
		"a freeze by a larger spacing":    {until, held - 1, until, 0, true},
		"a freeze that is long forgotten": {0, held, until, 0, true},
	} {
		for _, deferred := range []bool{false, true} {
			r := issuing(100 * time.Millisecond)
			r.FrozenUntil = tc.frozen
			is := &r.Permits
			is.Hold, is.Held, is.Last, is.Step, is.Count, is.Serial = tc.hold, tc.held, nanos(t0-1_000_000), 100, 2, 40
			req := Reserve{Pool: "pool", Spacing: 100 * time.Millisecond, Revision: 50, Lease: longest, Return: tc.returns, Unused: 1}
			at := after(0)
			at.Deferred = deferred
			_, changed := r.Reserve(&req, at)
			require.Equal(t, tc.want || deferred, changed, name)
			require.Equal(t, max(tc.frozen, 0), is.Held, name)
			require.Equal(t, tc.returns == 40, is.Count == 1, name)
			require.Equal(t, pendingReservation{}, is.Pending, name)
			require.Equal(t, changed, r.Revision > 50, name)
		}
	}
}

// The spacing in force is that of the whole limit over the claim of the permits, rounded up to the next microsecond.
func TestTheSpacingInForce(t *testing.T) {
	const ms = time.Millisecond
	for claim, want := range map[Share]time.Duration{
		Whole: 100 * ms, Whole + 1: 100 * ms, Whole / 2: 200*ms + time.Microsecond, leastClaim - 1: 0, 0: 0,
	} {
		require.Equal(t, want, spacingOf(100*ms, claim), "%d", int64(claim))
	}
	require.InDelta(t, 300*ms, spacingOf(100*ms, leastClaim), float64(2*time.Microsecond))
}

// An answer without slots says when to ask again; one with slots names them, to give them back.
func TestWhenToAskAgain(t *testing.T) {
	interval := wire.Interval(longest, 0)
	for name, tc := range map[string]struct {
		issuing           bool
		step              time.Duration
		frozen, hold      int64 // after the clock
		ahead             time.Duration
		want, wantsFrozen time.Duration
	}{
		"not issued":             {false, time.Second, 0, 0, 0, interval, 0},
		"too small a claim":      {true, 0, 0, 0, 0, interval, 0},
		"frozen for long":        {false, 0, 90_000_000, 20, 0, 90 * time.Second, 90 * time.Second},
		"held for long":          {true, 0, 20, 80_000_000, 0, 80 * time.Second, 20 * time.Microsecond},
		"a slot after the next":  {true, time.Second, 0, 0, 0, time.Second, 0},
		"a slot within a window": {true, time.Second, 0, 0, 400 * time.Millisecond, 600 * time.Millisecond, 0},
		"at once":                {true, time.Second, 0, 0, time.Minute, time.Millisecond, 0},
	} {
		r := standing()
		r.FrozenUntil, r.FrozenBy = t0+tc.frozen, FreezeLostRow
		r.Permits = Permits{Issuing: tc.issuing, Last: nanos(t0), Hold: t0 + tc.hold, Serial: 50}
		res := r.reserved(reservation{}, booking{revision: 51, step: tc.step, window: tc.ahead})
		require.Equal(t, tc.want, res.Retry, name)
		require.Equal(t, tc.wantsFrozen, res.Frozen, name)
		require.Equal(t, tc.wantsFrozen > 0, res.FrozenBy == FreezeLostRow, name)
		require.Zero(t, res.Last, name)
		res = r.reserved(reservation{Count: 1}, booking{revision: 50, step: tc.step})
		require.Equal(t, int64(50), res.Last, name)
		require.Zero(t, res.Retry, name)
	}
}
