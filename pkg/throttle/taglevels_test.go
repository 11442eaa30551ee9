package throttle

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// ofBudget is a quota of so many tokens.
func ofBudget(n int64) Quota { return Quota{Budgets: []Budget{{Amount: n, Per: "month"}}} }

// teams are quotas of teams, and of keys below them.
func teams() Quotas {
	return Quotas{
		Tags:  map[string]Quota{"a": ofBudget(20), "a/vip": ofBudget(15), "b": ofBudget(30)},
		Match: []QuotaPattern{{Tag: "a/*", Quota: ofBudget(5)}, {Tag: "x/*", Quota: ofBudget(3)}},
		Other: ofBudget(10),
	}
}

// usedBy is what each tag has used.
func usedBy(th *Throttle) map[string]int64 {
	used := map[string]int64{}
	for _, st := range th.Status().Tags {
		if st.Used != 0 {
			used[st.Tag] = st.Used
		}
	}
	return used
}

// A draw counts at the first level always, and at the second where that has a quota of its own. Refusals name the level that is short.
func TestTwoLevels(t *testing.T) {
	for name, c := range map[string]struct {
		first, second string
		draws, gets   int
		short         string // the tag in the refusal
		used          map[string]int64
	}{
		"key by name":             {"a", "a/vip", 20, 15, "a/vip", map[string]int64{"a": 15, "a/vip": 15}},
		"key of the pattern":      {"a", "a/k", 20, 5, "a/k", map[string]int64{"a": 5, "a/k": 5}},
		"key without a quota":     {"b", "b/k", 40, 30, "b", map[string]int64{"b": 30}},
		"unknown team":            {"c", "c/k", 20, 10, "", map[string]int64{"": 10}},
		"unknown, with a pattern": {"x", "x/k", 20, 3, "x/k", map[string]int64{"": 3, "x/k": 3}},
		"no second":               {"a", "", 30, 20, "a", map[string]int64{"a": 20}},
		"second is no name":       {"a", "a/\n", 30, 20, "a", map[string]int64{"a": 20}},
		"no first":                {"", "/k", 20, 10, "", map[string]int64{"": 10}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th := quotaed(t, Limit{Max: 1e6, Burst: 1e6}, teams())
				time.Sleep(time.Second)
				l, gets := forLevels(th, c.first, c.second), 0
				for range c.draws {
					if _, ok := l.TryAcquire(1); ok {
						gets++
					}
				}
				require.Equal(t, c.gets, gets)
				require.Equal(t, c.used, usedBy(th))
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := forLevels(th, c.first, c.second).Acquire(ctx, 1)
				e, ok := errors.AsType[*Error](err)
				require.True(t, ok, err)
				require.Equal(t, c.short, e.Tag)
				require.Equal(t, ReasonBudget, e.Reason)
			})
		})
	}
}

// In an All each limit has the second level where its own quotas name it.
func TestTwoLevelsOfSeveralLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := quotaed(t, Limit{Max: 1e6, Burst: 1e6}, tagsOf(map[string]Quota{"a": {}, "a/k": {}}))
		calls := quotaed(t, Limit{Max: 1e6, Burst: 1e6}, tagsOf(map[string]Quota{"a": {}}))
		plain := whole(t, Limit{Max: 1e6, Burst: 1e6})
		time.Sleep(time.Second)
		_, err := forLevels(All(tokens, PerCall(calls), plain), "a", "a/k").Acquire(t.Context(), 7)
		require.NoError(t, err)
		require.Equal(t, map[string]int64{"a": 7, "a/k": 7}, usedBy(tokens))
		require.Equal(t, map[string]int64{"a": 1}, usedBy(calls))
		require.EqualValues(t, 7, plain.Status().Granted)
		require.Same(t, plain, forLevels(plain, "a", "a/k"), "it tells no tags apart")
	})
}

// A call that waits for one level holds nothing at the other: others of its team go on.
func TestAWaitAtOneLevelHoldsNothingAtTheOther(t *testing.T) {
	for name, of := range map[string]func(t *testing.T, th *Throttle) Limiter{
		"one limit": func(_ *testing.T, th *Throttle) Limiter { return th },
		"an All": func(t *testing.T, th *Throttle) Limiter {
			return All(th, PerCall(whole(t, Limit{Max: 1e6, Burst: 1e6})))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th := quotaed(t, Limit{Max: 1e6, Burst: 1e6}, teams())
				l := of(t, th)
				time.Sleep(time.Second)
				_, ok := forLevels(l, "a", "a/k").TryAcquire(5)
				require.True(t, ok)
				ctx, cancel := context.WithCancel(t.Context())
				for range 100 {
					go func() { _, _ = forLevels(l, "a", "a/k").Acquire(ctx, 1) }()
				}
				synctest.Wait()
				_, ok = forLevels(l, "a", "a/vip").TryAcquire(15)
				require.True(t, ok, "all that is left of the team")
				for range 100 {
					go func() { _, _ = forLevels(l, "a", "a/vip").Acquire(ctx, 1) }()
				}
				synctest.Wait()
				_, ok = forLevels(l, "b", "b/k").TryAcquire(30)
				require.True(t, ok, "another team's")
				require.Equal(t, map[string]int64{"a": 20, "a/k": 5, "a/vip": 15, "b": 30}, usedBy(th))
				cancel()
				synctest.Wait()
			})
		})
	}
}

// A team is one in the plan, however many keys its calls have: its reservation and its weight count once.
func TestKeysDoNotCountInThePlan(t *testing.T) {
	for name, c := range map[string]struct {
		a, b   Quota
		wa, wb float64
	}{
		"equal":    {Quota{}, Quota{}, 500, 500},
		"weights":  {Quota{}, Quota{Weight: 3}, 250, 750},
		"reserved": {Quota{Reserved: 200}, Quota{Reserved: 700}, 300, 700},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th := quotaed(t, Limit{Max: 1000}, Quotas{
					Tags: map[string]Quota{"a": c.a, "b": c.b}, Match: []QuotaPattern{{Tag: "*/*", Quota: Quota{Weight: 1000, Total: 900}}},
				})
				ctx, cancel := context.WithCancel(t.Context())
				draw := func(first, second string) {
					for {
						if _, err := forLevels(th, first, second).Acquire(ctx, 1); err != nil {
							return
						}
					}
				}
				for i := range 1000 {
					go draw("a", fmt.Sprint("a/", i))
				}
				for range 50 {
					go draw("b", "b/1")
				}
				time.Sleep(10 * time.Second)
				a, b := statusOf(th, "a").Used, statusOf(th, "b").Used
				time.Sleep(20 * time.Second)
				require.InDelta(t, c.wa, float64(statusOf(th, "a").Used-a)/20, 0.1*c.wa+5)
				require.InDelta(t, c.wb, float64(statusOf(th, "b").Used-b)/20, 0.1*c.wb+5)
				require.Equal(t, 1+max(c.a.Weight, 1)+max(c.b.Weight, 1), th.tags.weights, "and that of all others")
				cancel()
				synctest.Wait()
			})
		})
	}
}

// A tag that is drawn for by itself, too, counts as any other.
func TestATagOfBothLevelsCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := quotaed(t, Limit{Max: 1000}, Quotas{Tags: map[string]Quota{"a": {Weight: 2}, "a/k": {Weight: 5}}})
		time.Sleep(time.Second)
		_, ok := forLevels(th, "a", "a/k").TryAcquire(1)
		require.True(t, ok)
		require.Equal(t, 1+2, th.tags.weights)
		require.Equal(t, "a/k", viewOf(th.ForTag("a/k")).first().name)
		require.Equal(t, 1+2+5, th.tags.weights)
		forLevels(th, "a", "a/k")
		require.Equal(t, 1+2+5, th.tags.weights)
	})
}

// A limiter of two levels that is kept follows changes of quotas: a key gets a quota, and loses it.
func TestTwoLevelsFollowQuotas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := quotaed(t, Limit{Max: 1e6, Burst: 1e6}, tagsOf(map[string]Quota{"a": {}}))
		time.Sleep(time.Second)
		l := forLevels(th, "a", "a/k")
		_, ok := l.TryAcquire(1)
		require.True(t, ok)
		require.Equal(t, map[string]int64{"a": 1}, usedBy(th))
		rateHolder{th}.SetQuotas(tagsOf(map[string]Quota{"a": {}, "a/k": {Blocked: true}}).WithDefaults(time.Second))
		_, ok = l.TryAcquire(1)
		require.False(t, ok)
		rateHolder{th}.SetQuotas(tagsOf(map[string]Quota{"a": {}}).WithDefaults(time.Second))
		_, ok = l.TryAcquire(1)
		require.True(t, ok)
		require.Equal(t, map[string]int64{"a": 2}, usedBy(th))
	})
}

// Keys that callers make up take bounded memory, make way when they are idle, and stay within their team.
func TestInventedKeysAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := quotaed(t, Limit{Max: 1e6, Burst: 1e6}, Quotas{
			Tags:  map[string]Quota{"a": ofBudget(5000), "b": {}},
			Match: []QuotaPattern{{Tag: "a/*"}},
		})
		th.tags.most = 500
		got := 0
		for i := range 20_000 {
			if _, ok := forLevels(th, "a", fmt.Sprint("a/", i)).TryAcquire(1); ok {
				got++
			}
			if i%1000 == 0 {
				time.Sleep(11 * time.Second)
			}
		}
		require.Equal(t, 5000, got)
		require.LessOrEqual(t, len(th.tags.tags), 500+3)
		require.LessOrEqual(t, len(th.tags.joint), maxNames)
		require.Equal(t, 1+1, th.tags.weights)
		_, ok := th.ForTag("b").TryAcquire(1000)
		require.True(t, ok)
	})
}

// Two levels and two tags of the same names are not the same: as a tag, a key without a quota counts among all others.
func TestLevelsAreNoTwoTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := quotaed(t, Limit{Max: 1000}, teams())
		for range 2 {
			require.Equal(t, "b\x00", viewOf(th.ForTags("b", "b/k")).QuotaTag())
			require.Equal(t, "b", viewOf(forLevels(th, "b", "b/k")).QuotaTag())
			require.Equal(t, "\x00x/k", viewOf(forLevels(th, "x", "x/k")).QuotaTag())
		}
		all, ok := All(th, PerCall(flight(t, 1))).(*tagged)
		require.True(t, ok)
		both, ok := all.forLevels("x", "x/k").(interface{ QuotaTag() string })
		require.True(t, ok)
		require.Equal(t, "\x00x/k", both.QuotaTag())
	})
}
