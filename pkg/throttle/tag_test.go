package throttle

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// quotaed returns a Throttle with quotas.
func quotaed(t testing.TB, limit Limit, q Quotas, opts ...Option) *Throttle {
	t.Helper()
	th, err := New(limit, append(opts, WithQuotas(q))...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, th.Close()) })
	return th
}

// viewOf is what ForTag returns where there are quotas.
func viewOf(l Limiter) *tagView {
	v, ok := l.(*tagView)
	if !ok {
		panic("no quotas")
	}
	return v
}

func tagsOf(quotas map[string]Quota) Quotas { return Quotas{Tags: quotas} }

// inHand is how many tokens of a tag's quota are at hand.
func inHand(th *Throttle, tag string) int64 {
	return viewOf(th.ForTag(tag)).first().status().InHand
}

func statusOf(th *Throttle, tag string) TagStatus {
	for _, s := range th.Status().Tags {
		if s.Tag == tag {
			return s
		}
	}
	return TagStatus{}
}

func TestForTagWithoutQuotasIsTheThrottle(t *testing.T) {
	th := whole(t, Limit{Max: 10})
	require.Same(t, th, th.ForTag("a"))
	require.Same(t, th, th.ForTags("a", "b"))
	require.Nil(t, th.Status().Tags)
	_, ok := All(th, th.ForTag("a")).(Tagger)
	require.False(t, ok, "it does not tell tags apart")
}

func TestQuotasAreChecked(t *testing.T) {
	_, err := New(Limit{}, WithQuotas(Quotas{Other: Quota{Total: 1}}))
	require.ErrorContains(t, err, "max 0")
	_, err = New(Limit{Max: 10}, WithQuotas(tagsOf(map[string]Quota{"a": {Reserved: 11}})))
	require.ErrorContains(t, err, "reserve 11")
}

// What a hard limit grants is less than its max, and depends on its burst: that is what can be reserved.
func TestQuotasFitWhatAHardLimitGrants(t *testing.T) {
	limit := Limit{Max: 1000, Burst: 100, Hard: true} // (1000 + 1 - 100) / 1.0833
	reserved := func(n int) Quotas { return tagsOf(map[string]Quota{"a": {Reserved: n - 1}, "b": {Reserved: 1}}) }
	require.NoError(t, limit.CheckQuotas(reserved(831)))
	_, err := New(limit, WithQuotas(reserved(832)))
	require.EqualError(t, err, "quotas reserve 832 tokens per second together, allowed: at most what the hard limit grants in the long run, which is 831.692")
	limit.Burst = 10
	require.NoError(t, limit.CheckQuotas(reserved(832)))
	limit.Hard = false
	require.NoError(t, limit.CheckQuotas(reserved(1000)))
}

// A tag gets its total and no more, whatever the limit has.
func TestTotalHoldsOneTag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := quotaed(t, Limit{Max: 1000, Burst: 1000}, tagsOf(map[string]Quota{"a": {Total: 10, Burst: 5}}))
		time.Sleep(10 * time.Second)
		a := th.ForTag("a")
		n := 0
		for {
			if _, ok := a.TryAcquire(1); !ok {
				break
			}
			n++
		}
		require.Equal(t, 5, n, "what was saved up")
		began := time.Now()
		for range 20 {
			acquire(t, a, 1)
		}
		require.Equal(t, 2*time.Second, time.Since(began))
		take(t, th, 500, "others have the rest")
		require.Equal(t, int64(25), statusOf(th, "a").Used)
		require.Equal(t, int64(1), statusOf(th, "a").Refused)
		require.Equal(t, int64(500), statusOf(th, "").Used)
	})
}

// What one draw needs above the burst is saved up for it while it waits.
func TestDrawAboveTheBurstOfATag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := quotaed(t, Limit{Max: 1000, Burst: 1000}, tagsOf(map[string]Quota{"a": {Total: 10, Burst: 2}}))
		time.Sleep(time.Second)
		a := th.ForTag("a")
		began := time.Now()
		acquire(t, a, 8)
		require.Equal(t, 600*time.Millisecond, time.Since(began), "two were there")
		_, err := a.Acquire(context.Background(), 11)
		require.Equal(t, ReasonTooLarge, reasonOf(err))
		require.EqualError(t, err, `numathrottle: tag "a": a cost of 11 can never be granted, allowed: at most 10 (quotas.tags.a.total)`)
	})
}

// A draw that can never be had is told the largest that can: by the limit, and by each quota that it would draw for.
func TestWhatIsTooLargeForATagIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := quotaed(t, Limit{Max: 100}, tagsOf(map[string]Quota{
			"total": {Total: 30}, "hard": {Total: 600, Per: time.Minute, Burst: 7, Hard: true}, "free": {}, "shadow": {Total: 5, Shadow: true},
			"budget": {Budgets: []Budget{{Amount: 50, Per: "day"}}},
		}))
		for name, most := range map[string]int{"total": 30, "hard": 7, "free": 100, "shadow": 100, "budget": 50, "unknown": 100} {
			for n, cost := range []int{most + 1, 101, math.MaxInt} {
				_, err := th.ForTag(name).Acquire(t.Context(), cost)
				require.Equal(t, ReasonTooLarge, reasonOf(err), name)
				require.Equal(t, most, throttled(t, err).Largest, "%s, %d", name, n)
			}
			_, err := All(th.ForTag(name), full(t, 1000)).Acquire(t.Context(), most+1)
			require.Equal(t, most, throttled(t, err).Largest, name)
		}
		_, err := th.ForTags("total", "hard").Acquire(t.Context(), 31)
		require.LessOrEqual(t, throttled(t, err).Largest, 30)
		_, err = th.ForTag("total").Acquire(timeout(t, time.Millisecond), 30)
		require.Zero(t, throttled(t, err).Largest, "it is not too large")
	})
}

func reasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return ""
}

func TestErrorsNameTagReasonAndTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := quotaed(t, Limit{Max: 1000, Burst: 1000}, tagsOf(map[string]Quota{
			"a": {Total: 10, Burst: 1}, "b": {Budgets: []Budget{{Amount: 3, Per: "hour"}}},
			"c": {Budgets: []Budget{{Amount: 3, Per: "day", Then: "fallback"}}},
		}), WithName("llm"))
		time.Sleep(time.Second)
		ctx := timeout(t, 100*time.Millisecond)
		_, err := th.ForTag("a").Acquire(ctx, 5)
		e, ok := errors.AsType[*Error](err)
		require.True(t, ok, err)
		require.Equal(t, `numathrottle: limit "llm": tag "a": 5 tokens cannot be had in time (quota), retry after 400ms`, e.Error())
		require.InDelta(t, 10, viewOf(e.By()).Status().Rate, 1e-9, "what refused earns so much")

		for tag, fallback := range map[string]bool{"b": false, "c": true} {
			take(t, th.ForTag(tag), 2)
			_, err = th.ForTag(tag).Acquire(ctx, 2)
			e, ok = errors.AsType[*Error](err)
			require.True(t, ok, err)
			require.Equal(t, ReasonBudget, e.Reason)
			require.Equal(t, fallback, e.Fallback)
			_, end := Budget{Per: map[string]Budget{"b": {Per: "hour"}, "c": {Per: "day"}}[tag].Per}.Window(time.Now())
			require.Equal(t, time.Until(end), e.RetryAfter, "the window's end")
			held, throttled := viewOf(th.ForTag(tag)).Throttled()
			require.False(t, throttled, held) // one token is left
			take(t, th.ForTag(tag), 1)
			held, throttled = viewOf(th.ForTag(tag)).Throttled()
			require.True(t, throttled)
			require.Equal(t, ReasonBudget, held.Reason)
			require.Equal(t, tag, held.Tag)
		}
		st := statusOf(th, "b")
		require.Equal(t, []any{int64(3), int64(3), "budget"}, []any{st.Spent, st.Budget, st.By})
		time.Sleep(time.Hour)
		take(t, th.ForTag("b"), 3, "a new window has begun")
	})
}

// What is settled goes to the quota as it goes to the limit.
func TestSettlementOfATag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := quotaed(t, Limit{Max: 100, Per: time.Hour, Burst: 100}, tagsOf(map[string]Quota{
			"a": {Total: 60, Burst: 60}, "b": {Budgets: []Budget{{Amount: 50, Per: "month"}}},
		}))
		time.Sleep(time.Hour)
		take := func(l Limiter, n int) Permit {
			p := take(t, l, n)
			return p
		}
		p := take(th.ForTag("a"), 40)
		require.EqualValues(t, 20, statusOf(th, "a").InHand)
		p.Settle(10)
		p.Cancel() // counts no more
		require.EqualValues(t, 50, statusOf(th, "a").InHand)
		require.EqualValues(t, 10, statusOf(th, "a").Used)
		take(th.ForTag("a"), 10).Settle(35)
		require.EqualValues(t, 15, statusOf(th, "a").InHand)
		require.InDelta(t, 55, th.Status().Tokens, 0.01, "the limit has it too")
		q := take(th.ForTags("b", "a"), 10)
		require.EqualValues(t, 5, statusOf(th, "a").InHand)
		require.EqualValues(t, 10, statusOf(th, "b").Spent)
		q.Cancel()
		require.EqualValues(t, 15, statusOf(th, "a").InHand)
		require.EqualValues(t, 0, statusOf(th, "b").Spent)
		take(th.ForTag("b"), 10).Settle(20)
		require.EqualValues(t, 20, statusOf(th, "b").Spent)

		// The same for permits that were waited for.
		time.Sleep(time.Hour)
		take(th.ForTag("a"), 60)
		time.Sleep(time.Hour)
		require.EqualValues(t, 60, statusOf(th, "a").InHand)
		take(th.ForTag("a"), 60)
		w := acquire(t, th.ForTag("a"), 20)
		require.EqualValues(t, 0, statusOf(th, "a").InHand)
		w.Settle(5)
		require.EqualValues(t, 15, statusOf(th, "a").InHand)
		w.Settle(0)
		require.EqualValues(t, 15, statusOf(th, "a").InHand)
	})
}

// ForTags draws from all or from none.
func TestForTagsIsAllOrNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := quotaed(t, Limit{Max: 1000, Burst: 1000}, tagsOf(map[string]Quota{
			"tenant": {Total: 100, Burst: 100}, "model": {Total: 10, Burst: 10},
		}))
		time.Sleep(10 * time.Second)
		both := th.ForTags("tenant", "model")
		require.Same(t, both, th.ForTags("tenant", "model"), "it is remembered")
		deny(t, both, 20)
		require.EqualValues(t, 100, inHand(th, "tenant"))
		require.InDelta(t, 1000, th.Status().Tokens, 0.01)
		take(t, both, 10)
		require.EqualValues(t, 90, inHand(th, "tenant"))
		require.InDelta(t, 990, th.Status().Tokens, 0.01, "the limit is drawn from once")
		ctx := timeout(t, time.Second/2)
		_, err := both.Acquire(ctx, 8)
		e, ok := errors.AsType[*Error](err)
		require.True(t, ok, err)
		require.Equal(t, "model", e.Tag)
		_, err = both.Acquire(ctx, 4)
		require.NoError(t, err)
		require.EqualValues(t, 0, statusOf(th, "model").InHand)
		take(t, th.ForTags("tenant", "tenant"), 1)
		require.EqualValues(t, 95, inHand(th, "tenant"), "a tag twice is one")
	})
}

// A tag without tokens holds up nobody, and neither do its callers that wait.
func TestExhaustedTagDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := quotaed(t, Limit{Max: 1000, Burst: 100}, tagsOf(map[string]Quota{
			"spent": {Total: 1, Burst: 1}, "broke": {Budgets: []Budget{{Amount: 1, Per: "month"}}},
		}))
		time.Sleep(2 * time.Second)
		ctx, cancel := context.WithCancel(context.Background())
		for range 200 {
			go func() { _, _ = th.ForTag("spent").Acquire(ctx, 1) }()
			go func() { _, _ = th.ForTag("broke").Acquire(ctx, 1) }()
		}
		synctest.Wait()
		for range 50 {
			began := time.Now()
			acquire(t, th.ForTag("other"), 10)
			require.LessOrEqual(t, time.Since(began), 11*time.Millisecond)
		}
		require.EqualValues(t, 199, statusOf(th, "spent").Waiting)
		require.EqualValues(t, 199, statusOf(th, "broke").Waiting)
		cancel()
		synctest.Wait()
		require.EqualValues(t, 0, statusOf(th, "spent").Waiting)
	})
}

// A pause of a tag holds this tag alone, known or not.
func TestPauseHoldsItsTagAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := quotaed(t, Limit{Max: 1000, Burst: 1000}, tagsOf(map[string]Quota{"a": {Total: 100}, "b": {}}))
		time.Sleep(time.Second)
		for _, tag := range []string{"a", "b", "unknown"} {
			_, err := th.Pause(context.Background(), time.Now().Add(time.Minute), "maintenance", PauseTag(tag))
			require.NoError(t, err)
			deny(t, th.ForTag(tag), 1)
			held, throttled := viewOf(th.ForTag(tag)).Throttled()
			require.True(t, throttled)
			require.Equal(t, []any{ReasonPause, tag, time.Minute}, []any{held.Reason, held.Tag, held.RetryAfter})
			deny(t, th.ForTags("c", tag), 1)
			for _, l := range []Limiter{th, th.ForTag("c"), th.ForTag("d")} {
				take(t, l, 1)
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			_, err = th.ForTag(tag).Acquire(ctx, 1)
			cancel()
			require.Equal(t, ReasonPause, reasonOf(err))
			began := time.Now()
			acquire(t, th.ForTag(tag), 1)
			require.InDelta(t, time.Minute, time.Since(began), float64(time.Second))

			_, err = th.Pause(context.Background(), time.Time{}, "for good", PauseTag(tag))
			require.NoError(t, err)
			go func() {
				time.Sleep(time.Hour)
				assert.NoError(t, th.Resume(context.Background(), PauseTag(tag)))
			}()
			began = time.Now()
			acquire(t, th.ForTag(tag), 1)
			require.Equal(t, time.Hour, time.Since(began))
		}
	})
}

// A quota in shadow refuses nothing, and counts what it would have refused.
func TestShadowRefusesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := quotaed(t, Limit{Max: 1000, Burst: 1000}, tagsOf(map[string]Quota{"a": {Total: 10, Burst: 10, Shadow: true}}))
		time.Sleep(2 * time.Second)
		for range 30 {
			take(t, th.ForTag("a"), 1)
		}
		require.EqualValues(t, 20, statusOf(th, "a").Shadowed)
		require.EqualValues(t, 30, statusOf(th, "a").Used)
	})
}

// Tags of a pattern have quotas of their own; all others share one.
func TestPatternsAndOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := quotaed(t, Limit{Max: 1000, Burst: 1000}, Quotas{
			Match: []QuotaPattern{{Tag: "free/*", Quota: Quota{Total: 10, Burst: 5}}}, Other: Quota{Total: 20, Burst: 7},
		})
		time.Sleep(2 * time.Second)
		for _, tag := range []string{"free/a", "free/b"} {
			take(t, th.ForTag(tag), 5, tag)
			deny(t, th.ForTag(tag), 1, tag)
		}
		others := []Limiter{
			th, th.ForTag("x"), th.ForTag("y"), th.ForTag(""),
			th.ForTag("bad\xff"), th.ForTag(strings.Repeat("x", 65)), All(th, th.ForTag("z")),
		}
		for i, l := range others {
			_, ok := l.TryAcquire(1)
			require.Equal(t, i < 6, ok, i)
		}
		require.EqualValues(t, 1, statusOf(th, "").InHand, "All draws twice, or not at all")
	})
}

// However many names come, what is remembered of them is bounded.
func TestHostileNamesAreBounded(t *testing.T) { synctest.Test(t, hostileNames) }

// hostileNames runs while time stands still: no tag becomes idle.
func hostileNames(t *testing.T) {
	th := quotaed(t, Limit{Max: 1_000_000}, Quotas{
		Tags: map[string]Quota{"known": {Total: 5}}, Match: []QuotaPattern{{Tag: "free/*", Quota: Quota{Total: 10}}},
	})
	require.Equal(t, 12_288, th.tags.most, "as docs/quotas.md says")
	th.tags.most = fewTags
	for i := range 10_000 {
		th.ForTag(fmt.Sprint("n", i)).TryAcquire(1)
		if i%4 == 0 {
			th.ForTag(fmt.Sprint("free/", i)).TryAcquire(1)
			th.ForTags(fmt.Sprint("n", i), fmt.Sprint("free/", i)).TryAcquire(1)
		}
	}
	s := th.tags
	require.LessOrEqual(t, len(s.tags), fewTags)
	require.LessOrEqual(t, len(s.limiters), fewTags+sharedTags+maxNames+1)
	require.LessOrEqual(t, len(s.joint), maxNames)
	require.LessOrEqual(t, len(th.Status().Tags), fewTags+sharedTags)
	require.Equal(t, "known", viewOf(th.ForTag("known")).name)
	require.Contains(t, s.shared[:], viewOf(th.ForTag("free/999999999")).first(), "who comes late shares a quota")
}

func TestKnownTagTakesNoAllocation(t *testing.T) {
	th := quotaed(t, Limit{Max: 1_000_000_000, Burst: 1_000_000}, tagsOf(map[string]Quota{"a": {Total: 500_000_000}, "b": {}}))
	th.ForTags("a", "b")
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		th.ForTag("a").TryAcquire(1)
		th.ForTag("nobody").TryAcquire(1)
		th.ForTags("a", "b").TryAcquire(1)
	}))
}
