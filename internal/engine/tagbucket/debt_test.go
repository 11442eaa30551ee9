package tagbucket

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// What a tag owes holds it back for a while, and not for longer.
func TestDebtIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		q    limit.Quota
		debt time.Duration
		most int64
	}{
		"by default":    {limit.Quota{Total: 10}, 0, 6000},
		"a long period": {limit.Quota{Total: 10, Per: time.Hour}, 0, 30},
		"as configured": {limit.Quota{Total: 10}, 3 * time.Second, 30},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(Terms{Quota: c.q.WithDefaults(0), Part: 1, Debt: c.debt, Wall: time.Unix(1_800_000_000, 0)})
			now := 100 * second
			longest := s.longestDebt()
			free := s.AtHand(now)
			require.Equal(t, 1e9-c.most-free, s.Owe(now, 1e9))
			require.EqualValues(t, 7, s.Owe(now, 7), "and nothing more")
			wait, _, _ := s.Due(now, 1)
			require.InDelta(t, longest.Seconds(), wait.Seconds(), longest.Seconds()/20)
			require.Equal(t, 1e9-c.most/2, s.Owe(now+int64(longest/2), 1e9), "what was paid meanwhile")

			p := New(Terms{Quota: c.q.WithDefaults(0), Pooled: true, Debt: c.debt})
			require.Equal(t, 1e9-c.most, p.Owe(0, 1e9))
			require.EqualValues(t, 7, p.Owe(0, 7))
			var r sharing.TagReport
			p.Report(0, 0, &r)
			require.Equal(t, c.most, r.Owed)
			require.EqualValues(t, 7, p.Owe(0, 7), "what the pool was told counts")
			require.Zero(t, p.Owe(int64(longest), 7), "until the quota has earned it")
		})
	}
	b := New(Terms{Quota: limit.Quota{Budgets: []limit.Budget{{Amount: 100, Per: limit.PeriodDay}}}, Part: 1, Wall: time.Unix(1_800_000_000, 0)})
	require.Zero(t, b.Owe(0, 30), "a budget is spent, and owes nothing")
	require.EqualValues(t, 70, b.AtHand(0))
	b.SetBound(0, 10)
	b.Owe(0, 1e9)
	wait, _, _ := b.Due(0, 1)
	require.LessOrEqual(t, b.bound.due(0, 0), leastDebt+time.Second)
	require.Positive(t, wait)
}

func TestForgive(t *testing.T) {
	s := New(Terms{Quota: limit.Quota{Total: 10}.WithDefaults(0), Part: 1, Wall: time.Unix(1_800_000_000, 0)})
	s.SetBound(0, 10)
	s.Owe(100*second, 1000)
	s.Forgive(100 * second)
	wait, _, _ := s.Due(100*second, 1)
	require.Equal(t, 100*time.Millisecond, wait)
	require.Zero(t, s.AtHand(100*second))

	p := New(Terms{Quota: limit.Quota{Total: 10}.WithDefaults(0), Pooled: true})
	p.Owe(0, 1e9)
	p.Forgive(0)
	var r sharing.TagReport
	p.Report(0, 0, &r)
	require.Zero(t, r.Owed)
	require.Zero(t, p.Owe(0, 100))
}

func TestRepay(t *testing.T) {
	s := New(Terms{Quota: limit.Quota{Total: 10, Burst: 20}.WithDefaults(0), Part: 1, Wall: time.Unix(1_800_000_000, 0)})
	s.Owe(100*second, 50)
	s.Repay(100*second, 40)
	require.EqualValues(t, 10, s.AtHand(100*second))
	s.Repay(100*second, 40)
	require.EqualValues(t, 20, s.AtHand(100*second), "no more than can be saved up")

	p := New(Terms{Quota: limit.Quota{Total: 10}.WithDefaults(0), Pooled: true})
	p.Owe(0, 50)
	p.Repay(0, 60)
	var r sharing.TagReport
	p.Report(0, 0, &r)
	require.Equal(t, []int64{0, 10}, []int64{r.Owed, r.Back})

	const most = 6000 // in ten minutes
	require.Zero(t, p.Owe(0, most))
	p.Repay(0, most)
	require.Zero(t, p.Owe(0, most), "what was paid back leaves room for other debt")
	require.EqualValues(t, 1, p.Owe(0, 1))
}
