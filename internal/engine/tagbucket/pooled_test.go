package tagbucket

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// dry is a tag bucket of a total of 10 per second, of which the pool has said at 0 that it has one more token at a time.
func dry(again int64, g sharing.TagGrant) *Bucket {
	s := pooled(limit.Quota{Total: 10, Burst: 5})
	g.Needed, g.Lacks = true, limit.ReasonQuota
	s.Grant(g, 0, 2*second, again)
	return s
}

// When the next batch comes nobody knows, but what the total cannot have earned by then is in none.
func TestTheLeastThatTakes(t *testing.T) {
	ms := int64(time.Millisecond)
	for name, c := range map[string]struct {
		s      *Bucket
		now, n int64
		d      time.Duration
		known  bool
	}{
		"one":                     {dry(100*ms, sharing.TagGrant{}), 0, 1, 100 * time.Millisecond, true},
		"ten":                     {dry(100*ms, sharing.TagGrant{}), 0, 10, time.Second, true},
		"later one may be there":  {dry(100*ms, sharing.TagGrant{}), 400 * ms, 4, 0, false},
		"later ten are not":       {dry(100*ms, sharing.TagGrant{}), 400 * ms, 10, 600 * time.Millisecond, false},
		"beside what is in hand":  {dry(100*ms, sharing.TagGrant{Batch: sharing.Batch{Tokens: 6}}), 400 * ms, 16, 600 * time.Millisecond, false},
		"for a large draw":        {dry(3*second, sharing.TagGrant{AgainFor: 40}), 0, 40, 3 * time.Second, true},
		"smaller than that":       {dry(3*second, sharing.TagGrant{AgainFor: 40}), 0, 39, 0, false},
		"the pool has not said":   {pooled(limit.Quota{Total: 10, Burst: 5}), 0, 1000, 0, false},
		"others may have more":    {dry(0, sharing.TagGrant{}), 0, 1000, 0, false},
		"nothing bounds the rate": {pooled(limit.Quota{Budgets: []limit.Budget{{Amount: 10, Per: limit.PeriodDay}}}), 0, 1000, 0, false},
	} {
		lacks := limit.ReasonQuota
		if name == "nothing bounds the rate" {
			c.s.Grant(sharing.TagGrant{Needed: true, Lacks: limit.ReasonQuota}, 0, 0, 0)
			lacks = limit.ReasonNoShare // there is no total
		}
		d, why, known := c.s.Due(c.now, c.n)
		require.Equal(t, []any{c.d, lacks, c.known}, []any{d, why, known}, name)
	}
}

// What goes back to the pool can come again at once, and what the pool has forgotten says nothing.
func TestTheLeastIsNotWhatGoesBack(t *testing.T) {
	s := dry(second/10, sharing.TagGrant{Batch: sharing.Batch{Tokens: 6}})
	s.Report(second/2, 2*second, &sharing.TagReport{})
	d, _, _ := s.Due(second/2, 10)
	require.Zero(t, d, "four more in half a second")
	d, _, _ = s.Due(second/2, 12)
	require.Equal(t, 100*time.Millisecond, d)

	forgets := map[string]func(s *Bucket){
		"void":      func(s *Bucket) { s.Grant(sharing.TagGrant{Needed: true, Void: true}, 0, 0, 0) },
		"forgotten": func(s *Bucket) { s.Grant(sharing.TagGrant{Needed: true, Forgotten: true}, 0, 0, 0) },
		"quota":     func(s *Bucket) { s.SetQuota(limit.Quota{Total: 20, Per: time.Second}) },
	}
	for name, forget := range forgets {
		s := dry(second/10, sharing.TagGrant{})
		s.Grant(sharing.TagGrant{Needed: true}, 0, 0, 0)
		d, _, _ := s.Due(second/2, 100)
		require.Equal(t, 9500*time.Millisecond, d, "it is still known")
		forget(s)
		d, _, _ = s.Due(second/2, 100)
		require.Zero(t, d, name)
	}
}

// Who is refused comes back when this process's part of the total has earned what it wants, or the total where no part is known.
func TestExpect(t *testing.T) {
	for name, c := range map[string]struct {
		s *Bucket
		n int64
		d time.Duration
	}{
		"the whole total":         {dry(second/10, sharing.TagGrant{}), 10, time.Second},
		"a part":                  {dry(second/10, sharing.TagGrant{Rate: 2}), 10, 5 * time.Second},
		"less what is in hand":    {dry(second/10, sharing.TagGrant{Rate: 2, Batch: sharing.Batch{Tokens: 6}}), 10, 2 * time.Second},
		"no more than the total":  {dry(second/10, sharing.TagGrant{Rate: 1000}), 10, time.Second},
		"the pool has not said":   {pooled(limit.Quota{Total: 10, Burst: 5}), 10, time.Second},
		"what is there":           {dry(second/10, sharing.TagGrant{Rate: 2, Batch: sharing.Batch{Tokens: 60}}), 10, 0},
		"without a total nothing": {pooled(limit.Quota{Budgets: []limit.Budget{{Amount: 10, Per: limit.PeriodDay}}}), 10, 0},
	} {
		require.Equal(t, c.d, c.s.Expect(0, c.n), name)
	}
	s := dry(second/10, sharing.TagGrant{Rate: 2})
	require.Equal(t, 500*time.Millisecond, s.Expect(second/2, 1), "it may be there by now, but who knows")
	s.Grant(sharing.TagGrant{Needed: true, Rate: 0.001, Lacks: limit.ReasonBudget}, 0, 0, 3*second)
	require.Equal(t, 2*time.Second, s.Expect(second, 1), "when a budget's window ends is known")
}

// Tokens that were set aside may arrive a little late. Until then the wait for them is known.
func TestTokensSetAsideAreExpectedAWhileLonger(t *testing.T) {
	const at = 10 * second
	for _, coming := range []int64{0, 60} {
		s := pooled(limit.Quota{Total: 60})
		s.Grant(sharing.TagGrant{Needed: true, Coming: coming, AgainFor: 60}, 0, 0, at)
		d, _, known := s.Due(at-second, 60)
		require.True(t, known)
		require.Equal(t, time.Second, d)
		_, _, known = s.Due(at-second, 59)
		require.False(t, known, "less may come sooner")
		d, _, known = s.Due(at, 60)
		require.Equal(t, coming > 0, known)
		if known {
			require.Equal(t, handOver, d)
		}
		_, _, known = s.Due(at+int64(handOver), 60)
		require.False(t, known)
	}
}
