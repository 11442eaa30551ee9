package protocol

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// limitedRow is a row of a processor with a limit per second, and what it is granted in the long run.
func limitedRow(id string, most int, granted float64) driver.RosterRow {
	n := noteOf(throttle.Limit{Max: most, Per: time.Second}, 0, 0)
	n.standing.Granted = granted
	return driver.RosterRow{ID: id, Note: n.String(), PoolSize: 1}
}

// The lowest limit of a processor is in force, with the part of it that this one is granted.
func TestTheLowestLimitIsInForce(t *testing.T) {
	for name, c := range map[string]struct {
		roster  []driver.RosterRow
		most    int
		granted float64
	}{
		"nobody":                {},
		"no limit":              {roster: []driver.RosterRow{{ID: "a", PoolSize: 1}}},
		"one":                   {[]driver.RosterRow{limitedRow("a", 50, 0)}, 50, 50},
		"a hard one":            {[]driver.RosterRow{limitedRow("a", 50, .5)}, 50, 25},
		"the second":            {[]driver.RosterRow{limitedRow("a", 50, .5), limitedRow("b", 40, 0)}, 40, 40},
		"the first":             {[]driver.RosterRow{limitedRow("a", 40, .5), limitedRow("b", 50, .25)}, 40, 20},
		"the first of the same": {[]driver.RosterRow{limitedRow("a", 40, .5), limitedRow("b", 40, .25)}, 40, 20},
	} {
		o, part := overviewOf("p", c.roster)
		o.setGranted(part)
		require.Equal(t, c.most, o.Max, name)
		require.InDelta(t, c.granted, o.Granted, 1e-9, name)
		require.Equal(t, len(c.roster) == 1, o.Agreed, name)
		require.Equal(t, min(len(c.roster), 1), o.PoolSize, name)
	}
}

// Of three processors and more with a limit, two must report what the service announces.
func TestAnAnnouncedLimitNeedsTwoOfThree(t *testing.T) {
	n := noteOf(throttle.Limit{Max: 50, Per: time.Second}, 0, 0)
	n.announced, n.follows = 20, true
	told := driver.RosterRow{ID: "a", Note: n.String()}
	rows := []driver.RosterRow{told, limitedRow("b", 50, 0), {ID: "c"}, limitedRow("d", 50, 0)}
	for count, most := range map[int]int{2: 20, 3: 20, 4: 50} {
		o, _ := overviewOf("p", rows[:count])
		require.Equal(t, most, o.Max, count)
	}
}

// The least number of calls in flight counts, of the processors that limit these, and the longest freeze that is still going on.
func TestSlotsAndFreezeOfAnOverview(t *testing.T) {
	row := func(slots int, silent, frozen time.Duration, by driver.FreezeCause) driver.RosterRow {
		return driver.RosterRow{Silent: silent, Note: Note{standing: Standing{Slots: slots, Frozen: frozen, FrozenBy: by}}.String()}
	}
	const second = time.Second
	for name, c := range map[string]struct {
		roster []driver.RosterRow
		slots  int
		frozen time.Duration
		by     driver.FreezeCause
	}{
		"the first":       {[]driver.RosterRow{row(20, 0, 3*second, "x"), row(30, second, 3*second, "y"), row(0, 0, 0, "")}, 20, 3 * second, "x"},
		"the second":      {[]driver.RosterRow{row(0, 0, 0, ""), row(30, second, 3*second, "x"), row(20, 0, 3*second, "y")}, 20, 3 * second, "y"},
		"of the same":     {[]driver.RosterRow{row(0, second, 3*second, "x"), row(0, 0, 2*second, "y")}, 0, 2 * second, "x"},
		"it ends now":     {[]driver.RosterRow{row(0, 2*second, 2*second, "x")}, 0, 0, ""},
		"it is long over": {[]driver.RosterRow{row(0, 3*second, 2*second, "x")}, 0, 0, ""},
	} {
		o, _ := overviewOf("p", c.roster)
		require.Equal(t, c.slots, o.Slots, name)
		require.Equal(t, c.frozen, o.Frozen, name)
		require.Equal(t, c.by, o.FrozenBy, name)
	}
}

// Time in which nobody synced counts for all: as silence, and against leases and the freeze.
func TestSilenceOfThePool(t *testing.T) {
	for age, c := range map[time.Duration]struct {
		left, frozen  time.Duration
		by            driver.FreezeCause
		overdue, gone bool
	}{
		0:               {14 * time.Second, 2 * time.Second, "x", false, false},
		time.Second:     {13 * time.Second, time.Second, "x", false, false},
		2 * time.Second: {12 * time.Second, 0, "", false, false},
		5 * time.Second: {9 * time.Second, 0, "", true, false},
		time.Minute:     {0, 0, "", true, true},
	} {
		pod := driver.RosterRow{Silent: time.Second, Left: 14 * time.Second}
		o := Overview{Frozen: 2 * time.Second, FrozenBy: "x", Processors: []OverviewRow{{RosterRow: pod}}}
		o.addSilence(age)
		row := &o.Processors[0]
		require.Equal(t, time.Second+age, row.Silent)
		require.Equal(t, c.left, row.Left)
		require.Equal(t, [2]bool{c.overdue, c.gone}, [2]bool{row.Overdue, row.Gone()}, age)
		require.Equal(t, c.frozen, o.Frozen)
		require.Equal(t, c.by, o.FrozenBy)
	}
	require.False(t, (&OverviewRow{}).Gone(), "its lease is over, and it has just synced")
}

// A file replaces the configured limit, unless the pool follows a lower one that the service announces. While one is awaited, a file only
// lowers the limit until then.
func TestTheLimitOfAFile(t *testing.T) {
	for name, c := range map[string]struct {
		file            File
		announced       int
		awaited         bool
		most            int
		per             time.Duration
		follows, awaits bool
	}{
		"no file":                     {most: 50, per: time.Second},
		"higher":                      {file: File{Max: 80}, most: 80, per: time.Second},
		"with a period":               {file: File{Max: 80, Per: time.Minute}, most: 80, per: time.Minute},
		"above the announced one":     {file: File{Max: 80}, announced: 50, most: 50, per: time.Second, follows: true},
		"the announced one":           {file: File{Max: 50}, announced: 50, most: 50, per: time.Second},
		"below the announced one":     {file: File{Max: 80, Per: time.Minute}, announced: 50, most: 80, per: time.Minute},
		"below the one until then":    {file: File{Max: 40}, awaited: true, most: 40, per: time.Second},
		"the one until then":          {file: File{Max: 50}, awaited: true, most: 50, per: time.Second, awaits: true},
		"above the one until then":    {file: File{Max: 80}, awaited: true, most: 50, per: time.Second, awaits: true},
		"the same in other words":     {file: File{Max: 3000, Per: time.Minute}, awaited: true, most: 50, per: time.Second, awaits: true},
		"announced, but not followed": {file: File{Max: 80}, announced: -60, most: 80, per: time.Second},
	} {
		o := Overview{Max: 50, Per: time.Second, Announced: Announced{Awaited: c.awaited}}
		if c.announced != 0 {
			o.Announced = Announced{Max: max(c.announced, -c.announced), Per: time.Second, Followed: c.announced > 0}
		}
		o.setFile(c.file)
		require.Equal(t, c.most, o.Max, name)
		require.Equal(t, c.per, o.Per, name)
		require.Equal(t, [2]bool{c.follows, c.awaits}, [2]bool{o.Announced.Followed, o.Announced.Awaited}, name)
	}
	o := Overview{}
	o.setFile(File{Max: 80, Per: time.Second})
	require.Zero(t, o.Max, "nobody has a limit")
}

// An override is the limit in force, in the configured period if it has none.
func TestTheLimitOfAnOverride(t *testing.T) {
	for override, want := range map[Override]ceiling.Rate{
		{}:                          {Max: 50, Per: time.Second},
		{Max: 80}:                   {Max: 80, Per: time.Second},
		{Max: 80, Per: time.Minute}: {Max: 80, Per: time.Minute},
	} {
		o := Overview{Max: 50, Per: time.Second, Announced: Announced{Followed: true}}
		o.setOverride(override)
		require.Equal(t, want, ceiling.Rate{Max: int64(o.Max), Per: o.Per})
		require.Equal(t, override.Max == 0, o.Announced.Followed)
		require.Equal(t, override, o.Override)
	}
}

// A document is in force until its content has ended. Unreadable documents, and those of other releases, are in force.
func TestWhichDocumentsAreInForce(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	later := now.Add(time.Second)
	var all []driver.Document
	for _, name := range []string{
		backoffDocument, debtDocument, fileDocument, limitDocument, "new", pauseDocument, quotaDocument, rampDocument, spentDocument,
	} {
		all = append(all, driver.Document{Name: name})
	}
	for name, c := range map[string]struct {
		o    Overview
		want []string
	}{
		"none":            {Overview{}, []string{"new"}},
		"an override":     {Overview{Override: Override{Max: 5}}, []string{"limit", "new"}},
		"until later":     {Overview{Override: Override{Max: 5, Until: later}}, []string{"limit", "new"}},
		"an ended one":    {Overview{Override: Override{Max: 5, Until: now}}, []string{"new"}},
		"pauses":          {Overview{Pauses: []limit.Paused{{Until: now}, {}}}, []string{"new", "pause"}},
		"until later too": {Overview{Pauses: []limit.Paused{{Until: later}}}, []string{"new", "pause"}},
		"an ended pause":  {Overview{Pauses: []limit.Paused{{Until: now}}}, []string{"new"}},
		"a tag's quota":   {Overview{changes: QuotaChanges{Tags: map[string]limit.Quota{"a": {}}}}, []string{"new", "quota"}},
		"that of others":  {Overview{changes: QuotaChanges{Other: &limit.Quota{}}}, []string{"new", "quota"}},
		"a file":          {Overview{File: File{Hash: "01234567"}}, []string{"file", "new"}},
		"a ramp":          {Overview{Ramp: 1}, []string{"new", "ramp"}},
		"a lowered limit": {Overview{Lowered: .5}, []string{"backoff", "new"}},
		"unreadable ones": {Overview{Unreadable: []string{"debt", "ramp"}}, []string{"debt", "new", "ramp"}},
	} {
		c.o.Documents = all
		require.Equal(t, c.want, c.o.InForce(now), name)
	}
}

// In a view, the processor's own ceiling says how far the limit is lowered, or where its ramp stands.
func TestOverviewOfAView(t *testing.T) {
	for name, c := range map[string]struct {
		but           func(v *View)
		lowered, ramp float64
	}{
		"all of the limit":        {func(*View) {}, 0, 0},
		"a ramp":                  {func(v *View) { v.Ceiling = 20 }, 0, 20},
		"lowered":                 {func(v *View) { v.Ceiling, v.Adapted = 20, true }, .4, 0},
		"but for rounding":        {func(v *View) { v.Ceiling = 50 * (1 - 1e-7) }, 0, 0},
		"it has no ceiling":       {func(v *View) { v.Ceiling = 0 }, 0, 0},
		"another's":               {func(v *View) { v.Ceiling, v.ID = 20, "b" }, 0, 0},
		"its own, of an override": {func(v *View) { v.Ceiling, v.Adapted, v.Override = 20, true, Override{Max: 1500, Per: 30 * time.Second} }, .4, 0},
		"it has no limit":         {func(v *View) { v.Ceiling, v.Roster = 20, []driver.RosterRow{{ID: "a"}, limitedRow("b", 50, 0)} }, 0, 0},
		"nobody has one":          {func(v *View) { v.Ceiling, v.Roster = 20, []driver.RosterRow{{ID: "a"}} }, 0, 0},
	} {
		v := View{Pool: "p", ID: "a", Ceiling: 50, Roster: []driver.RosterRow{limitedRow("a", 50, 0), limitedRow("c", 60, 0)}}
		c.but(&v)
		o := v.Overview()
		require.InDelta(t, c.lowered, o.Lowered, 1e-9, name)
		require.InDelta(t, c.ramp, o.Ramp, 1e-9, name)
		require.Equal(t, c.ramp > 0, o.RampPer == time.Second, name)
	}
	for frozen, by := range map[time.Duration]driver.FreezeCause{0: "", time.Second: "x"} {
		v := View{Frozen: frozen, FrozenBy: "x"}
		o := v.Overview()
		require.Equal(t, frozen, o.Frozen)
		require.Equal(t, by, o.FrozenBy)
		changes, err := o.QuotaChanges()
		require.NoError(t, err)
		require.Equal(t, v.Quotas, changes)
	}
}

// The sum that is reserved is the highest of those that processors know, exact for those with the known quotas.
func TestWhatIsReserved(t *testing.T) {
	known := limit.Quotas{Tags: map[string]limit.Quota{"acme": {Reserved: 30, Per: time.Second}}}
	hash := hashOfQuotas(new(known.WithDefaults(time.Second)))
	row := func(hash uint32, unchanged float64) OverviewRow {
		return OverviewRow{Per: time.Second, RosterRow: driver.RosterRow{Busy: packBusy(0, hash, unchanged, nil)}}
	}
	changes := QuotaChanges{}.with("x", &limit.Quota{Reserved: 16, Per: time.Second}, QuotaOrder{})
	for name, c := range map[string]struct {
		rows []OverviewRow
		want float64
	}{
		"nobody":               {nil, -1},
		"nobody has quotas":    {[]OverviewRow{{}}, -1},
		"as reported":          {[]OverviewRow{{}, row(1, 32), {}}, 48},
		"the highest":          {[]OverviewRow{row(1, 32), row(2, 64), row(3, 16)}, 80},
		"those that are known": {[]OverviewRow{row(hash, 64)}, 46},
	} {
		o := Overview{Processors: c.rows, changes: changes}
		rate, ok := o.Reserved(known)
		require.Equal(t, c.want >= 0, ok, name)
		require.InDelta(t, max(c.want, 0), rate, 1e-9, name)
	}
}

// aged is a store that knows for how long nobody has synced.
type aged struct {
	driver.Store

	err error
}

func (a aged) Age(context.Context, string) (time.Duration, error) { return time.Minute, a.err }

// A store that cannot say how old the record is shows it as of the newest sync.
func TestAnOverviewWithoutItsAge(t *testing.T) {
	for _, err := range []error{nil, errors.New("unknown")} {
		o, failed := LoadOverview(t.Context(), aged{poolInMemory(t), err}, "p")
		require.NoError(t, failed)
		require.Equal(t, err == nil, o.Processors[0].Silent >= time.Minute)
	}
	_, err := LoadOverview(t.Context(), poolInMemory(t), "another")
	require.ErrorIs(t, err, driver.ErrNoPool)
}

// Settings that the pool shares, and those of processors, are read as they are on record.
func TestWhatAnOverviewReads(t *testing.T) {
	s := poolInMemory(t)
	for _, name := range []string{limitDocument, pauseDocument, quotaDocument, "another"} {
		unreadableDocument(t, s, name)
	}
	o, err := LoadOverview(t.Context(), s, "p")
	require.NoError(t, err)
	require.Equal(t, []string{"limit", "quota", "pause"}, o.Unreadable)
	_, err = o.QuotaChanges()
	require.Error(t, err)
	require.Zero(t, o.Lowered, "refusals have not lowered it")

	file := Note{file: fileWord{hash: "01234567", fault: true, restart: true}}
	o, _ = overviewOf("p", []driver.RosterRow{{Note: file.String()}, {Note: Note{file: fileWord{hash: noFile}}.String()}})
	require.Equal(t, "01234567", o.Processors[0].File)
	require.True(t, o.Processors[0].FileFault && o.Processors[0].FileRestart)
	require.Empty(t, o.Processors[1].File)
}
