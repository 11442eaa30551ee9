package throttle

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// limitLot is a lot that is good from one time from now on until another.
func limitLot(tokens int64, from, until time.Duration, window int64) limit.Lot {
	return limit.Lot{Tokens: tokens, From: time.Now().Add(from), Until: time.Now().Add(until), Window: window}
}

// lot is a grant of tokens that are good from now on for d.
func lot(tag string, tokens int64, d time.Duration) TagGrant {
	return TagGrant{Tag: tag, Needed: true, Rate: 1, Lot: limitLot(tokens, 0, d, 1)}
}

func reportOf(s *script, tag string, keep time.Duration) TagReport {
	for _, r := range s.h.ReportTags(keep) {
		if r.Tag == tag {
			return r
		}
	}
	return TagReport{}
}

// With a pool a tag draws from the lots that the pool has granted, and tells the pool of them.
func TestTagDrawsFromLots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := tagsOf(map[string]Quota{"a": {Total: 100, Burst: 10}, "free": {}})
		th, s := scripted(t, Limit{Max: 1000, Burst: 1000}, 1, WithQuotas(q))
		require.Equal(t, 100, s.h.Terms().Quotas.Tags["a"].Total)
		require.Equal(t, time.Second, s.h.Terms().Quotas.Tags["a"].Per, "defaults are filled in")
		time.Sleep(time.Second)
		require.Empty(t, s.h.ReportTags(0))
		a := th.ForTag("a")
		deny(t, a, 3, "nothing is granted yet")
		require.Positive(t, s.pokes.Load())
		take(t, th.ForTag("free"), 5, "no total, no need for a lot")
		require.Equal(t, TagReport{Tag: "a", Refused: 3}, reportOf(s, "a", 0))
		require.Empty(t, s.h.ReportTags(0), "told already")

		c := beginWith(a.Acquire, 8, 0)
		require.EqualValues(t, 8, reportOf(s, "a", 0).Waiting)
		s.h.GrantTags([]TagGrant{lot("a", 5, 2*time.Second)})
		synctest.Wait()
		require.True(t, c.waits(), "not enough")
		s.h.GrantTags([]TagGrant{{Tag: "a", Needed: true, Lot: limitLot(20, time.Second, 3*time.Second, 1)}})
		synctest.Wait()
		require.True(t, c.waits(), "it is not good yet")
		time.Sleep(time.Second)
		synctest.Wait()
		r := c.end(t)
		require.NoError(t, r.err)
		require.EqualValues(t, 17, inHand(th, "a"))

		// What is used less goes back into the lot; what is used more is owed.
		r.permit.Settle(2)
		require.EqualValues(t, 23, inHand(th, "a"))
		p := take(t, a, 4)
		p.Settle(10)
		got := reportOf(s, "a", 6*time.Second) // a fourth of it, for the tag draws: of the first lot, which ends in a second
		require.Equal(t, TagReport{Tag: "a", Used: 12, Refused: 3, InHand: 17, Lasts: 2 * time.Second, Back: 2, BackSpent: 2, Owed: 6}, got)
		require.EqualValues(t, 0, reportOf(s, "a", 0).Back, "once")
		require.EqualValues(t, 17, inHand(th, "a"))
		time.Sleep(2 * time.Second)
		require.EqualValues(t, 0, inHand(th, "a"), "the second one is over")
		require.EqualValues(t, 17, reportOf(s, "a", 0).Back, "what ran out: a budget has it back")
		p, ok := a.TryAcquire(1)
		require.False(t, ok, p)

		// A tag that draws no more gives up all that ends within keep.
		s.h.GrantTags([]TagGrant{lot("a", 10, time.Second)})
		require.EqualValues(t, 0, reportOf(s, "a", 500*time.Millisecond).Back)
		require.EqualValues(t, 10, reportOf(s, "a", 1500*time.Millisecond).Back)

		// A permit that is settled after its lot goes back to the pool.
		s.h.GrantTags([]TagGrant{lot("a", 10, time.Second)})
		p = take(t, a, 10)
		time.Sleep(5 * time.Second)
		p.Settle(4)
		require.EqualValues(t, 0, inHand(th, "a"))
		got = reportOf(s, "a", 0)
		require.Equal(t, []int64{6, 6, 0}, []int64{got.Back, got.BackSpent, got.InHand})
	})
}

func TestTagTellsWhenThePoolHasMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := tagsOf(map[string]Quota{"a": {Total: 100, Budgets: []Budget{{Amount: 1000, Per: "day", Then: "fallback"}}}})
		th, s := scripted(t, Limit{Max: 1000, Burst: 1000}, 1, WithQuotas(q))
		time.Sleep(time.Second)
		again := time.Now().Add(10 * time.Second)
		s.h.GrantTags([]TagGrant{{Tag: "a", Needed: true, Lacks: ReasonBudget, Again: again, Spent: 1000, Budget: 1000, Target: 7, By: "budget", Rate: 3}})
		ctx := timeout(t, time.Second)
		_, err := th.ForTag("a").Acquire(ctx, 1)
		e, ok := errors.AsType[*Error](err)
		require.True(t, ok, err)
		require.Equal(t, []any{ReasonBudget, 10 * time.Second, true}, []any{e.Reason, e.RetryAfter, e.Fallback})
		st := statusOf(th, "a")
		require.Equal(t, []any{int64(1000), int64(1000), 7.0, 3.0, "budget"}, []any{st.Spent, st.Budget, st.Target, st.Rate, st.By})

		_, err = th.ForTag("a").Acquire(WithFallback(context.Background()), 1)
		require.Equal(t, ReasonBudget, reasonOf(err), "it does not wait for the next day")
		c := beginWith(th.ForTag("a").Acquire, 1, 0)
		time.Sleep(time.Minute)
		require.True(t, c.waits())
		s.h.GrantTags([]TagGrant{lot("a", 5, time.Second)})
		require.NoError(t, c.end(t).err)

		s.h.GrantTags(nil)
		require.Zero(t, statusOf(th, "a").Rate, "who is not named has no rate")
		require.EqualValues(t, 4, inHand(th, "a"), "and keeps what it has")
		s.h.GrantTags([]TagGrant{{Tag: "nobody", Needed: true, Lot: limitLot(5, 0, time.Second, 1)}}) // is not known, and stays so
		require.NoError(t, th.Close())
		s.h.GrantTags([]TagGrant{lot("a", 5, time.Second)})
	})
}

// Whatever is drawn, settled, undone and granted at the same time, no token of a quota is lost or made.
func TestTagsAreConserved(t *testing.T) {
	q := tagsOf(map[string]Quota{"a": {Total: 1_000_000}, "b": {Total: 1_000_000}, "c": {}})
	th, s := scripted(t, Limit{Max: 1_000_000_000, Burst: 1_000_000_000}, 1, WithQuotas(q))
	slots := flight(t, 4)
	const granted = 200_000
	s.h.GrantTags([]TagGrant{lot("a", granted, time.Hour), lot("b", granted, time.Hour)})
	limits := []Limiter{
		th.ForTag("a"), th.ForTags("a", "b"), th.ForTags("b", "a", "c"), All(th.ForTag("b"), slots), All(th.ForTag("a"), th.ForTag("b")), th,
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 1))
			for range 1000 {
				l, n := limits[r.IntN(len(limits))], 1+r.IntN(20)
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(r.IntN(3))*time.Millisecond)
				var p Permit
				switch r.IntN(3) {
				case 0:
					p, _ = l.TryAcquire(n)
				case 1:
					p, _ = l.Acquire(ctx, n)
				default:
					p, _ = l.AcquireUpTo(ctx, n)
				}
				cancel()
				p.Cancel()
				switch r.IntN(50) {
				case 0:
					s.h.GrantTags([]TagGrant{{Tag: "a", Needed: true, Rate: r.Float64() * 100}, {Tag: "b", Needed: true}})
				case 1:
					th.Status()
					viewOf(th.ForTag("a")).Throttled()
				case 2:
					s.h.SetPauses([]Paused{{Tag: "b", Until: time.Now().Add(time.Millisecond)}})
				}
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, granted, inHand(th, "a"))
	require.EqualValues(t, granted, inHand(th, "b"))
	for _, tag := range []string{"a", "b", "c", ""} {
		require.Zero(t, statusOf(th, tag).Used, tag)
		require.Zero(t, statusOf(th, tag).Waiting, tag)
	}
	require.Zero(t, th.queue.Len)
	require.True(t, viewOf(th.ForTag("a")).first().lane.Empty())
}

// The local plan divides what a Static share has.
func TestTagsOfAStaticShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		half, err := Replicas(2)
		require.NoError(t, err)
		th := quotaed(t, Limit{Max: 1000, Burst: 1000}, tagsOf(map[string]Quota{"a": {Total: 100, Burst: 20}}), WithSharer(half))
		time.Sleep(time.Second)
		require.EqualValues(t, 10, inHand(th, "a"))
		rates := runLoads(th, time.Second, 10*time.Second, &load{tag: "a", callers: 20})
		require.InDelta(t, 50, rates[0], 1)
	})
}

// A tag whose budget lowers it goes on in the lower class.
func TestBudgetThatLowersTheClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := quotaed(t, Limit{Max: 200}, tagsOf(map[string]Quota{
			"a": {Budgets: []Budget{{Amount: 100, Per: "day", Then: "batch"}}}, "b": {},
		}))
		rates := runLoads(th, 8*time.Second, 20*time.Second, &load{tag: "a", callers: 100}, &load{tag: "b", callers: 100})
		require.InDelta(t, 10, rates[0], 4)
		require.InDelta(t, 190, rates[1], 4)
	})
}

// Hard: no more than Total in any window of Per.
func TestHardTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := quotaed(t, Limit{Max: 1000, Burst: 1000}, tagsOf(map[string]Quota{"a": {Total: 200, Per: 10 * time.Second, Hard: true}}))
		r := rand.New(rand.NewPCG(1, 1))
		var at []time.Time
		for began := time.Now(); time.Since(began) < 2*time.Minute; {
			if p, ok := th.ForTag("a").TryAcquire(1); ok {
				at = append(at, time.Now())
				if r.IntN(100) == 0 {
					time.Sleep(time.Duration(r.IntN(10)) * time.Second)
				}
				_ = p
			} else {
				time.Sleep(5 * time.Millisecond)
			}
		}
		require.Greater(t, len(at), 500)
		for i := range at {
			if i >= 200 {
				require.Greater(t, at[i].Sub(at[i-200]), 10*time.Second)
			}
		}
	})
}

// A tag that has only a budget lacks nothing of it before the first lot comes: its draw is its own demand, not one on the limit.
func TestATagWithABudgetBeforeItsFirstLot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := tagsOf(map[string]Quota{"a": {Budgets: []Budget{{Amount: 1000, Per: "day"}}}})
		th, s := scripted(t, Limit{Max: 1000, Burst: 1000}, 1, WithQuotas(q))
		time.Sleep(time.Second)
		a := th.ForTag("a")
		deny(t, a, 3)
		require.Positive(t, s.pokes.Load())
		require.Zero(t, th.Status().Refused, "the limit has refused nothing")
		require.Equal(t, TagReport{Tag: "a", Refused: 3}, reportOf(s, "a", 0))
		_, err := a.Acquire(timeout(t, time.Second), 1)
		require.Equal(t, ReasonNoShare, reasonOf(err))
		s.h.GrantTags([]TagGrant{{Tag: "a", Needed: true, Lacks: ReasonBudget, Again: time.Now().Add(time.Hour)}})
		_, err = a.Acquire(timeout(t, time.Second), 1)
		require.Equal(t, ReasonBudget, reasonOf(err))
	})
}

// A lineCase has waiting calls of one tag, and the line expected in the report.
type lineCase struct {
	share, even float64 // of a limit of 1,000 a second; even: 0 if unknown
	coming      int64
	calls       []int
	head, line  int64
	more        bool
}

// wrong plays the case, and describes the reported line if it differs.
func (c *lineCase) wrong(t *testing.T) (wrong string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 2000, Per: 2 * time.Second, Burst: 100}, c.share, WithQuotas(tagsOf(map[string]Quota{"a": {Total: 2000}})))
		s.h.Lease(Lease{Share: fraction(c.share), Even: fraction(c.even)})
		for _, n := range c.calls {
			beginWith(th.ForTag("a").Acquire, n, 0)
			synctest.Wait()
		}
		s.h.GrantTags([]TagGrant{{Tag: "a", Needed: true, Rate: 10_000, Coming: c.coming}})
		if r := reportOf(s, "a", time.Second); r.Head != c.head || r.Line != c.line || r.More != c.more {
			wrong = fmt.Sprintf("head %d, line %d, more %t, not as in %+v", r.Head, r.Line, r.More, *c)
		}
	})
	return wrong
}

// wholeCalls: a pod asks for whole calls. Tokens set aside count for the calls that they cover completely, from the first one on.
var wholeCalls = []lineCase{
	{1, 0, 0, []int{60, 1}, 60, 61, false},
	{1, 0, 60, []int{60, 1}, 60, 61, false},
	{1, 0, 61, []int{60, 1, 60}, 60, 121, false},
	{1, 0, 1, []int{60, 1}, 60, 62, false},
	{1, 0, 1, []int{60}, 60, 61, false},           // the one token is for a call that has gone
	{1, 0, 123, []int{60, 60, 1}, 60, 123, false}, // a call of 1 has gone, and nothing more is lacking
	{1, 0, 123, []int{60, 60, 1, 60}, 60, 183, false},
}

// delayedCalls: a call for which an even share earns too little within a report interval is asked for alone. Behind others its tag's tokens
// would lapse.
var delayedCalls = []lineCase{
	{1, 0, 0, []int{10, 900}, 10, 910, false}, // 0.9 s
	{1, 0, 0, []int{10, 1100}, 10, 10, true},
	{1, 0, 0, []int{1100, 10}, 1100, 1110, false},
	{1, 0.5, 0, []int{10, 490}, 10, 500, false},
	{1, 0.5, 0, []int{10, 510}, 10, 10, true},
	{0.2, 0.5, 0, []int{10, 490}, 10, 500, false},
	{0, 0, 0, []int{10, 20}, 10, 10, true}, // nothing is known yet
}

func TestTheLineOfATag(t *testing.T) {
	for _, c := range slices.Concat(wholeCalls, delayedCalls) {
		require.Empty(t, c.wrong(t))
	}
}

// Tokens of callers that wait for the limit are told apart from those that any call can have.
func TestPromisedTokensAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 1, Burst: 1, Per: time.Hour}, 1, WithQuotas(tagsOf(map[string]Quota{"a": {Total: 60}})))
		time.Sleep(time.Second)
		for ok := true; ok; {
			_, ok = th.TryAcquire(1) // until the limit is used up
		}
		s.h.GrantTags([]TagGrant{lot("a", 5, time.Minute)})
		c := beginWith(th.ForTag("a").Acquire, 1, 0)
		synctest.Wait()
		require.True(t, c.waits())
		r := reportOf(s, "a", time.Second)
		require.Equal(t, []int64{4, 1}, []int64{r.InHand, r.Promised})
	})
}
