package tagbucket

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

const second = int64(time.Second)

func local(q limit.Quota) *Bucket {
	return New(Terms{Quota: q.WithDefaults(0), Part: 1, Wall: time.Date(2026, 3, 1, 22, 59, 50, 0, time.UTC)})
}

func TestTagBucketEarnsAndSavesUp(t *testing.T) {
	s := local(limit.Quota{Total: 10, Burst: 5})
	require.EqualValues(t, 0, s.AtHand(0), "it starts empty")
	require.EqualValues(t, 1, s.AtHand(second/10))
	require.EqualValues(t, 5, s.AtHand(100*second))
	_, ok := s.Take(100*second, 6)
	require.False(t, ok)
	d, ok := s.Take(100*second, 5)
	require.True(t, ok)
	wait, why, known := s.Due(100*second, 3)
	require.Equal(t, []any{300 * time.Millisecond, limit.ReasonQuota, true}, []any{wait, why, known})
	s.Return(100*second, d, 2)
	require.EqualValues(t, 2, s.AtHand(100*second))
	s.Owe(100*second, 7)
	require.EqualValues(t, 0, s.AtHand(100*second+second/2-1), "what is owed is earned first")
	require.EqualValues(t, 1, s.AtHand(100*second+6*second/10))
	s.Reach(200*second, 20, 20)
	require.EqualValues(t, 20, s.AtHand(202*second))
	s.Reach(202*second, 0, 0)
	require.EqualValues(t, 5, s.AtHand(203*second))
}

// What is due is there when it is due, whatever is rounded: else a caller would look again and again.
func TestDueIsThereThen(t *testing.T) {
	for total := 1; total < 400; total++ {
		for n := int64(1); n < 40; n++ {
			s := local(limit.Quota{Total: total, Burst: 1})
			s.Reach(0, n, n)
			wait, _, _ := s.Due(0, n)
			require.Equal(t, n, s.AtHand(int64(wait)), "total %d", total)
			require.True(t, s.Has(int64(wait), n))
			require.False(t, s.Has(int64(wait), n+1))
			require.False(t, s.Has(int64(wait)-1, n))
			require.Equal(t, n, s.AtHand(1000*second), "total %d", total)
		}
	}
}

func TestBudgetsByTheWallClock(t *testing.T) {
	s := local(limit.Quota{Budgets: []limit.Budget{{Amount: 10, Per: limit.PeriodHour}, {Amount: 15, Per: limit.PeriodDay, Zone: "UTC"}}})
	d, ok := s.Take(0, 8)
	require.True(t, ok)
	_, ok = s.Take(0, 3)
	require.False(t, ok)
	wait, why, _ := s.Due(0, 3)
	require.Equal(t, []any{10 * time.Second, limit.ReasonBudget}, []any{wait, why})
	require.EqualValues(t, 7, s.AtHand(11*second), "the hour is new, the day is not")
	s.Return(11*second, d, 8)
	require.EqualValues(t, 10, s.AtHand(11*second), "what is given back of the hour before counts for the day alone")
	_, ok = s.Take(11*second, 10)
	require.True(t, ok)
	wait, _, _ = s.Due(11*second, 6)
	require.Equal(t, time.Hour-time.Second, wait, "the day ends with the hour")
	spent, amount := s.Spent(11 * second)
	require.Equal(t, []int64{10, 10}, []int64{spent, amount})

	// The wall clock was put forward.
	s.Anchor(12*second, time.Date(2026, 3, 2, 0, 0, 1, 0, time.UTC))
	require.EqualValues(t, 10, s.AtHand(12*second))
}

func TestBudgetThatLowers(t *testing.T) {
	s := local(limit.Quota{Budgets: []limit.Budget{{Amount: 10, Per: limit.PeriodHour, Then: limit.ThenLower}}})
	_, ok := s.Take(0, 9)
	require.True(t, ok)
	require.False(t, s.Lowered(0))
	_, ok = s.Take(0, 9)
	require.True(t, ok, "it refuses nothing")
	require.True(t, s.Lowered(0))
	require.False(t, s.Lowered(11*second))
}

func pooled(q limit.Quota) *Bucket { return New(Terms{Quota: q.WithDefaults(0), Pooled: true}) }

func TestBatchesAreUsedByTheirEnds(t *testing.T) {
	s := pooled(limit.Quota{Total: 100})
	grant := func(tokens, from, until, window int64) {
		s.Grant(sharing.TagGrant{Needed: true, Batch: sharing.Batch{Tokens: tokens, Window: window}}, from, until, 0)
	}
	grant(5, 0, 20, 1)
	grant(5, 0, 10, 1)
	grant(7, 15, 30, 2)
	require.EqualValues(t, 10, s.AtHand(1))
	d, ok := s.Take(1, 4)
	require.True(t, ok)
	require.EqualValues(t, 5, s.AtHand(10), "of the lot that ended one was left")
	wait, _, known := s.Due(10, 6)
	require.Equal(t, []any{time.Duration(5), true}, []any{wait, known})
	_, _, known = s.Due(10, 100)
	require.False(t, known)
	require.EqualValues(t, 15, s.NextChange(10))
	s.Return(9, d, 1)
	require.EqualValues(t, 7, s.AtHand(9), "back into its lot")
	s.Return(12, d, 3)
	var r sharing.TagReport
	s.Report(12, 10, &r)
	require.Equal(t, sharing.TagReport{InHand: 7, Lasts: 18, Back: 10}, r, "five of the lot that ends, two that ran out, three late ones, of a window before")
	d, _ = s.Take(16, 7)
	s.Return(40, d, 2)
	s.Owe(40, 3)
	r = sharing.TagReport{}
	s.Report(40, 0, &r)
	require.Equal(t, sharing.TagReport{Back: 2, BackSpent: 2, Owed: 3}, r)
}

// A draw takes nothing from batches that have ended, or that begin later.
func TestADrawTakesFromTheBatchesOfNow(t *testing.T) {
	s := pooled(limit.Quota{Total: 100})
	for i, from := range []int64{0, 5, 30} {
		s.Grant(sharing.TagGrant{Needed: true, Batch: sharing.Batch{Tokens: int64(1 + i), Window: 1}}, from, from+10, 0)
	}
	_, ok := s.Take(12, 2)
	require.True(t, ok)
	require.Zero(t, s.AtHand(12))
	require.EqualValues(t, 3, s.AtHand(30), "the third batch is whole")
	_, ok = s.Take(12, 1)
	require.False(t, ok)
}

func TestLargestDraw(t *testing.T) {
	for _, tc := range []struct {
		quota limit.Quota
		most  int64
		by    string
	}{
		{limit.Quota{}, Endless, ""},
		{limit.Quota{Total: 10}, 10, "total"},
		{limit.Quota{Total: 10, Burst: 30}, 30, "burst"},
		{limit.Quota{Total: 10, Burst: 10}, 10, "total"},
		{limit.Quota{Total: 10, Shadow: true}, Endless, ""},
		{limit.Quota{Total: 10, Budgets: []limit.Budget{{Amount: 3, Then: limit.ThenLower}}}, 10, "total"},
		{limit.Quota{Total: 10, Budgets: []limit.Budget{{Amount: 30}, {Amount: 3}, {Amount: 20}}}, 3, "budgets"},
		{limit.Quota{Budgets: []limit.Budget{{Amount: 30}}}, 30, "budgets"},
		{limit.Quota{Total: 10, Budgets: []limit.Budget{{Amount: 10}}}, 10, "total"},
		{limit.Quota{Total: 100, Burst: 10, Hard: true}.WithDefaults(0), 10, "burst, with hard"},
		{limit.Quota{Total: 1, Burst: 1, Hard: true}.WithDefaults(0), 1, "total"},
	} {
		most, by := Largest(tc.quota)
		require.Equal(t, []any{tc.most, tc.by}, []any{most, by}, "%+v", tc.quota)
	}
}

// What ran out while nobody drew is given back, once.
func TestABatchThatRanOutIsGivenBack(t *testing.T) {
	s := pooled(limit.Quota{Budgets: []limit.Budget{{Amount: 100, Per: limit.PeriodDay}}})
	s.Grant(sharing.TagGrant{Needed: true, Batch: sharing.Batch{Tokens: 9, Window: 1}}, 0, 10, 0)
	_, ok := s.Take(1, 4)
	require.True(t, ok)
	require.Zero(t, s.AtHand(10))
	var r sharing.TagReport
	s.Report(10, 0, &r)
	require.Equal(t, sharing.TagReport{Back: 5, BackSpent: 5}, r)
	r = sharing.TagReport{}
	s.Report(11, 0, &r)
	require.Zero(t, r)
}

func TestHardQuotaGivesNothingBackLate(t *testing.T) {
	s := pooled(limit.Quota{Total: 100, Per: time.Minute, Hard: true})
	s.Grant(sharing.TagGrant{Needed: true, Batch: sharing.Batch{Tokens: 7}}, 0, 10, 0)
	d, _ := s.Take(1, 5)
	s.Return(20, d, 5)
	var r sharing.TagReport
	s.Report(20, 0, &r)
	require.Zero(t, r)
	most, _ := s.Largest()
	require.EqualValues(t, 1, most, "a draw is at most the burst")
}

// Where there is no total none can be used, and a budget is spent only if the pool says so: until the first batch comes, and between
// batches, there is nothing here yet.
func TestABudgetIsSpentOnlyIfThePoolSaysSo(t *testing.T) {
	s := pooled(limit.Quota{Budgets: []limit.Budget{{Amount: 100, Per: limit.PeriodDay}}})
	why := func() limit.Reason {
		_, why, _ := s.Due(second, 1)
		require.Equal(t, why, s.Lacks(second, 1))
		return why
	}
	require.Equal(t, limit.ReasonNoShare, why(), "before the first lot")
	s.Grant(sharing.TagGrant{Needed: true, Lacks: limit.ReasonQuota}, 0, 0, 0)
	require.Equal(t, limit.ReasonNoShare, why(), "more than there was here")
	s.Grant(sharing.TagGrant{Needed: true, Lacks: limit.ReasonFrozen}, 0, 0, 0)
	require.Equal(t, limit.ReasonFrozen, why())
	s.Grant(sharing.TagGrant{Needed: true, Lacks: limit.ReasonBudget}, 0, 0, 0)
	require.Equal(t, limit.ReasonBudget, why())
	s.SetQuota(limit.Quota{Total: 5, Budgets: []limit.Budget{{Amount: 100, Per: limit.PeriodDay}}})
	s.Grant(sharing.TagGrant{Needed: true}, 0, 0, 0)
	require.Equal(t, limit.ReasonQuota, why(), "it has a total")
}

// Two budgets that are spent are both over when the later one ends.
func TestDueAfterTheLastOfSpentBudgets(t *testing.T) {
	for name, order := range map[string][]limit.Period{"short first": {limit.PeriodHour, limit.PeriodDay}, "long first": {limit.PeriodDay, limit.PeriodHour}} {
		var q limit.Quota
		for _, per := range order {
			q.Budgets = append(q.Budgets, limit.Budget{Amount: 10, Per: per, Zone: "UTC"})
		}
		q.Budgets = append(q.Budgets, limit.Budget{Amount: 1, Per: limit.PeriodMonth, Zone: "UTC", Then: limit.ThenLower})
		s := New(Terms{Quota: q.WithDefaults(0), Part: 1, Wall: time.Date(2026, 3, 1, 11, 0, 0, 0, time.UTC)})
		_, ok := s.Take(0, 10)
		require.True(t, ok)
		wait, why, known := s.Due(0, 1)
		require.Equal(t, []any{13 * time.Hour, limit.ReasonBudget, true}, []any{wait, why, known}, name)
	}
}

// A draw goes to the fallback if that is what the budget is for of which least is left.
func TestTheScarcestBudgetFallsBack(t *testing.T) {
	falls := limit.Budget{Amount: 10, Per: limit.PeriodHour, Then: limit.ThenFallback}
	stops := limit.Budget{Amount: 12, Per: limit.PeriodHour}
	lowers := limit.Budget{Amount: 1, Per: limit.PeriodHour, Then: limit.ThenLower}
	for name, tc := range map[string]struct {
		budgets []limit.Budget
		want    bool
	}{
		"none": {nil, false}, "falls": {[]limit.Budget{lowers, stops, falls}, true}, "stops": {[]limit.Budget{{Amount: 5, Per: limit.PeriodDay}, falls}, false},
		"lowers":                 {[]limit.Budget{lowers}, false},
		"the first of equal two": {[]limit.Budget{falls, {Amount: 10, Per: limit.PeriodDay}}, true},
	} {
		q := limit.Quota{Budgets: tc.budgets}
		require.Equal(t, tc.want, local(q).FallsBack(), name)
	}
	for _, b := range []limit.Budget{falls, stops, lowers} {
		require.Equal(t, b == falls, pooled(limit.Quota{Budgets: []limit.Budget{lowers, b}}).FallsBack(), "the pool knows what is left")
	}
}

// A total and a budget that take equally long: the total is named, which has tokens again and again.
func TestDueOfATotalAndABudgetAtOnce(t *testing.T) {
	s := local(limit.Quota{Total: 1, Budgets: []limit.Budget{{Amount: 5, Per: limit.PeriodHour}}})
	wait, why, known := s.Due(0, 10)
	require.Equal(t, []any{10 * time.Second, limit.ReasonQuota, true}, []any{wait, why, known})
	wait, why, _ = s.Due(second, 9)
	require.Equal(t, []any{9 * time.Second, limit.ReasonBudget}, []any{wait, why})
}
