package throttle

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

// requireNobody checks that nobody waits anywhere.
func requireNobody(t *testing.T, th *Throttle) {
	t.Helper()
	synctest.Wait()
	sound(t, th)
	require.Zero(t, th.queue.Len)
	require.Zero(t, th.gate.Listeners())
	require.Zero(t, th.tags.held.queue.Len)
	for _, g := range th.tags.all() {
		require.Zero(t, g.queue.Len, g.name)
		require.Zero(t, g.waiting.Load(), g.name)
		require.True(t, g.tagQueue.Empty(), g.name)
	}
}

// A noted is an observer that counts how waits ended.
type noted struct {
	mu   sync.Mutex
	ends map[string]int
}

func (o *noted) Waits(_ context.Context, w Wait) func(Waited) {
	return func(end Waited) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.ends == nil {
			o.ends = map[string]int{}
		}
		o.ends[fmt.Sprintf("%s %d %v", w.Reason, end.N, end.Err)]++
	}
}

// many is how many callers wait in these tests.
func many() int { return max(testkit.Fewer(2000), 600) }

// one draws one token.
func one(l Limiter) func(context.Context, int) (Permit, error) {
	return func(ctx context.Context, _ int) (Permit, error) { return l.Acquire(ctx, 1) }
}

// Callers that wait already when their tag becomes slow go by its bound from then on, in the order in which they came, and all of them get
// through. Nobody else waits for them.
func TestWhoWaitsWhenATagBecomesSlow(t *testing.T) {
	reserved, total := Quota{Reserved: 40, Per: time.Second}, Quota{Reserved: 40, Per: time.Second, Total: 5000}
	both := func(ctx context.Context, th *Throttle) (Permit, error) { return th.ForTags("c", "a").Acquire(ctx, 1) }
	upTo := func(ctx context.Context, th *Throttle) (Permit, error) { return th.ForTag("a").AcquireUpTo(ctx, 10) }
	three := func(ctx context.Context, th *Throttle) (Permit, error) { return th.ForTag("a").Acquire(ctx, 3) }
	for name, c := range map[string]struct {
		limit Limit
		quota Quota
		draw  func(ctx context.Context, th *Throttle) (Permit, error)
	}{
		"in the lane":    {limit: Limit{Max: 1000}, quota: reserved},
		"with a total":   {limit: Limit{Max: 1000}, quota: total},
		"hard":           {limit: Limit{Max: 1000, Hard: true, Burst: 100}, quota: reserved},
		"strict":         {limit: Limit{Max: 1000, Strict: true}, quota: reserved},
		"minute":         {limit: Limit{Max: 60_000, Per: time.Minute}, quota: reserved},
		"second of tags": {limit: Limit{Max: 1000}, quota: reserved, draw: both},
		"up to ten":      {limit: Limit{Max: 1000}, quota: reserved, draw: upTo},
		"three":          {limit: Limit{Max: 1000}, quota: reserved, draw: three},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				c.limit.Adaptive = true
				th := quotaed(t, c.limit, tagsOf(map[string]Quota{"a": c.quota, "b": {}, "c": {}}))
				time.Sleep(time.Second)
				for range 20 { // whoever else takes part is not the culprit
					p, err := th.ForTag("c").Acquire(ctx, 1)
					require.NoError(t, err)
					p.Report(OutcomeAccepted)
				}
				n := many()
				h := gather(ctx, n, &service{rate: 40, at: time.Now()}, func(ctx context.Context, who int) (Permit, error) {
					if c.draw == nil {
						return th.ForTag("a").Acquire(ctx, 1)
					}
					return c.draw(ctx, th)
				})
				b := &load{tag: "b", rate: 100}
				b.run(ctx, th)
				through := h.requireBound(t, th, "a", n, 10*time.Minute)
				require.Greater(t, through, n*8/10)
				granted, failed := h.done()
				require.Equal(t, []int{n, 0}, []int{granted, failed})
				h.requireOrder(t)
				require.Less(t, b.p99(), 20*time.Millisecond)
				require.Zero(t, th.Status().Backoff.Cuts)
			})
		})
	}
}

// slowDown makes a tag slow: ten of its calls are refused.
func slowDown(t *testing.T, th *Throttle, tag string) {
	t.Helper()
	for range 10 {
		th.ReportFor(1, time.Now(), OutcomeRefused, tag)
	}
	require.Positive(t, viewOf(th.ForTag(tag)).first().status().Limiting)
}

// A slow tag that its bound does not hold back is free after forgetAfter, no sooner and no later. The bound of one that it holds back rises,
// and limiting returns the rate at the time asked for.
func TestASlowTagIsFreeAgain(t *testing.T) {
	for _, pressed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			th := quotaed(t, Limit{Max: 1000, Adaptive: true}, tagsOf(map[string]Quota{"a": {}, "b": {}}))
			time.Sleep(time.Second)
			slowDown(t, th, "a")
			g, rises := viewOf(th.ForTag("a")).first(), false
			for at := int64(0); at < forgetAfter; at += int64(planEvery) {
				require.True(t, g.isSlow(), at)
				time.Sleep(planEvery)
				th.ReportFor(1, time.Now(), OutcomeAccepted, "a")
				g.mu.Lock()
				if pressed {
					g.tagBucket.Has(th.gate.Now(), 1000)
				}
				g.stepSlow(th.gate.Now())
				now, later := g.limiting(th.gate.Now(), 0), g.limiting(th.gate.Now(), time.Second)
				g.mu.Unlock()
				rises = rises || later > now
				require.GreaterOrEqual(t, later, now)
			}
			require.Equal(t, pressed, rises)
			require.Equal(t, pressed, g.isSlow())
		})
	}
}

// slowHerd lets n callers of tag a wait in its tag queue, of which the service refuses all until the tag is slow, at 40 per second.
func slowHerd(ctx context.Context, t *testing.T, n int, q Quota,
	acquire func(ctx context.Context, l Limiter, who int) (Permit, error),
) (*Throttle, *herd, *service) {
	t.Helper()
	th := quotaed(t, Limit{Max: 1000, Adaptive: true}, tagsOf(map[string]Quota{"a": q, "b": {}}))
	s := &service{at: time.Now()}
	h := gather(ctx, n, s, func(ctx context.Context, who int) (Permit, error) {
		return acquire(ctx, th.ForTag("a"), who)
	})
	time.Sleep(100 * time.Millisecond)
	synctest.Wait()
	require.InDelta(t, 40, viewOf(th.ForTag("a")).first().status().Limiting, 1)
	granted, _ := h.done()
	require.Less(t, granted, n/10)
	return th, h, s
}

func plainly(ctx context.Context, l Limiter, _ int) (Permit, error) { return l.Acquire(ctx, 1) }

// When the service takes the calls again they speed up, and when the tag is free they go at the pace of the limit, in their order.
func TestWhoWaitsWhenASlowTagRecovers(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		n := 1500
		th, h, s := slowHerd(ctx, t, n, Quota{Reserved: 40}, plainly)
		s.can(1e6)
		for second := 0; ; second++ {
			time.Sleep(time.Second)
			synctest.Wait()
			granted, _ := h.done()
			if granted == n {
				require.Less(t, second, n/40/2, "half of what it takes at 40 per second")
				break
			}
			require.Less(t, second, 60, "%d of %d", granted, n)
		}
		require.Greater(t, viewOf(th.ForTag("a")).first().status().Rate, 200.0)
		h.requireOrder(t)
		requireNobody(t, th)
	})
}

// Whose deadline comes before the tag's tokens is told so as soon as the tag is slow. Who goes leaves nothing behind.
func TestWhoLeavesASlowTag(t *testing.T) {
	patience := time.Duration(many())*time.Millisecond + time.Second // the limit would have tokens for all of them
	deadline := func(ctx context.Context, l Limiter, who int) (Permit, error) {
		if who%2 == 1 {
			short, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			return l.Acquire(short, 1)
		}
		return l.Acquire(ctx, 1)
	}
	cancelled := func(ctx context.Context, l Limiter, who int) (Permit, error) {
		if who%2 == 1 {
			short, cancel := context.WithCancel(ctx)
			stop := time.AfterFunc(time.Duration(1+who)*time.Millisecond, cancel)
			defer stop.Stop()
			return l.Acquire(short, 1)
		}
		return l.Acquire(ctx, 1)
	}
	for name, c := range map[string]struct {
		quota Quota
		draw  func(ctx context.Context, l Limiter, who int) (Permit, error)
	}{
		"deadline":                {Quota{Reserved: 40}, deadline},
		"deadline, with a total":  {Quota{Reserved: 40, Total: 5000}, deadline},
		"cancelled":               {Quota{Reserved: 40}, cancelled},
		"cancelled, with a total": {Quota{Reserved: 40, Total: 5000}, cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				n := many()
				at := time.Now()
				th, h, _ := slowHerd(ctx, t, n, c.quota, c.draw)
				time.Sleep(5 * time.Minute)
				granted, failed := h.done()
				require.Equal(t, n, granted+failed)
				require.GreaterOrEqual(t, granted, n/2)
				require.Greater(t, failed, n/4)
				h.requireOrder(t)
				for _, f := range h.failed {
					require.Equal(t, 1, f.who%2)
					if strings.HasPrefix(name, "cancelled") {
						require.ErrorIs(t, f.err, context.Canceled)
						continue
					}
					e := as[*Error](t, f.err)
					require.Equal(t, []any{ReasonAdaptive, "a"}, []any{e.Reason, e.Tag})
					require.Less(t, f.at.Sub(at), 1200*time.Millisecond)
					require.Greater(t, e.RetryAfter, patience-f.at.Sub(at), "it comes too late")
				}
				requireNobody(t, th)
				require.Zero(t, viewOf(th.ForTag("a")).first().pins)
			})
		})
	}
}

// Whose tag has just become slow does not stand in the tag queue at all. What waits behind those who leave it goes on at once.
func TestTheQueueAroundWhoGoesOnElsewhere(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		th := quotaed(t, Limit{Max: 1000, Adaptive: true}, tagsOf(map[string]Quota{"a": {Reserved: 40}, "b": {}}))
		gather(ctx, 1, &service{}, func(ctx context.Context, _ int) (Permit, error) { return th.ForTag("a").Acquire(ctx, 100) })
		b := gather(ctx, 1, &service{}, one(th.ForTag("b")))
		time.Sleep(5 * time.Millisecond)
		slowDown(t, th, "a")
		synctest.Wait()
		granted, _ := b.done()
		require.Equal(t, 1, granted)
		sound(t, th)
		w, err := viewOf(th.ForTag("a")).waitInTagQueue(ctx, 1, false)
		require.NoError(t, err)
		require.True(t, w.Dismissed)
	})
	inBubble(t, func(t *testing.T, ctx context.Context) {
		th := quotaed(t, Limit{Max: 1000, Adaptive: true}, tagsOf(map[string]Quota{"a": {Reserved: 40}, "b": {}}))
		gather(ctx, 5, &service{}, one(th.ForTag("a")))
		th.gate.Lock()
		require.False(t, th.queue.Empty())
		th.gate.Unlock()
		_, err := th.Pause(ctx, time.Now().Add(time.Minute), "", PauseTag("a"))
		require.NoError(t, err)
		sound(t, th)
	})
}

// When the bound falls further, those are told within a second who come too late by it; who has time for it when these are gone stays.
func TestDeadlinesOfASlowTagThatFallsFurther(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		th := quotaed(t, Limit{Max: 1000, Adaptive: true}, tagsOf(map[string]Quota{"a": {}, "b": {}}))
		g := viewOf(th.ForTag("a")).first()
		slowDown(t, th, "a")
		bound := func(rate float64) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.tagBucket.SetBound(th.gate.Now(), rate)
			g.changed(th.gate.Now())
		}
		bound(40)
		at := time.Now()
		h := gather(ctx, 40, &service{rate: 1e6, level: 1e3, at: at}, func(ctx context.Context, who int) (Permit, error) {
			patience := 2 * time.Second
			if who%2 == 1 {
				patience = 6 * time.Second
			}
			short, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			return th.ForTag("a").Acquire(short, 1)
		})
		_, failed := h.done()
		require.Zero(t, failed)
		bound(5)
		g.mu.Lock()
		g.retime(th.gate.Now())
		g.mu.Unlock()
		synctest.Wait()
		_, failed = h.done()
		require.InDelta(t, 15, failed, 1)
		for _, f := range h.failed {
			require.Zero(t, f.who%2)
			require.Equal(t, ReasonAdaptive, reasonOf(f.err))
		}
	})
	inBubble(t, func(t *testing.T, ctx context.Context) {
		th := quotaed(t, Limit{Max: 1000, Adaptive: true}, tagsOf(map[string]Quota{"a": {}, "b": {}}))
		slowDown(t, th, "a")
		rate := viewOf(th.ForTag("a")).first().status().Limiting
		at, patience := time.Now(), 10*time.Second
		h := gather(ctx, int(8*rate), &service{}, func(ctx context.Context, _ int) (Permit, error) {
			short, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			return th.ForTag("a").Acquire(short, 1)
		})
		time.Sleep(patience / 2)
		_, failed := h.done()
		require.Greater(t, failed, int(4*rate))
		time.Sleep(patience)
		synctest.Wait()
		for _, f := range h.failed {
			require.Less(t, f.at.Sub(at), patience-time.Second)
		}
	})
}

// Waits of callers that go on elsewhere are told to observers as such, and no caller fails by that.
func TestObserversOfWhoGoesOnElsewhere(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		o := &noted{}
		th := quotaed(t, Limit{Max: 1000, Adaptive: true}, tagsOf(map[string]Quota{"a": {Reserved: 40}, "b": {}}), WithObserver(o))
		gather(ctx, 20, &service{}, one(th.ForTag("a")))
		slowDown(t, th, "a")
		time.Sleep(10 * time.Second)
		o.mu.Lock()
		defer o.mu.Unlock()
		require.Equal(t, map[string]int{"limit 0 <nil>": 20, "adaptive 1 <nil>": 20}, o.ends)
	})
}

// Whatever comes to hold tags while callers wait, and in whatever order it goes, everybody gets through in the end or sees the end of its
// context, and nothing is left behind.
func TestNobodyIsLostAmongTagsThatAreHeld(t *testing.T) {
	for seed := range testkit.Fewer(50) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				r := rand.New(rand.NewPCG(uint64(seed), 0))
				th := quotaed(t, Limit{Max: 200, Adaptive: true}, tagsOf(map[string]Quota{"a": {Reserved: 10}, "b": {}, "c": {Total: 100}}))
				tags := [][]string{{"a"}, {"a"}, {"b"}, {"b", "a"}, {"c", "a"}, {"c"}}
				var all []Limiter
				for _, names := range tags {
					all = append(all, th.ForTags(names...), All(th.ForTags(names...), flight(t, 20)))
				}
				n := 300
				h := gather(ctx, n, &service{rate: 20, at: time.Now()}, func(ctx context.Context, who int) (Permit, error) {
					time.Sleep(time.Duration(who) * 3 * time.Millisecond)
					if who%5 == 0 {
						short, cancel := context.WithTimeout(ctx, time.Duration(1+who)*5*time.Millisecond)
						defer cancel()
						ctx = short
					}
					l := all[who%len(all)]
					if who%7 == 0 {
						return l.AcquireUpTo(ctx, 3)
					}
					return l.Acquire(ctx, 1+who%11%3)
				})
				for range 100 {
					time.Sleep(time.Duration(r.IntN(40)) * time.Millisecond)
					switch tag := []string{"a", "b", "c"}[r.IntN(3)]; r.IntN(5) {
					case 0:
						for range 10 {
							th.ReportFor(1, time.Now(), OutcomeRefused, tag)
						}
					case 1:
						_, err := th.Pause(ctx, time.Now().Add(time.Duration(r.IntN(100))*time.Millisecond+1), "", PauseTag(tag))
						require.NoError(t, err)
					case 2:
						require.NoError(t, th.Resume(ctx, PauseTag(tag)))
					case 3:
						g := viewOf(th.ForTag(tag)).first()
						g.mu.Lock()
						g.slow.single.Forget()
						g.rebound(th.gate.Now(), g.singleConfig())
						g.mu.Unlock()
					case 4:
						q := map[string]Quota{"a": {Reserved: 10, Total: r.IntN(2) * 50}, "b": {Total: r.IntN(2) * 30}, "c": {}}
						rateHolder{th}.SetQuotas(tagsOf(q).WithDefaults(time.Second))
					}
				}
				time.Sleep(10 * time.Minute)
				granted, failed := h.done()
				require.Equal(t, n, granted+failed)
				require.Greater(t, granted, n*7/10)
				for _, f := range h.failed {
					require.Zero(t, f.who%5, "%v", f.err)
				}
				requireNobody(t, th)
			})
		})
	}
}
