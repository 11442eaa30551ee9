package throttle

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// timesOf is the time by reason, rounded to 10 ms.
func timesOf(stats []WaitStats) map[Reason]time.Duration {
	times := map[Reason]time.Duration{}
	for _, s := range stats {
		if d := s.Time.Round(10 * time.Millisecond); d > 0 {
			times[s.Reason] = d
		}
	}
	return times
}

func tagTimes(th *Throttle, tag string) map[Reason]time.Duration {
	for _, s := range th.TagWaitStats() {
		if s.Tag == tag {
			return timesOf(s.Stats)
		}
	}
	return nil
}

// What callers wait for a cap, a budget or the end of a pause of their tag is time during which calls wait, for the reason that holds
// at that moment, and no moment counts twice.
func TestTimeWaitedForQuotas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := quotaed(t, Limit{Max: 1000, Burst: 100}, tagsOf(map[string]Quota{
			"capped": {Total: 60, Per: time.Minute, Burst: 1}, "paused": {},
			"spent": {Budgets: []Budget{{Amount: 10, Per: "hour"}}},
		}))
		time.Sleep(time.Second)
		take(t, th.ForTag("capped"), 1)
		take(t, th.ForTag("spent"), 10)

		capped := begin2(th.ForTag("capped"), 5)
		time.Sleep(2 * time.Second)
		require.Equal(t, map[Reason]time.Duration{ReasonQuota: 2 * time.Second}, timesOf(th.WaitStats()))
		require.Equal(t, 1, th.Status().Waiting)
		up, held := th.HoldUp()
		require.True(t, held)
		require.Equal(t, []any{ReasonQuota, true, "capped", 1, 2 * time.Second}, []any{up.Reason, up.OfTag, up.Tag, up.Waiting, up.Longest})

		spent := begin2(th.ForTag("spent"), 1)
		time.Sleep(time.Second)
		require.Equal(t, map[Reason]time.Duration{ReasonQuota: 3 * time.Second}, timesOf(th.WaitStats()), "both at once count once")
		require.Equal(t, map[Reason]time.Duration{ReasonQuota: 3 * time.Second}, tagTimes(th, "capped"))
		require.Equal(t, map[Reason]time.Duration{ReasonBudget: time.Second}, tagTimes(th, "spent"))
		capped.cancel()
		synctest.Wait()
		time.Sleep(4 * time.Second)
		require.Equal(t, map[Reason]time.Duration{ReasonQuota: 3 * time.Second, ReasonBudget: 4 * time.Second}, timesOf(th.WaitStats()))
		spent.cancel()

		_, err := th.Pause(context.Background(), time.Now().Add(5*time.Second), "test", PauseTag("paused"))
		require.NoError(t, err)
		paused := begin2(th.ForTag("paused"), 1)
		up, _ = th.HoldUp()
		require.Equal(t, []any{ReasonPause, true, "paused", 1}, []any{up.Reason, up.OfTag, up.Tag, up.Waiting})
		time.Sleep(10 * time.Second)
		require.NoError(t, paused.end(t).err)
		require.Equal(t, map[Reason]time.Duration{
			ReasonQuota: 3 * time.Second, ReasonBudget: 4 * time.Second, ReasonPause: 5 * time.Second,
		}, timesOf(th.WaitStats()))
		require.Equal(t, map[Reason]time.Duration{ReasonPause: 5 * time.Second}, tagTimes(th, "paused"))
		require.Zero(t, th.Status().Waiting)
		_, held = th.HoldUp()
		require.False(t, held)
	})
}

func begin2(l Limiter, n int) *call { return beginWith(l.Acquire, n, 0) }

// A caller that waits for the limit and then for its tag, or the other way round, waits once. The reason changes with what holds it.
func TestTimeMovesBetweenQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 100, Burst: 100}, 1, WithQuotas(tagsOf(map[string]Quota{"a": {Total: 10, Burst: 10}, "b": {}})))
		time.Sleep(time.Second)
		c := begin2(th.ForTag("a"), 5) // the pool has given nothing yet
		time.Sleep(time.Second)
		s.h.GrantTags([]TagGrant{{Tag: "a", Needed: true, Lacks: ReasonBudget}})
		time.Sleep(2 * time.Second)
		s.h.Lease(Lease{Reason: ReasonReplaced})
		s.h.GrantTags([]TagGrant{{Tag: "a", Needed: true, Lot: limitLot(10, 0, time.Minute, 1)}})
		time.Sleep(3 * time.Second)
		s.h.Lease(Lease{Share: WholeShare})
		time.Sleep(100 * time.Millisecond) // its tokens have to come first: 50 ms by the limit
		require.NoError(t, c.end(t).err)
		all := timesOf(th.WaitStats())
		sum := time.Duration(0)
		for _, d := range all {
			sum += d
		}
		require.Equal(t, 6050*time.Millisecond, sum, "%v", all)
		require.Equal(t, 2*time.Second, all[ReasonBudget], "%v", all)
		require.Equal(t, 3*time.Second, all[ReasonReplaced], "%v", all)
		ofTag := tagTimes(th, "a")
		require.Equal(t, all[ReasonBudget], ofTag[ReasonBudget])
		require.InDelta(t, all[ReasonReplaced].Seconds(), ofTag[ReasonReplaced].Seconds(), 1, "looked at once a second")
	})
}

// The limit comes first where callers wait for it, too; and draws that do not wait are seen by their refusals.
func TestWhatHoldsMostCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := quotaed(t, Limit{Max: 10, Burst: 1}, Quotas{
			Tags:  map[string]Quota{"a": {Total: 60, Per: time.Minute, Burst: 1}, "b": {}},
			Match: []QuotaPattern{{Tag: "free/*", Quota: Quota{Total: 1, Per: time.Hour}}},
		})
		time.Sleep(time.Second)
		for range 10 { // of the total, and never by the limit
			th.ForTag("a").TryAcquire(1)
			time.Sleep(200 * time.Millisecond)
		}
		up, held := th.HoldUp()
		require.True(t, held)
		require.Equal(t, []any{ReasonQuota, "a", 0}, []any{up.Reason, up.Tag, up.Waiting})

		calls := []*call{}
		for range 3 {
			calls = append(calls, begin2(th.ForTag("a"), 1))
		}
		for range 30 {
			calls = append(calls, begin2(th.ForTag("b"), 1))
		}
		up, _ = th.HoldUp()
		require.Equal(t, []any{ReasonLimit, false}, []any{up.Reason, up.OfTag})
		require.Equal(t, 32, th.Status().Waiting)
		for _, c := range calls {
			c.cancel()
		}
		synctest.Wait()
		th.ForTag("free/x").TryAcquire(1)
		th.ForTag("free/x").TryAcquire(1)
		time.Sleep(time.Hour)
		_, held = th.HoldUp()
		require.False(t, held)
		stats := th.TagWaitStats()
		require.Empty(t, stats[0].Tag, "all without a quota by name")
		require.Equal(t, int64(2), stats[0].Stats[0].Refusals)
		require.Equal(t, []string{"", "a", "b"}, []string{stats[0].Tag, stats[1].Tag, stats[2].Tag})
	})
}
