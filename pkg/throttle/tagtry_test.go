package throttle

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/race"
)

// tries asks for n tokens every so often without waiting, and counts what it got.
func tries(ctx context.Context, l Limiter, n int, every time.Duration) (asked, got *atomic.Int64) {
	asked, got = &atomic.Int64{}, &atomic.Int64{}
	go func() {
		for ctx.Err() == nil {
			time.Sleep(every)
			asked.Add(1)
			if _, ok := l.TryAcquire(n); ok {
				got.Add(1)
			}
		}
	}()
	return asked, got
}

// A tag whose draws do not wait gets what is its own beside a tag whose callers wait for every token, and the limit is used in full all
// the same.
func TestTriesBesideWaiters(t *testing.T) {
	race.Skip(t, "it measures; TestSeveralTagsTryBesideWaiters runs with it")
	long(t)
	const often = 10 * time.Millisecond
	for name, c := range map[string]struct {
		limit    Limit
		quota    Quota
		hog      Quota
		n, hogs  int
		every    time.Duration
		hogTakes int
	}{
		"reserved":            {limit: Limit{Max: 1000}, quota: Quota{Reserved: 200}, n: 1, every: often, hogs: 50, hogTakes: 1},
		"no quota of its own": {limit: Limit{Max: 1000}, n: 1, every: often, hogs: 50, hogTakes: 1},
		"seldom":              {limit: Limit{Max: 1000}, quota: Quota{Reserved: 10}, n: 1, every: 300 * time.Millisecond, hogs: 50, hogTakes: 1},
		"several tokens":      {limit: Limit{Max: 1000}, quota: Quota{Reserved: 200}, n: 8, every: 50 * time.Millisecond, hogs: 50, hogTakes: 1},
		"large hog":           {limit: Limit{Max: 1000}, quota: Quota{Reserved: 200}, n: 1, every: often, hogs: 50, hogTakes: 50},
		"hog with a total":    {limit: Limit{Max: 1000}, quota: Quota{Reserved: 200}, hog: Quota{Total: 5000}, n: 1, every: often, hogs: 50, hogTakes: 1},
		"small burst":         {limit: Limit{Max: 1000, Burst: 2}, quota: Quota{Reserved: 200}, n: 1, every: often, hogs: 50, hogTakes: 1},
		"hard":                {limit: Limit{Max: 1000, Hard: true}, quota: Quota{Reserved: 200}, n: 1, every: often, hogs: 50, hogTakes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				th := whole(t, c.limit, WithQuotas(Quotas{Tags: map[string]Quota{"quiet": c.quota, "hog": c.hog}}))
				hog := &load{tag: "hog", callers: c.hogs, n: c.hogTakes}
				hog.run(ctx, th)
				asked, got := tries(ctx, th.ForTag("quiet"), c.n, c.every)
				time.Sleep(6 * time.Second)
				asked0, got0, hog0 := asked.Load(), got.Load(), hog.granted.Load()
				time.Sleep(10 * time.Second)
				tried, had := asked.Load()-asked0, got.Load()-got0
				used := float64(hog.granted.Load()-hog0) + float64(c.n)*float64(had)
				t.Logf("%d of %d tries, the limit used to %.3f", had, tried, used/10/1000)
				require.GreaterOrEqual(t, float64(had), 0.95*float64(tried))
				if !c.limit.Hard { // a hard limit earns less than its maximum
					require.InDelta(t, 1, used/10/1000, 0.01, "what is kept for one tag is lost to nobody")
				}
			})
		})
	}
}

// A tag that asks without waiting for more than its part gets that part, and no more, while others wait.
func TestGreedyTries(t *testing.T) {
	race.Skip(t, "it measures; TestSeveralTagsTryBesideWaiters runs with it")
	long(t)
	for name, hog := range map[string]Quota{"plain": {}, "with a total": {Total: 5000}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				th := whole(t, Limit{Max: 1000}, WithQuotas(Quotas{Tags: map[string]Quota{"greedy": {}, "hog": hog}}))
				waits := &load{tag: "hog", callers: 50}
				waits.run(ctx, th)
				_, got := tries(ctx, th.ForTag("greedy"), 1, 500*time.Microsecond)
				time.Sleep(6 * time.Second)
				got0, waits0 := got.Load(), waits.granted.Load()
				time.Sleep(10 * time.Second)
				greedy, other := float64(got.Load()-got0)/10, float64(waits.granted.Load()-waits0)/10
				t.Logf("greedy %.0f, hog %.0f", greedy, other)
				require.InDelta(t, 500, greedy, 50)
				require.InDelta(t, 1000, greedy+other, 10)
			})
		})
	}
}

// A quiet tag that waits is served as quickly beside callers that need tokens of a total too as beside others.
func TestQuietWaiterBesideAttempts(t *testing.T) {
	race.Skip(t, "it measures; TestQuietTagBesideAHogWithTotals runs with it")
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, Limit{Max: 200}, WithQuotas(Quotas{Tags: map[string]Quota{"hog": {Total: 1000}, "quiet": {}}}))
		quiet := &load{tag: "quiet", rate: 5}
		rates := runLoads(th, 5*time.Second, 60*time.Second, &load{tag: "hog", callers: 1000}, quiet)
		require.Less(t, quiet.p99(), 50*time.Millisecond)
		require.InDelta(t, 195, rates[0], 2)
	})
}

// However many tags draw without waiting, each has what is reserved for it beside one that waits, also for as many tokens as there are.
func TestSeveralTagsTryBesideWaiters(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		quotas := map[string]Quota{"hog": {}, "takes": {}}
		names := []string{"q0", "q1", "q2", "q3", "q4"}
		for _, name := range names {
			quotas[name] = Quota{Reserved: 100}
		}
		th := whole(t, Limit{Max: 1000}, WithQuotas(tagsOf(quotas)))
		hog := &load{tag: "hog", callers: 20}
		hog.run(ctx, th)
		var taken atomic.Int64
		for range 20 {
			go func() {
				for {
					p, err := th.ForTag("takes").AcquireUpTo(ctx, 50)
					if err != nil {
						return
					}
					taken.Add(int64(p.N()))
				}
			}()
		}
		var asked, got []*atomic.Int64
		for _, name := range names {
			a, g := tries(ctx, th.ForTag(name), 1, 20*time.Millisecond) // all at the same moment
			asked, got = append(asked, a), append(got, g)
		}
		time.Sleep(6 * time.Second)
		used := func() (sum int64) {
			for _, g := range got {
				sum += g.Load()
			}
			return sum + taken.Load() + hog.granted.Load()
		}
		for i := range names {
			asked[i].Store(0)
			got[i].Store(0)
		}
		start := used()
		time.Sleep(10 * time.Second)
		for i, name := range names {
			require.GreaterOrEqual(t, float64(got[i].Load()), 0.99*float64(asked[i].Load()), name)
		}
		require.InDelta(t, 10_000, used()-start, 100, "all of the limit")
	})
}

// For a draw that the bucket can never hold nothing is kept: who waits would find the bucket full, and what comes then is lost.
func TestNothingIsKeptForWhatNeverFits(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		th := whole(t, Limit{Max: 1000, Burst: 100}, WithQuotas(tagsOf(map[string]Quota{"large": {Reserved: 200}, "hog": {}})))
		hog := &load{tag: "hog", callers: 50}
		hog.run(ctx, th)
		tries(ctx, th.ForTag("large"), 500, 10*time.Millisecond)
		time.Sleep(6 * time.Second)
		require.LessOrEqual(t, th.Status().Tokens, 1.0)
	})
}

// shortTwice is a Throttle with a caller of hog that was woken for the next token when quiet became short of three: it looks, has to leave the
// token, and is woken by nobody else.
func shortTwice(ctx context.Context, t *testing.T, limit Limit) (th *Throttle, granted *atomic.Int64) {
	t.Helper()
	th = whole(t, limit, WithQuotas(tagsOf(map[string]Quota{"quiet": {Reserved: 2, Per: time.Second}, "hog": {}})))
	hog := All(th.ForTag("hog"), flight(t, 5)) // so that callers wait by attempts
	granted = &atomic.Int64{}
	go func() {
		for {
			p, err := hog.Acquire(ctx, 1)
			if err != nil {
				return
			}
			p.Settle(1)
			granted.Add(1)
		}
	}()
	quiet := viewOf(th.ForTag("quiet")).first()
	time.Sleep(1500 * time.Millisecond)
	for woken := false; !woken; {
		th.gate.Lock()
		wait, ok := th.bucket.Law().Wait(th.bucket.Units(1) - th.bucket.Level(th.gate.Now()))
		th.gate.Unlock()
		require.True(t, ok)
		time.Sleep(wait)
		th.gate.Lock()
		now := th.gate.Now()
		if woken = th.bucket.Level(now) >= th.bucket.Units(1); woken {
			th.serve(now)
			th.tags.short.lacks(quiet, 3, now)
		}
		th.gate.Unlock()
	}
	return th, granted
}

// A caller that has to leave what it was woken for is served all the same, as soon as there is more, or nothing is kept any more.
func TestWhoLeavesTokensIsServedInTheEnd(t *testing.T) {
	for name, c := range map[string]struct {
		limit Limit
		after time.Duration
	}{
		"there is more":   {Limit{Max: 10, Burst: 5}, 2 * time.Second},
		"nothing is kept": {Limit{Max: 20, Per: 10 * time.Second, Burst: 5}, 1100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				_, granted := shortTwice(ctx, t, c.limit)
				before := granted.Load()
				time.Sleep(c.after)
				require.Greater(t, granted.Load(), before)
			})
		})
	}
}

// Nothing is kept for callers that wait: who comes later of a tag would overtake those who wait already.
func TestAcquireIsNoShortage(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		th := quotaed(t, Limit{Max: 100}, tagsOf(map[string]Quota{"a": {Reserved: 50, Total: 1000}, "hog": {}}))
		(&load{tag: "hog", callers: 50}).run(ctx, th)
		time.Sleep(2 * time.Second)
		h := gather(ctx, 400, &service{}, func(ctx context.Context, who int) (Permit, error) {
			time.Sleep(time.Duration(who) * 15 * time.Millisecond)
			return th.ForTag("a").Acquire(ctx, 1)
		})
		time.Sleep(30 * time.Second)
		granted, _ := h.done()
		require.Equal(t, 400, granted)
		h.requireOrder(t)
		require.False(t, th.tags.short.any(th.gate.Now()-lackFor*30), "in all this time")
	})
}

// An error of a draw that is too large names the setting that bounds it.
func TestTooLargeNamesTheSetting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := quotaed(t, Limit{Max: 1000, Burst: 1000}, Quotas{
			Tags:  map[string]Quota{"acme": {Total: 30, Burst: 40}, "spent": {Budgets: []Budget{{Amount: 9, Per: "day"}}}, "free": {}},
			Match: []QuotaPattern{{Tag: "free/*"}, {Tag: "x/*", Quota: Quota{Total: 100, Per: time.Minute, Hard: true}}},
			Other: Quota{Total: 20},
		})
		for _, c := range []struct {
			l        Limiter
			largest  int
			by, text string
		}{
			{th, 20, "quotas.other.total", "numathrottle: a cost of 5000 can never be granted, allowed: at most 20 (quotas.other.total)"},
			{th.ForTag("unknown"), 20, "quotas.other.total", ""},
			{th.ForTag("acme"), 40, "quotas.tags.acme.burst", ""},
			{th.ForTag("spent"), 9, "quotas.tags.spent.budgets", ""},
			{th.ForTag("x/1"), 1, "quotas.match[1].burst, with hard", ""},
			{th.ForTag("free"), 1000, "", "numathrottle: tag \"free\": a cost of 5000 can never be granted, allowed: at most 1000"},
		} {
			_, err := c.l.Acquire(t.Context(), 5000)
			e := throttled(t, err)
			require.Equal(t, []any{ReasonTooLarge, c.largest, c.by}, []any{e.Reason, e.Largest, e.LargestBy})
			if c.text != "" {
				require.EqualError(t, err, c.text)
			}
		}
	})
}
