package driver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What a tag bucket gives, of ten tokens a second and a second's worth ahead of the clock.
func TestWhatATagBucketGives(t *testing.T) {
	const clock, now, ms = 5_000_000, 100, time.Millisecond
	budget := func(left ...int64) (all []BudgetDraw) {
		for i, n := range left {
			all = append(all, BudgetDraw{Amount: 50 + n, Start: int64(i), End: 1100 + 1000*int64(i)})
		}
		return all
	}
	for name, tc := range map[string]struct {
		paid  int64 // after the clock
		ask   int64
		ahead time.Duration
		left  []int64 // of budgets
		want  Drawn
	}{
		"all":                           {0, 5, 0, nil, Drawn{Tokens: 5}},
		"a part":                        {700_000, 5, 0, nil, Drawn{Tokens: 3, Lack: LackTotal, Again: 100 * ms}},
		"none":                          {1_000_000, 5, 0, nil, Drawn{Lack: LackTotal, Again: 100 * ms}},
		"none for a while":              {1_500_000, 5, 0, nil, Drawn{Lack: LackTotal, Again: 600 * ms}},
		"all, without a wait":           {500_000, 5, time.Second, nil, Drawn{Tokens: 5}},
		"all, later":                    {900_000, 5, 1400 * ms, nil, Drawn{Tokens: 5, From: 1400 * ms}},
		"too late":                      {900_000, 5, 1400*ms - time.Microsecond, nil, Drawn{Lack: LackTotal, Again: time.Microsecond}},
		"what is left of a budget":      {0, 5, 0, []int64{2}, Drawn{Tokens: 2, Lack: LackBudget, Again: time.Millisecond}},
		"a budget that is overspent":    {0, 5, 0, []int64{-1}, Drawn{Lack: LackBudget, Again: time.Millisecond}},
		"all or nothing of a budget":    {900_000, 5, time.Minute, []int64{4}, Drawn{Lack: LackBudget, Again: time.Millisecond}},
		"all of a budget":               {900_000, 5, time.Minute, []int64{5}, Drawn{Tokens: 5, From: 1400 * ms}},
		"a budget and a total that end": {700_000, 5, 0, []int64{3}, Drawn{Tokens: 3, Lack: LackBudget, Again: time.Millisecond}},
		"a total below a budget":        {700_000, 5, 0, []int64{4}, Drawn{Tokens: 3, Lack: LackTotal, Again: 100 * ms}},
		"the lesser of two budgets":     {0, 5, 0, []int64{4, 2}, Drawn{Tokens: 2, Lack: LackBudget, Again: 2 * time.Millisecond}},
		"the first of two alike":        {0, 5, 0, []int64{2, 2}, Drawn{Tokens: 2, Lack: LackBudget, Again: time.Millisecond}},
	} {
		d := &Draw{Total: 10, Per: time.Second, Ask: tc.ask, Ahead: tc.ahead, Budgets: budget(tc.left...)}
		b := &TagBucket{Paid: clock + tc.paid}
		for _, of := range d.Budgets {
			b.Spent = append(b.Spent, Spent{of.Start, of.End, 50})
		}
		var got Drawn
		g := &granter{step: &step{at: At{Now: now}, clock: clock}, req: &Request{}, lead: 1_000_000}
		g.give(b, d, &got)
		require.Equal(t, tc.want, got, name)
		require.Equal(t, clock+tc.paid+100_000*got.Tokens, b.Paid, name)
		for _, s := range b.Spent {
			require.Equal(t, 50+got.Tokens, s.Tokens, name)
		}
	}
	require.Zero(t, (&Draw{Total: 10, Per: time.Second, Ask: 5}).earned(-1_000_000))
}

// A draw is open while the store's clock is in all of its windows, which begin with what processors have seen.
func TestWindowsThatAreOpen(t *testing.T) {
	const start, end = 1000, 2000
	one, two := BudgetDraw{Start: start, End: end, Seen: 7}, BudgetDraw{Start: start - 500, End: end - 500, Seen: 8}
	for name, tc := range map[string]struct {
		now     int64
		budgets []BudgetDraw
		held    bool
		spent   []Spent // before
		open    bool
		want    []Spent
	}{
		"the first moment":       {start, []BudgetDraw{one}, false, nil, true, []Spent{{start, end, 7}}},
		"the last moment":        {end - 1, []BudgetDraw{one}, false, nil, true, []Spent{{start, end, 7}}},
		"before":                 {start - 1, []BudgetDraw{one}, false, nil, false, nil},
		"behind":                 {end, []BudgetDraw{one}, false, nil, false, nil},
		"one of two, the first":  {start + 600, []BudgetDraw{one, two}, false, nil, false, []Spent{{start, end, 7}}},
		"one of two, the second": {start + 600, []BudgetDraw{two, one}, false, nil, false, []Spent{{start, end, 7}}},
		"both":                   {start, []BudgetDraw{one, two}, false, nil, true, []Spent{{start - 500, end - 500, 8}, {start, end, 7}}},
		"known":                  {start, []BudgetDraw{one}, false, []Spent{{start, end, 3}}, true, []Spent{{start, end, 3}}},
		"known, held":            {start, []BudgetDraw{one}, true, []Spent{{start, end, 3}}, true, []Spent{{start, end, 7}}},
		"known as more, held":    {start, []BudgetDraw{one}, true, []Spent{{start, end, 9}}, true, []Spent{{start, end, 9}}},
		"known as longer":        {start, []BudgetDraw{one}, false, []Spent{{start, end + 1, 3}}, true, []Spent{{start, end + 1, 3}}},
	} {
		b := &TagBucket{Spent: tc.spent}
		g := &granter{step: &step{at: At{Now: tc.now}}, req: &Request{}, held: tc.held}
		require.Equal(t, tc.open, g.windows(b, &Draw{Budgets: tc.budgets}), name)
		require.Equal(t, tc.want, b.Spent, name)
	}
}
