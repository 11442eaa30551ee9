package protocol

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// All tags together may reserve what the limit of each pod grants, to the accuracy of the reports, unless that is forced.
func TestWhatQuotasMayReserve(t *testing.T) {
	row := func(id string, n Note, unchanged float64) driver.RosterRow {
		return driver.RosterRow{ID: id, Note: n.String(), Busy: packBusy(0, 0, unchanged, nil)}
	}
	rate := func(most int, hard bool, granted float64) Note {
		n := noteOf(throttle.Limit{Max: most, Per: time.Second, Hard: hard}, 0, 0)
		n.standing.Granted = granted
		return n
	}
	slots := Note{standing: Standing{Slots: 1024}}
	foreign, all := driver.RosterRow{ID: "old", Note: rate(1, false, 0).String()}, row("a", rate(1024, false, 0), 0)
	pods := func(rows ...driver.RosterRow) []driver.RosterRow { return rows }
	none, half := QuotaChanges{}, limit.Quota{Reserved: 512}
	const excess = `Reserved is 1026 tokens per second by all tags together, what is configured for this one included, allowed: at most 1024, ` +
		`the limit of pod "a", unless it is forced`
	for name, c := range map[string]struct {
		roster   []driver.RosterRow
		before   QuotaChanges
		reserved int
		force    bool
		fault    string
	}{
		"nobody is there":            {nil, none, 5000, false, ""},
		"nobody has quotas":          {pods(foreign), none, 5, false, `Quota is for tag "x", allowed: none, for no live pod has quotas`},
		"somebody has":               {pods(foreign, all), none, 5, false, ""},
		"no limit of tokens":         {pods(row("a", Note{}, 0)), none, 5000, false, ""},
		"all, as exact as reported":  {pods(all), none, 1025, false, ""},
		"more than that":             {pods(all), none, 1026, false, excess},
		"it is forced":               {pods(all), none, 1026, true, ""},
		"beside what is configured":  {pods(row("a", rate(1024, false, 0), 1000)), none, 26, false, "is 1026 tokens"},
		"beside another change":      {pods(all), none.with("y", &half, QuotaOrder{}), 514, false, "is 1026 tokens"},
		"in place of another change": {pods(all), none.with("x", &half, QuotaOrder{}), 1026, false, "together, allowed"},
		"of the pod with the least":  {pods(all, row("b", rate(512, false, 0), 0)), none, 600, false, `at most 512, the limit of pod "b"`},
		"what a hard limit grants":   {pods(row("a", rate(1024, true, .5), 0)), none, 512, false, ""},
		"more than it grants": {
			pods(row("a", rate(1024, true, .5), 0)), none, 514, false, `at most 512, what the hard limit grants in the long run, of`,
		},
		"a hard limit that grants it": {pods(row("a", rate(1024, true, 0), 0)), none, 1025, false, ""},
		"one that is not hard":        {pods(row("a", rate(1024, false, .5), 0)), none, 1025, false, ""},
		"calls in flight":             {pods(row("a", slots, 0)), none, 1025, false, ""},
		"more of them":                {pods(row("a", slots, 1000)), none, 26, false, "is 1026 calls in flight by all tags together"},
	} {
		q := limit.Quota{Reserved: c.reserved, Per: time.Second}
		if len(c.roster) > 0 && c.roster[0].Note == slots.String() {
			q.Per = 0
		}
		next := c.before.with("x", &q, QuotaOrder{})
		err := fitsQuota(c.roster, &c.before, &next, "x", c.force)
		if c.fault == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, c.fault, name)
	}
	for _, tag := range []string{"x", ""} {
		next := QuotaChanges{}.with(tag, &limit.Quota{Total: 5, Budgets: []limit.Budget{{Amount: 5, Per: "day"}}}, QuotaOrder{})
		require.NoError(t, fitsQuota([]driver.RosterRow{row("a", rate(9, false, 0), 0)}, &QuotaChanges{}, &next, tag, false))
		require.ErrorContains(t, fitsQuota([]driver.RosterRow{row("a", slots, 0)}, &QuotaChanges{}, &next, tag, true), "budgets")
	}
}

// The error of a single field out of bounds has its value and what is allowed. Other errors are given as they are.
func TestHowAQuotaOutOfBoundsIsNamed(t *testing.T) {
	field := &limit.FieldError{Field: "f", Problem: "is 5", Allowed: "1"}
	as := func(err error) *driver.RequestError {
		return &driver.RequestError{Field: "Quota", Value: err.Error(), Allowed: "a quota within its bounds"}
	}
	short := &driver.RequestError{Field: "f", Value: "5", Allowed: "1"}
	require.Equal(t, short, outOfBounds(field))
	require.Equal(t, short, outOfBounds(errors.Join(field)))
	for _, err := range []error{
		errors.New("x"), errors.Join(field, field), fmt.Errorf("more: %w", field),
		&limit.FieldError{Field: "f", Problem: "is 5"}, &limit.FieldError{Field: "f", Problem: "has 5", Allowed: "1"},
	} {
		require.Equal(t, as(err), outOfBounds(err))
	}
}

// withQuotas is a store with a pool "p" and one processor in it, which has quotas.
func withQuotas(t *testing.T) *memstore.Store {
	t.Helper()
	s, p := memstore.New(), NewProcessor(ProcessorConfig{Pool: "p", ID: "a"}, "1")
	p.Configure(sharing.Terms{Ceiling: hook.Ceiling(throttle.Limit{Max: 100, Per: time.Second}), Quotas: &limit.Quotas{}})
	_, err := s.Sync(t.Context(), p.Request(0, 1, Observation{}))
	require.NoError(t, err)
	return s
}

// A quota is saved in place of the configured one, and taken back. What changes nothing is not saved.
func TestAQuotaIsChangedAndRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := withQuotas(t), t.Context()
		version := func(changes bool, err error) {
			t.Helper()
			require.NoError(t, err)
			require.Equal(t, changes, onRecord(t, s, quotaDocument).Version > 0)
		}
		version(false, SaveQuota(ctx, s, "p", "x", nil, false))
		version(false, ClearQuotas(ctx, s, "p"))
		for _, tag := range []string{"x", "", "y"} {
			require.NoError(t, SaveQuotaFor(ctx, s, "p", tag, &limit.Quota{Total: 5}, QuotaOrder{Reason: "r", Until: time.Now().Add(time.Hour)}, false))
		}
		for n, tag := range []string{"x", "", "another"} {
			before := onRecord(t, s, quotaDocument).Version
			require.NoError(t, SaveQuota(ctx, s, "p", tag, nil, false))
			c, err := LoadQuotas(ctx, s, "p")
			require.NoError(t, err)
			require.Equal(t, max(2-n, 1), c.Len())
			require.Equal(t, n < 2, c.Version > before)
			require.Equal(t, onRecord(t, s, quotaDocument).Version, c.Version)
			require.Equal(t, "r", c.Orders["y"].Reason)
		}
		require.NoError(t, ClearQuotas(ctx, s, "p"))
		c, err := LoadQuotas(ctx, s, "p")
		require.NoError(t, err)
		require.Zero(t, c.Len())
	})
}

// What is wrong with a change is said before it is saved.
func TestWhichChangesOfQuotasAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := withQuotas(t), t.Context()
		q := &limit.Quota{Total: 5}
		for fault, err := range map[string]error{
			"Tag is":               SaveQuota(ctx, s, "p", "x\n", q, false),
			"128 bytes":            SaveQuotaFor(ctx, s, "p", "x", q, QuotaOrder{Reason: "\n"}, false),
			"quotas.tags.x.weight": SaveQuota(ctx, s, "p", "x", &limit.Quota{Weight: -1}, false),
			"at most 100":          SaveQuota(ctx, s, "p", "x", &limit.Quota{Reserved: 200}, false),
		} {
			require.ErrorContains(t, err, fault)
			bad := (*driver.RequestError)(nil)
			require.ErrorAs(t, err, &bad, fault)
		}
		_, err := LoadQuotas(ctx, s, "q")
		require.ErrorIs(t, err, driver.ErrNoPool)
		require.ErrorIs(t, SaveQuota(ctx, s, "q", "x", q, false), driver.ErrNoPool)
		require.ErrorIs(t, ClearQuotas(ctx, s, "q"), driver.ErrNoPool)
		require.Zero(t, onRecord(t, s, quotaDocument))
	})
}

// Changes that this release cannot read stay as they are, until they are ended.
func TestUnreadableQuotasAreOnlyEnded(t *testing.T) {
	for name, end := range map[string]func(s driver.Store) error{
		"one":  func(s driver.Store) error { return SaveQuota(t.Context(), s, "p", "x", nil, false) },
		"none": func(s driver.Store) error { return SaveQuota(t.Context(), s, "p", "x", &limit.Quota{Total: 5}, false) },
		"all":  func(s driver.Store) error { return ClearQuotas(t.Context(), s, "p") },
	} {
		s := withQuotas(t)
		unreadableDocument(t, s, quotaDocument)
		_, err := LoadQuotas(t.Context(), s, "p")
		require.ErrorContains(t, err, "numathrottle quota clear --all", name)
		if err = end(s); name == "none" {
			require.ErrorContains(t, err, "numathrottle quota clear --all")
			continue
		}
		require.NoError(t, err, name)
		c, err := LoadQuotas(t.Context(), s, "p")
		require.NoError(t, err, name)
		require.Zero(t, c.Len(), name)
	}
}
