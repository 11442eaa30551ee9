package operate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// What stops a tag: each cause with its counterpart that does not.
func TestWhatStopsTags(t *testing.T) {
	now := time.Date(2026, 3, 4, 11, 0, 0, 0, time.UTC)
	hourly := throttle.Budget{Amount: 10, Per: limit.PeriodHour}
	lower := hourly
	lower.Then = limit.ThenLower
	q := throttle.Quotas{Tags: map[string]throttle.Quota{
		"acme": {Budgets: []throttle.Budget{hourly}}, "shadow": {Budgets: []throttle.Budget{hourly}, Shadow: true},
		"lower": {Budgets: []throttle.Budget{lower}},
	}}
	start, end := hourly.Window(now)
	spent := func(tag, hash string, tokens int64, start time.Time) []Spent {
		return []Spent{{Tag: tag, Hash: hash, Windows: []SpentWindow{{Start: start, End: end, Tokens: tokens}}}}
	}
	pod := func(claim driver.Share, reason throttle.Reason, overdue bool) OverviewRow {
		row := OverviewRow{Overdue: overdue}
		row.Claim, row.Throttled, row.Tag = claim, reason, "acme"
		return row
	}
	for name, c := range map[string]struct {
		spent  []Spent
		pods   []OverviewRow
		frozen time.Duration
		tag    Tag
		want   throttle.Reason
	}{
		"spent":                       {spent: spent("acme", "", 10, start), want: throttle.ReasonBudget},
		"not spent":                   {spent: spent("acme", "", 9, start)},
		"spent in another window":     {spent: spent("acme", "", 10, start.Add(-time.Hour))},
		"spent, and goes on as batch": {spent: spent("lower", "", 10, start), tag: Tag{Tag: "lower"}},
		"spent, in shadow":            {spent: spent("shadow", "", 10, start), tag: Tag{Tag: "shadow"}},
		"told by a pod":               {pods: []OverviewRow{pod(1, throttle.ReasonBudget, false)}, want: throttle.ReasonBudget},
		"told by a silent pod":        {pods: []OverviewRow{pod(1, throttle.ReasonBudget, true), pod(1, "", false)}},
		"no share":                    {pods: []OverviewRow{pod(0, throttle.ReasonNoShare, false)}, want: throttle.ReasonNoShare},
		"no share of a silent pod":    {pods: []OverviewRow{pod(0, throttle.ReasonNoShare, true), pod(0, "", false)}},
		"no share of one of two":      {pods: []OverviewRow{pod(0, throttle.ReasonNoShare, false), pod(1, "", false)}},
		"frozen":                      {frozen: time.Second, pods: []OverviewRow{pod(0, "", false)}, want: throttle.ReasonFrozen},
		"frozen with a silent claim":  {frozen: time.Second, pods: []OverviewRow{pod(1, "", true)}, want: throttle.ReasonFrozen},
		"frozen, and the tag gets less": {
			frozen: time.Second, pods: []OverviewRow{pod(1, "", false)},
			tag: Tag{Tag: "acme", By: "limit", Demand: 10, Target: 10, Used: 8}, want: throttle.ReasonFrozen,
		},
		"frozen, and the tag gets all": {
			frozen: time.Second, pods: []OverviewRow{pod(1, "", false)}, tag: Tag{Tag: "acme", By: "limit", Demand: 10, Target: 10, Used: 9.5},
			want: "limit",
		},
		"a pattern of that name": {spent: spent("acme", "", 10, start), tag: Tag{Tag: "acme", Pattern: true}},
	} {
		o := Overview{Processors: c.pods, Frozen: c.frozen}
		if c.tag == (Tag{}) {
			c.tag.Tag = "acme"
		}
		s := stoppageOf(&o, &q, c.spent, now)
		s.hold(&c.tag)
		require.Equal(t, string(c.want), c.tag.By, name)
	}
}

// A tag that has spent its budget names the pods that refuse its calls, although it reports no demand.
func TestASpentTagNamesThePodsThatRefuse(t *testing.T) {
	row := OverviewRow{}
	row.Claim, row.Throttled, row.Tag = 1, throttle.ReasonBudget, "acme"
	o := Overview{Processors: []OverviewRow{row, row}}
	require.Equal(t, []Tag{{Tag: "acme", By: "budget", Pods: 2}}, Tags(&o, throttle.Quotas{}, nil))
}

// A tag has one row, also where only its pause or a pod knows its name, and where only this command does.
func TestAStoppedTagHasOneRow(t *testing.T) {
	const hash = "47b8d15e60" // of acme
	require.Equal(t, hash, keyOf("acme", ""))
	row := OverviewRow{}
	row.Claim, row.Throttled, row.Tag = 1, throttle.ReasonBudget, "acme"
	unnamed := row
	unnamed.Tag = "#" + hash
	for name, o := range map[string]Overview{
		"a pause":                {Pauses: []throttle.Paused{{Tag: "acme"}}},
		"a pod":                  {Processors: []OverviewRow{row}},
		"a pod without a name":   {Processors: []OverviewRow{unnamed}},
		"a pause and such a pod": {Pauses: []throttle.Paused{{Tag: "acme"}}, Processors: []OverviewRow{unnamed}},
	} {
		for _, tag := range []Tag{{Tag: "acme"}, {Hash: hash}} {
			s := stoppageOf(&o, &throttle.Quotas{}, nil, time.Now())
			s.hold(&tag)
			require.NotEmpty(t, tag.By, name)
			require.Empty(t, s.rest([]Tag{tag}), name)
			require.True(t, tag.Tag == "acme" || name == "a pod without a name", name)
		}
	}
}
