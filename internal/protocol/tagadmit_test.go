package protocol

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// names are reports on n tags of patterns.
func names(n int, of func(i int) sharing.TagReport) []sharing.TagReport {
	reports := make([]sharing.TagReport, n)
	for i := range reports {
		reports[i] = of(i)
		reports[i].Tag = fmt.Sprintf("n%05d", i)
	}
	return reports
}

// A book drops the names of patterns that were idle for ten intervals once there are more than usual, and all that are not reported once it
// is full. It keeps those that owe, have a budget, or a quota by name.
func TestWhichNamesABookForgets(t *testing.T) {
	testkit.SkipRace(t, "it has one goroutine")
	pattern := limit.Quotas{
		Tags:  map[string]limit.Quota{"n00000": {Total: 10}},
		Match: []limit.QuotaPattern{{Tag: "n*", Quota: limit.Quota{Total: 10}}, {Tag: "*", Quota: limit.Quota{Budgets: []limit.Budget{daily}}}},
	}
	used := func(int) sharing.TagReport { return sharing.TagReport{Used: 1} }
	owed := func(i int) sharing.TagReport { return sharing.TagReport{Used: 1, Owed: int64(i % 2)} }
	for name, c := range map[string]struct {
		had  int
		of   func(i int) sharing.TagReport
		next []sharing.TagReport
		at   time.Duration
		left int
	}{
		"idle for long":       {usualAccounts, used, []sharing.TagReport{{Tag: "more"}}, 11 * sec, 2},
		"nearly so":           {usualAccounts, used, []sharing.TagReport{{Tag: "more"}}, 11*sec - 1, usualAccounts + 1},
		"not too many":        {usualAccounts - 1, used, []sharing.TagReport{{Tag: "more"}}, 11 * sec, usualAccounts},
		"some are known":      {usualAccounts, used, []sharing.TagReport{{Tag: "n00007"}, {Tag: "more"}}, 11 * sec, 3},
		"all are known":       {usualAccounts + 1, used, []sharing.TagReport{{Tag: "n00007"}}, 11 * sec, usualAccounts + 1},
		"some owe":            {usualAccounts, owed, []sharing.TagReport{{Tag: "more"}}, 11 * sec, usualAccounts/2 + 2},
		"one by name":         {usualAccounts, used, []sharing.TagReport{{}}, 11 * sec, usualAccounts + 1},
		"the book is full":    {maxAccounts, used, []sharing.TagReport{{Tag: "more"}}, 2 * sec, 2},
		"it has one place":    {maxAccounts - 1, used, []sharing.TagReport{{Tag: "more"}}, 2 * sec, maxAccounts},
		"for one by name":     {maxAccounts - 1, used, []sharing.TagReport{{}}, 2 * sec, maxAccounts},
		"for one of two":      {maxAccounts - 1, used, []sharing.TagReport{{}, {Tag: "more"}}, 2 * sec, 3},
		"the same name twice": {3, used, []sharing.TagReport{{Tag: "more"}, {Tag: "more"}}, 2 * sec, 4},
	} {
		t.Run(name, func(t *testing.T) {
			k := keep(t, pattern)
			k.report(sec, sec, false, names(c.had, c.of))
			require.Len(t, k.accounts, c.had)
			k.report(c.at, sec, false, c.next)
			require.Len(t, k.accounts, c.left)
			for i := 1; i < len(k.accounts); i++ {
				require.Less(t, k.accounts[i-1].Tag, k.accounts[i].Tag)
			}
			require.NotNil(t, k.account("n00000"))
			for _, r := range c.next {
				require.NotNil(t, k.account(r.Tag))
			}
		})
	}
	k := keep(t, pattern)
	k.report(sec, sec, false, []sharing.TagReport{{Tag: "budgeted"}})
	k.report(20*sec, sec, false, names(usualAccounts+1, used))
	require.NotNil(t, k.account("budgeted"), "what it has spent is known")
}

// What limiters give back until the last draws end that the store may have lost is not given back to the store.
func TestWhatIsGivenBackAfterALoss(t *testing.T) {
	for now, back := range map[time.Duration]int64{7*sec - 1: 0, 7 * sec: 3} {
		k := keep(t, budgeted(limit.ThenRefuse))
		k.report(sec, sec, false, []sharing.TagReport{{Tag: "a"}})
		k.accounts[0].granted = k.accounts[0].window
		k.latest = 7 * sec
		k.forget()
		k.latest = 2 * sec
		k.forget()
		k.report(now, sec, false, []sharing.TagReport{{Tag: "a", Back: 3, BackSpent: 5}})
		require.Equal(t, back, k.account("a").BackSpent, now)
	}
	k := keep(t, budgeted(limit.ThenRefuse))
	k.report(sec, sec, true, []sharing.TagReport{{Tag: "a", Back: 7, BackSpent: 3}})
	a := k.account("a")
	require.Equal(t, []float64{7, 0}, []float64{a.credit, float64(a.BackSpent)}, "the store knows nothing of it")
}

// A lack is over at the time at which more can come.
func TestWhenALackEnds(t *testing.T) {
	for now, lack := range map[time.Duration]driver.Lack{7*sec - 1: driver.LackTotal, 7 * sec: driver.LackNothing} {
		k := keep(t, one(100))
		k.report(sec, sec, false, []sharing.TagReport{{Tag: "a"}})
		k.accounts[0].lack, k.accounts[0].again = driver.LackTotal, 7*sec
		k.report(now, sec, false, nil)
		require.Equal(t, lack, k.accounts[0].lack, now)
		require.Equal(t, lack == driver.LackTotal, k.accounts[0].again > 0)
	}
	k := keep(t, one(100))
	k.report(sec, sec, false, []sharing.TagReport{{Tag: "a"}})
	k.accounts[0].lack = driver.LackTotal
	k.report(9*sec, sec, false, nil)
	require.Equal(t, driver.LackTotal, k.accounts[0].lack, "nobody knows when")
	require.Zero(t, k.grants(tagBase, 9*sec)[0].Again)
}

// Budgets need the store's clock: before the first answer there is no window of them, however long the process has run, nor after quotas
// have changed.
func TestNoBudgetWithoutAClock(t *testing.T) {
	k := &bookkeeper{t: t}
	q := limit.Quotas{Tags: map[string]limit.Quota{"a": {Budgets: []limit.Budget{{Amount: 100, Per: limit.PeriodMonth, Zone: "America/New_York"}}}}}
	for range 2 {
		k.setQuotas(q.WithDefaults(sec), 0)
		k.report(3*time.Hour, sec, true, []sharing.TagReport{{Tag: "a", Waiting: 5}})
		k.grantLocally(3*time.Hour, sec, 4*time.Hour, 1, 1, func(*tagAccount) bool { return true })
		require.Zero(t, k.account("a").batch)
	}
	k.setQuotas(one(100).WithDefaults(sec), 0)
	require.NotZero(t, k.asks(3*time.Hour+sec, sharing.TagReport{Tag: "a", Waiting: 5}).Ask, "a total needs none")
}

// Without the store a tag gets batches that are good for two intervals, or until the share ends. Those that its limiter has not received add
// up. It lacks a total if it gets less than it asks for.
func TestBatchesWithoutTheStore(t *testing.T) {
	k := keep(t, one(100))
	for _, c := range []struct {
		at, end       time.Duration
		waiting, head int64
		inHand, has   int64
		batch         tagBatch
		latest        time.Duration
		lack          driver.Lack
	}{
		{10 * sec, time.Hour, 20, 0, 0, 23, tagBatch{tokens: 23, from: 10 * sec, until: 12 * sec}, 12 * sec, driver.LackNothing},
		{10*sec + sec/2, 11 * sec, 60, 0, 23, 68, tagBatch{tokens: 23 + 45, from: 10*sec + sec/2, until: 11 * sec}, 12 * sec, driver.LackNothing},
		{11 * sec, 11 * sec, 400, 0, 68, 68, tagBatch{tokens: 23 + 45, from: 10*sec + sec/2, until: 11 * sec}, 12 * sec, driver.LackTotal},
		{20 * sec, time.Hour, 400, 80, 30, 80, tagBatch{tokens: 23 + 45 + 50, from: 20 * sec, until: 22 * sec}, 22 * sec, driver.LackTotal},
		{22 * sec, time.Hour, 400, 80, 20, 80, tagBatch{tokens: 23 + 45 + 50 + 60, from: 22 * sec, until: 24 * sec}, 24 * sec, driver.LackTotal},
	} {
		k.report(c.at, sec, true, []sharing.TagReport{{Tag: "a", Waiting: c.waiting, Head: c.head, InHand: c.inHand}})
		k.accounts[0].again = time.Hour
		k.grantLocally(c.at, sec, c.end, 2, 0.5, func(*tagAccount) bool { return true })
		a := &k.accounts[0]
		require.Equal(t, c.batch, a.batch)
		require.Equal(t, c.has, a.InHand)
		require.Equal(t, c.latest, k.latest)
		require.Equal(t, c.lack, a.lack)
		require.Zero(t, a.again)
	}
	before := k.accounts[0]
	k.grantLocally(20*sec, sec, time.Hour, 2, 0.5, func(*tagAccount) bool { return false })
	require.Equal(t, before, k.accounts[0])
	k.setQuotas(limit.Quotas{}, 0)
	k.grantLocally(20*sec, sec, time.Hour, 2, 0.5, func(*tagAccount) bool { return true })
	require.Equal(t, before.batch, k.accounts[0].batch, "it needs no tokens of its own")
}
