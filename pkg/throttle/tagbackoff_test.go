package throttle

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/race"
)

// A caller of a tag, and what came of its calls.
type client struct {
	accepted, refused atomic.Int64
}

// since is what became of the calls in d, per second.
func (c *client) over(d time.Duration) (accepted, refused float64) {
	a, r := c.accepted.Load(), c.refused.Load()
	time.Sleep(d)
	return float64(c.accepted.Load()-a) / d.Seconds(), float64(c.refused.Load()-r) / d.Seconds()
}

// crowd starts callers that draw from l, call and report. A nil service accepts everything.
func crowd(ctx context.Context, l Limiter, s *service, callers int, took time.Duration) *client {
	c := &client{}
	for range callers {
		go func() {
			for {
				p, err := l.Acquire(ctx, 1)
				if err != nil {
					return
				}
				o := Accepted
				if s != nil {
					o = s.take()
				}
				time.Sleep(took)
				p.Report(o)
				if o == Accepted {
					c.accepted.Add(1)
				} else {
					c.refused.Add(1)
				}
			}
		}()
	}
	return c
}

// inBubble runs a test in virtual time, whose calls end with it.
func inBubble(t *testing.T, test func(t *testing.T, ctx context.Context)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer func() {
			cancel()
			time.Sleep(time.Minute) // for the calls under way
		}()
		test(t, ctx)
	})
}

// A service that refuses one tag slows that tag, and nobody else.
func TestATagIsSlowedDownByItself(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		th := quotaed(t, Limit{Max: 1000, Adaptive: true}, tagsOf(map[string]Quota{"a": {}, "b": {}}))
		s := &service{rate: 1e6, at: time.Now()}
		a := crowd(ctx, th.ForTag("a"), s, 8, 20*time.Millisecond)
		b := crowd(ctx, th.ForTag("b"), nil, 8, 20*time.Millisecond)
		got, _ := a.over(10 * time.Second)
		require.InDelta(t, 400, got, 5)
		require.Zero(t, statusOf(th, "a").Limiting)

		s.can(50)
		time.Sleep(10 * time.Second)
		got, refused := a.over(time.Minute)
		require.InDelta(t, 50, got, 10)
		require.Less(t, refused, got/20)
		got, _ = b.over(time.Minute)
		require.InDelta(t, 400, got, 5)
		require.InDelta(t, 1, th.Status().Backoff.Part, 0)
		require.Zero(t, th.Status().Backoff.Cuts)
		st := statusOf(th, "a")
		require.Equal(t, "limiting", st.By)
		require.InDelta(t, 50, st.Limiting, 20)

		s.can(1e6)
		time.Sleep(20 * time.Second)
		got, _ = a.over(10 * time.Second)
		require.InDelta(t, 400, got, 5, "it comes back with the service")
		require.Zero(t, statusOf(th, "a").Limiting, "and is free")
		require.EqualValues(t, -1, inHand(th, "a"))
	})
}

// Where the service refuses calls of all tags it is the limit that falls.
func TestTheLimitFallsForWhatAllTagsAreRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		th := quotaed(t, Limit{Max: 1000, Adaptive: true}, tagsOf(map[string]Quota{"a": {}, "b": {}, "c": {}}))
		s := &service{rate: 1e6, at: time.Now()}
		var all []*client
		for _, tag := range []string{"a", "b", "c"} {
			all = append(all, crowd(ctx, th.ForTag(tag), s, 8, 20*time.Millisecond))
		}
		time.Sleep(10 * time.Second)
		s.can(100)
		time.Sleep(20 * time.Second)
		require.Positive(t, th.Status().Backoff.Cuts)
		require.Less(t, th.Status().Rate, 200.0)
		got, _ := all[0].over(30 * time.Second)
		require.InDelta(t, 33, got, 8)
	})
}

// told draws one token n times and tells each time what became of the call.
func told(t *testing.T, l Limiter, n int, o Outcome) {
	t.Helper()
	for range n {
		p := take(t, l, 1)
		p.Report(o)
	}
}

// slowed is a Throttle with a lot at hand, of whose tag a ten calls were refused after some were accepted.
func slowed(t *testing.T, q Quotas) *Throttle {
	t.Helper()
	th := quotaed(t, Limit{Max: 1000, Burst: 1000, Adaptive: true}, q)
	time.Sleep(time.Second)
	told(t, th.ForTag("a"), 20, Accepted)
	time.Sleep(time.Second / 2)
	told(t, th.ForTag("a"), 10, Refused)
	return th
}

// Whoever is held back because the service refuses the tag is told so.
func TestErrorsOfASlowTag(t *testing.T) {
	inBubble(t, func(t *testing.T, _ context.Context) {
		th := slowed(t, tagsOf(map[string]Quota{"a": {}}))
		st := statusOf(th, "a")
		require.InDelta(t, 30/0.5*0.49, st.Limiting, 0.1)
		require.EqualValues(t, 0, st.InHand)
		a := th.ForTag("a")
		deny(t, a, 1)
		require.Equal(t, []WaitStats{{Reason: ReasonAdaptive, Refusals: 1}}, th.WaitStats())
		held, ok := viewOf(a).Throttled()
		require.True(t, ok)
		require.Equal(t, []any{ReasonAdaptive, "a"}, []any{held.Reason, held.Tag})
		require.Positive(t, held.RetryAfter)
		ctx := timeout(t, time.Millisecond)
		began := time.Now()
		_, err := a.Acquire(ctx, 1)
		e := as[*Error](t, err)
		require.Equal(t, []any{ReasonAdaptive, "a", time.Duration(0)}, []any{e.Reason, e.Tag, time.Since(began)})
		require.InDelta(t, 1/st.Limiting, e.RetryAfter.Seconds(), 0.001)
		told(t, th.ForTag("b"), 100, Accepted)
		acquire(t, a, 1)
		require.Equal(t, e.RetryAfter, time.Since(began))
	})
}

// While it cannot be told whether refusals are one tag's business they lower nothing. Then they do, all of them.
func TestRefusalsOfWhichNobodyKnowsYet(t *testing.T) {
	inBubble(t, func(t *testing.T, _ context.Context) {
		th, s := scripted(t, Limit{Max: 1000, Burst: 1000, Adaptive: true}, 1, WithQuotas(tagsOf(map[string]Quota{"a": {}, "b": {}})))
		time.Sleep(time.Second)
		refused := func() float64 { return s.h.Report(0).Usage.Served.Refused }
		told(t, th.ForTag("b"), 10, Accepted)
		told(t, th.ForTag("a"), 9, Refused)
		require.Zero(t, refused())
		require.Zero(t, statusOf(th, "a").Limiting)
		require.InDelta(t, 1, th.Status().Backoff.Part, 0)
		told(t, th.ForTag("b"), 1, Refused)
		require.InDelta(t, 10/0.25, refused(), 0.1)
		require.Less(t, th.Status().Backoff.Part, 1.0)
		require.Zero(t, statusOf(th, "a").Limiting)
	})
}

// Once a tag is slow, none of its calls is told to the pool; and for a moment those of others say nothing either.
func TestCallsOfASlowTagAreNotThePools(t *testing.T) {
	inBubble(t, func(t *testing.T, _ context.Context) {
		th, s := scripted(t, Limit{Max: 1000, Burst: 1000, Adaptive: true}, 1, WithQuotas(tagsOf(map[string]Quota{"a": {}, "b": {}})))
		time.Sleep(time.Second)
		served := func() [2]float64 {
			got := s.h.Report(0).Usage.Served
			return [2]float64{got.Accepted, got.Refused + got.Overloaded}
		}
		early := take(t, th.ForTag("b"), 1)
		told(t, th.ForTag("a"), 10, Overloaded)
		require.Positive(t, statusOf(th, "a").Limiting)
		told(t, th.ForTag("b"), 10, Accepted)
		early.Report(Refused)
		told(t, th.ForTag("b"), 5, Refused)
		require.InDeltaSlice(t, []float64{10 / 0.25, 0}, sliceOf(served()), 0.1)
		time.Sleep(300 * time.Millisecond)
		early.Report(Refused)
		require.Zero(t, served()[1], "it was granted before")
		require.Zero(t, statusOf(th, "b").Limiting)
		time.Sleep(2 * time.Second)
		before := served()
		p := take(t, th.ForTag("a"), 1)
		p.Report(Accepted)
		require.Equal(t, before, served())
		told(t, th.ForTag("b"), 10, Refused)
		require.Positive(t, statusOf(th, "b").Limiting, "now it is its turn")
	})
}

func sliceOf(a [2]float64) []float64 { return a[:] }

// Of a draw's tags the one is slowed of which most is refused.
func TestTheTagOfADrawThatIsRefusedMost(t *testing.T) {
	inBubble(t, func(t *testing.T, _ context.Context) {
		th := quotaed(t, Limit{Max: 1000, Burst: 1000, Adaptive: true}, tagsOf(map[string]Quota{"model": {}, "one": {}, "two": {}}))
		time.Sleep(time.Second)
		told(t, th.ForTags("model", "one"), 20, Accepted)
		told(t, th.ForTags("model", "two"), 10, Refused)
		require.Positive(t, statusOf(th, "two").Limiting)
		require.Zero(t, statusOf(th, "model").Limiting)

		th = quotaed(t, Limit{Max: 1000, Burst: 1000, Adaptive: true}, tagsOf(map[string]Quota{"model": {}, "one": {}, "two": {}}))
		time.Sleep(time.Second)
		for range 10 {
			for _, tag := range []string{"one", "two"} {
				if p, ok := th.ForTags(tag, "model").TryAcquire(1); ok {
					p.Report(Refused)
				}
			}
		}
		require.Positive(t, statusOf(th, "model").Limiting)
		require.Zero(t, statusOf(th, "one").Limiting)
		require.Zero(t, statusOf(th, "two").Limiting)
	})
}

// However a call was drawn and reported, it counts for its tag.
func TestWaysToReportATag(t *testing.T) {
	inBubble(t, func(t *testing.T, _ context.Context) {
		q := tagsOf(map[string]Quota{"a": {}, "waits": {Total: 100}, "all": {}, "later": {}})
		reports := map[string]func(t *testing.T, th *Throttle){
			"waits": func(t *testing.T, th *Throttle) {
				p := acquire(t, th.ForTag("waits"), 1)
				p.Report(Refused)
			},
			"all": func(t *testing.T, th *Throttle) {
				both, ok := All(th, flight(t, 5)).(Tagger)
				require.True(t, ok)
				p := take(t, both.ForTag("all"), 1)
				p.Report(Refused)
			},
			"later": func(_ *testing.T, th *Throttle) { th.ReportFor(1, time.Time{}, Refused, "later") },
			"":      func(_ *testing.T, th *Throttle) { th.Report(1, time.Time{}, Refused) },
			"a":     func(_ *testing.T, th *Throttle) { th.ReportFor(1, time.Time{}, Refused, "a", "all") },
		}
		for tag, tell := range reports {
			th := quotaed(t, Limit{Max: 1000, Burst: 1000, Adaptive: true}, q)
			time.Sleep(time.Second)
			th.ForTag("a").TryAcquire(1) // of each some is used, so that there is a status
			th.ForTag("later").TryAcquire(1)
			th.TryAcquire(1)
			for range 10 {
				tell(t, th)
			}
			for _, st := range th.Status().Tags {
				require.Equal(t, st.Tag == tag, st.Limiting > 0, "%q by %q", st.Tag, tag)
			}
			require.InDelta(t, 1, th.Status().Backoff.Part, 0, tag)
		}
		plain := whole(t, Limit{Max: 100, Burst: 100, Adaptive: true})
		plain.ReportFor(3, time.Time{}, Overloaded, "a")
		require.EqualValues(t, 3, plain.Status().Backoff.Overloaded)
		still := quotaed(t, Limit{Max: 100, Burst: 100}, q)
		still.ReportFor(3, time.Time{}, Overloaded, "a")
		require.Zero(t, still.Status().Backoff)
	})
}

// What a call costs on average is what was settled, and nobody's when there are hardly any calls.
func TestTheAverageCostOfATag(t *testing.T) {
	inBubble(t, func(t *testing.T, _ context.Context) {
		th := quotaed(t, Limit{Max: 1000, Burst: 1000}, tagsOf(map[string]Quota{"a": {}, "b": {Total: 500}}))
		for range 120 {
			time.Sleep(time.Second / 10)
			a := take(t, th.ForTag("a"), 10)
			a.Settle(4)
			cancelled := take(t, th.ForTag("a"), 10)
			cancelled.Cancel()
			b := acquire(t, th.ForTag("b"), 5)
			b.Settle(5)
		}
		require.InDelta(t, 4, statusOf(th, "a").Cost, 0.3)
		require.InDelta(t, 5, statusOf(th, "b").Cost, 0.3)
		time.Sleep(20 * time.Second)
		th.ForTag("a").TryAcquire(1)
		time.Sleep(2 * time.Second)
		require.Zero(t, statusOf(th, "a").Cost)
	})
}

// When the service comes to refuse others too it is the limit that falls; and a tag that nothing holds back any more is free.
func TestASlowTagBecomesEverybodysBusiness(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		th := quotaed(t, Limit{Max: 1000, Adaptive: true}, tagsOf(map[string]Quota{"a": {}, "b": {}, "c": {}}))
		s := &service{rate: 50, at: time.Now()}
		crowd(ctx, th.ForTag("a"), s, 8, 20*time.Millisecond)
		time.Sleep(20 * time.Second)
		require.Positive(t, statusOf(th, "a").Limiting)
		require.Zero(t, th.Status().Backoff.Cuts)
		s.can(100)
		for _, tag := range []string{"b", "c"} {
			crowd(ctx, th.ForTag(tag), s, 8, 20*time.Millisecond)
		}
		time.Sleep(30 * time.Second)
		require.Positive(t, th.Status().Backoff.Cuts)
		require.Less(t, th.Status().Rate, 200.0)
	})
}

// A tag that makes calls of which none is held back is free after half a minute, and one that makes none is not.
func TestABoundThatHoldsNobodyIsForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T, _ context.Context) {
		th := slowed(t, tagsOf(map[string]Quota{"a": {}}))
		limiting := func() float64 { return statusOf(th, "a").Limiting }
		time.Sleep(time.Minute)
		require.InDelta(t, 29.4, limiting(), 2)
		for range 24 {
			told(t, th.ForTag("a"), 1, Accepted)
			time.Sleep(time.Second)
		}
		require.InDelta(t, 29.4, limiting(), 10)
		for range 10 {
			told(t, th.ForTag("a"), 1, Accepted)
			time.Sleep(time.Second)
		}
		require.Zero(t, limiting())
	})
}

// So it is under any kind of limit, and for what is reserved, without a pool too.
func TestATagIsSlowedDownUnderAnyLimit(t *testing.T) {
	race.Skip(t, "it measures; TestATagIsSlowedDownByItself runs with it")
	long(t)
	for name, c := range map[string]struct {
		l       Limit
		quota   Quota
		service float64
		want    float64 // calls, of which so much as use says is accepted of what the service can do
		use     float64
	}{
		"hard":     {Limit{Max: 1000, Hard: true, Burst: 100}, Quota{}, 50, 50, 0.8},
		"strict":   {Limit{Max: 1000, Strict: true}, Quota{}, 50, 50, 0.8},
		"minute":   {Limit{Max: 60_000, Per: time.Minute}, Quota{}, 50, 50, 0.8},
		"total":    {Limit{Max: 1000}, Quota{Total: 100}, 50, 50, 0.8},
		"reserved": {Limit{Max: 1000}, Quota{Reserved: 80, Total: 100}, 30, 80, 0.8},
		"shadow":   {Limit{Max: 1000}, Quota{Total: 10, Shadow: true}, 50, 50, 0.8},
		"slow":     {Limit{Max: 1000}, Quota{}, 0.5, 0.5, 0.65},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				c.l.Adaptive = true
				th := quotaed(t, c.l, tagsOf(map[string]Quota{"a": c.quota, "b": {}}))
				a := crowd(ctx, th.ForTag("a"), &service{rate: c.service, at: time.Now()}, 8, 20*time.Millisecond)
				b := crowd(ctx, th.ForTag("b"), nil, 8, 20*time.Millisecond)
				time.Sleep(time.Minute)
				over := time.Duration(max(30, 300/c.service)) * time.Second
				accepted, refused := a.over(over)
				require.InDelta(t, c.want, accepted+refused, 0.25*c.want)
				require.GreaterOrEqual(t, accepted, c.use*c.service)
				got, _ := b.over(10 * time.Second)
				require.InDelta(t, 400, got, 10)
				require.Zero(t, th.Status().Backoff.Cuts)
			})
		})
	}
}

// Draws, reports, plans and grants of many goroutines at once.
func TestTagsReportAtOnce(t *testing.T) {
	th, s := scripted(t, Limit{Max: 1_000_000, Adaptive: true}, 1, WithQuotas(tagsOf(map[string]Quota{"a": {}, "b": {Reserved: 10}, "c": {}})))
	names := [][]string{{"a"}, {"b"}, {"a", "c"}, {""}}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for k := range 2000 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				if p, err := th.ForTags(names[(i+k)%len(names)]...).Acquire(ctx, 1); err == nil {
					p.Report(Outcome(k % 7 % 3 * (i % 2)))
				}
				cancel()
				switch k % 100 {
				case 0:
					_, _ = th.Status(), s.h.ReportTags(time.Second)
				case 50:
					th.tags.plan.turn()
				case 75:
					s.h.GrantTags([]TagGrant{{Tag: "a", Rate: 100}, {Tag: "b", Rate: 10, Reserved: 5}})
				}
			}
		})
	}
	wg.Wait()
	require.NotZero(t, th.Status().Backoff.Refused)
	for _, st := range th.Status().Tags {
		require.Zero(t, st.Waiting)
	}
	sound(t, th)
}

// Calls that were granted before a tag was cut do not cut it again.
func TestLateRefusalsOfASlowTag(t *testing.T) {
	inBubble(t, func(t *testing.T, _ context.Context) {
		th := slowed(t, tagsOf(map[string]Quota{"a": {}}))
		limiting := func() float64 { return statusOf(th, "a").Limiting }
		time.Sleep(2 * time.Second)
		told(t, th.ForTag("a"), 1, Accepted)
		time.Sleep(time.Second)
		early := take(t, th.ForTag("a"), 1)
		before := limiting()
		told(t, th.ForTag("a"), 1, Refused)
		cut := limiting()
		require.Less(t, cut, 0.9*before)
		time.Sleep(300 * time.Millisecond)
		early.Report(Refused)
		require.GreaterOrEqual(t, limiting(), cut)
		told(t, th.ForTag("a"), 1, Refused)
		require.Less(t, limiting(), 0.9*cut, "a call that was granted since does")
	})
}

// Callers that waited for the limit when their tag became slow do not make the others of the tag wait until all of them are earned.
func TestWhoWaitedBeforeATagWasSlowStopsNobody(t *testing.T) {
	race.Skip(t, "it measures; TestATagIsSlowedDownByItself runs with it")
	inBubble(t, func(t *testing.T, ctx context.Context) {
		th := quotaed(t, Limit{Max: 1000, Adaptive: true}, tagsOf(map[string]Quota{"a": {Reserved: 100}, "b": {}}))
		s := &service{rate: 1e6, at: time.Now()}
		a := crowd(ctx, th.ForTag("a"), s, 1000, 20*time.Millisecond)
		crowd(ctx, th.ForTag("b"), nil, 1000, 20*time.Millisecond)
		time.Sleep(10 * time.Second)
		s.can(50)
		for range 15 {
			got, refused := a.over(time.Second)
			require.GreaterOrEqual(t, got+refused, 85.0, "what is reserved")
		}
	})
}

// A draw that nothing can ever grant is nothing that a slow tag saves up for, or rises for.
func TestASlowTagIsNotPressedByWhatIsTooLarge(t *testing.T) {
	inBubble(t, func(t *testing.T, _ context.Context) {
		th := slowed(t, tagsOf(map[string]Quota{"a": {}}))
		rate := statusOf(th, "a").Limiting
		for range 30 {
			th.ForTag("a").TryAcquire(1_000_000)
			time.Sleep(time.Second)
		}
		require.InDelta(t, rate, statusOf(th, "a").Limiting, rate/2)
		require.LessOrEqual(t, inHand(th, "a"), int64(max(rate, 10)))
	})
}

// A tag that is known no more, which an All keeps, is not held for ever by what the service took of it.
func TestATagThatIsGoneIsNotSlow(t *testing.T) {
	inBubble(t, func(t *testing.T, _ context.Context) {
		th := slowed(t, tagsOf(map[string]Quota{"a": {}}))
		beside := whole(t, Limit{Max: 1_000_000})
		time.Sleep(100 * time.Millisecond) // it begins empty
		l := All(th.ForTag("a"), beside)
		require.Positive(t, statusOf(th, "a").Limiting)
		rateHolder{th}.SetQuotas(Quotas{}.WithDefaults(time.Second))
		for range 100 { // nobody looks after it, whatever is refused
			p := take(t, l, 1)
			p.Report(Refused)
			time.Sleep(10 * time.Millisecond)
		}
	})
}
