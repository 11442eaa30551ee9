package throttle

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/race"
)

// The rate and the default burst of hard limits, worked out by hand: the rate per
// period is (Max + 1 - Burst) x 12/13.
func TestHardRateAndBurst(t *testing.T) {
	for _, tc := range []struct {
		limit     Limit
		burst     int
		perPeriod float64
	}{
		{Limit{Max: 1}, 1, 12.0 / 13},                               // one token every 1.0833 s
		{Limit{Max: 2}, 1, 24.0 / 13},                               // half of max
		{Limit{Max: 10, Per: time.Minute}, 5, 6 * 12.0 / 13},        // half of max: 6 of 10 are left
		{Limit{Max: 60, Per: time.Minute}, 8, 53 * 12.0 / 13},       // room for eight processors
		{Limit{Max: 100}, 10, 84},                                   // a tenth: 91 x 12/13
		{Limit{Max: 1000}, 100, 901 * 12.0 / 13},                    // a tenth, which is 100 ms worth
		{Limit{Max: 6000, Per: time.Minute}, 100, 5901 * 12.0 / 13}, // 100, which is more than 100 ms worth (10)
		{Limit{Max: 600_000, Per: time.Minute}, 1000, 599_001 * 12.0 / 13},
		{Limit{Max: 100, Per: 100 * time.Millisecond}, 10, 84}, // a tenth, not 100 ms worth (all)
		{Limit{Max: 100, Burst: 1}, 1, 1200.0 / 13},
		{Limit{Max: 100, Burst: 100}, 100, 12.0 / 13},
	} {
		t.Run(fmt.Sprintf("%+v", tc.limit), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := tc.limit
				l.Hard = true
				th := whole(t, l)
				require.Equal(t, tc.burst, th.Limit().Burst)
				per := th.Limit().Per.Seconds()
				slack := (float64(tc.burst)/1e6 + 1e-6*float64(l.Max)) / per
				require.InDelta(t, tc.perPeriod/per, l.Rate(), slack)
				require.LessOrEqual(t, l.Rate(), tc.perPeriod/per)
				require.InDelta(t, l.Rate(), th.Status().Rate, l.Rate()*1e-6, "Status tells the lowered rate")

				// The theorem in numbers: the burst, and what the fastest clock earns in a window.
				c := th.bucket.Tokens(th.bucket.Law().Capacity)
				require.Less(t, c+th.Status().Rate*per*1.0833, float64(l.Max)+1)
				require.GreaterOrEqual(t, c, float64(tc.burst))
			})
		})
	}
	require.Zero(t, Limit{}.Rate())
	require.Zero(t, Limit{Hard: true}.Rate())
	require.InDelta(t, 5, Limit{Max: 300, Per: time.Minute}.Rate(), 1e-9)
}

func TestHardValidate(t *testing.T) {
	require.NoError(t, Limit{Hard: true}.Validate(), "off is off")
	require.NoError(t, Limit{Max: 10, Burst: 10, Hard: true}.Validate())
	require.EqualError(t, Limit{Max: 10, Burst: 11, Hard: true}.Validate(), "limit: burst is 11, allowed: at most max with hard, which is 10")
	for _, l := range extremes {
		l.Hard = true
		l.Burst = min(l.Burst, l.Max)
		th := whole(t, l)
		require.Positive(t, th.Status().Rate, "%+v", l)
		require.NoError(t, th.Close())
	}
}

func TestHardShareTooSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 100, Burst: 10, Hard: true}, 0.0999, WithName("llm"))
		time.Sleep(time.Hour)
		require.Zero(t, drain(th))
		held, ok := th.Throttled()
		require.True(t, ok)
		require.Equal(t, Throttling{Reason: ReasonShareTooSmall, Limit: "llm"}, held)
		require.Zero(t, th.Status().Rate)
		require.Equal(t, ReasonShareTooSmall, th.Status().Lease.Reason)

		_, err := th.Acquire(timeout(t, time.Second), 1)
		require.ErrorIs(t, err, ErrThrottled)
		require.Equal(t, ReasonShareTooSmall, throttled(t, err).Reason)

		c := begin(th, 1, 0)
		s.give(0.1)
		require.True(t, c.waits(), "the bucket is empty at first")
		time.Sleep(time.Second)
		require.NoError(t, c.end(t).err)
		time.Sleep(time.Second)
		require.Equal(t, 1, drain(th))

		s.give(0)
		_, err = th.Acquire(timeout(t, time.Second), 1)
		require.Equal(t, ReasonNoShare, throttled(t, err).Reason)
	})
}

// A draw above what this processor's bucket holds waits for a larger share and
// collects nothing; one above the burst is refused.
func TestHardLargeDraw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 100, Burst: 20, Hard: true}, 0.5)
		_, err := th.Acquire(t.Context(), 21)
		require.Equal(t, ReasonTooLarge, throttled(t, err).Reason)
		time.Sleep(time.Minute)

		c := begin(th, 15, 0)
		behind := begin(th, 1, 0)
		time.Sleep(time.Minute)
		require.True(t, c.waits())
		require.True(t, behind.waits(), "nobody overtakes")
		require.Zero(t, th.queue.Collected)
		held, _ := th.Throttled()
		require.Equal(t, Throttling{Reason: ReasonShareTooSmall, Waiting: 2}, held)
		_, err = th.Acquire(timeout(t, time.Second), 11)
		require.Equal(t, ReasonShareTooSmall, throttled(t, err).Reason)
		require.Zero(t, throttled(t, err).RetryAfter)
		sound(t, th)

		s.give(0.75)
		time.Sleep(200 * time.Millisecond) // from 10 tokens to 15, and one more for the next
		require.Equal(t, 15, c.end(t).permit.N())
		require.NoError(t, behind.end(t).err)
		p, err := th.AcquireUpTo(t.Context(), 1000)
		require.NoError(t, err)
		require.LessOrEqual(t, p.N(), 15)
		sound(t, th)
	})
}

// With quotas, other tags pass a draw that the share cannot grant at once, and its own tag does not. It is the next once the share can.
func TestHardLargeDrawOfATag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 100, Burst: 20, Hard: true}, 0.5, WithQuotas(tagsOf(map[string]Quota{"big": {}, "small": {}})))
		time.Sleep(time.Minute)
		big, small := th.ForTag("big"), th.ForTag("small")
		c, behind := beginWith(big.Acquire, 15, 0), beginWith(big.Acquire, 1, 0)
		require.True(t, c.waits())
		granted := 0
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			if _, ok := small.TryAcquire(1); ok {
				granted++
			}
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			_, err := small.Acquire(ctx, 1)
			require.NoError(t, err)
			cancel()
		}
		require.Equal(t, 100, granted)
		require.True(t, c.waits())
		require.True(t, behind.waits(), "nobody of the same tag overtakes")
		require.GreaterOrEqual(t, rateHolder{th}.Report(time.Second).Demand, WholeShare*3/4)
		th.gate.Lock()
		require.Equal(t, int64(15), th.usage.Need)
		th.gate.Unlock()
		held, ok := th.HoldUp()
		require.True(t, ok)
		require.Equal(t, ReasonShareTooSmall, held.Reason)

		waiting := make([]*call, 100)
		for i := range waiting {
			waiting[i] = beginWith(small.Acquire, 1, 0)
		}
		s.give(0.75)
		time.Sleep(500 * time.Millisecond)
		require.NoError(t, c.end(t).err)
		require.True(t, waiting[99].waits(), "it does not stand behind all that came later")
		time.Sleep(time.Minute)
		require.NoError(t, behind.end(t).err)
		for _, w := range waiting {
			require.NoError(t, w.end(t).err)
		}
		require.Zero(t, th.Status().Waiting)
		sound(t, th)
	})
}

// A draw that is set aside delays and refuses no call of another tag, and hides no quota from operators.
func TestHardDrawSetAsideIsInNobodysWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 100, Burst: 20, Hard: true}, 0.75,
			WithQuotas(tagsOf(map[string]Quota{"big": {}, "small": {}, "x": {Total: 1, Burst: 1}})))
		tpm := whole(t, Limit{Max: 100, Burst: 10})
		big, small := th.ForTag("big"), th.ForTag("small")
		time.Sleep(time.Minute)
		_, ok := small.TryAcquire(15)
		require.True(t, ok)
		_, ok = tpm.TryAcquire(10)
		require.True(t, ok)
		several := beginWith(All(big, tpm).Acquire, 15, 0) // stands in both queues
		require.True(t, several.waits())
		time.Sleep(150 * time.Millisecond)
		require.Equal(t, 1, tpm.Status().Waiting)
		s.give(0.5)
		alone := beginWith(big.Acquire, 12, 0)
		time.Sleep(time.Second)
		require.True(t, several.waits())
		require.True(t, alone.waits())

		require.NoError(t, Probe(small))
		both := All(small, tpm)
		_, ok = both.TryAcquire(1)
		require.True(t, ok)
		_, ok = big.TryAcquire(1)
		require.False(t, ok, "it would overtake callers of its tag")
		idle := whole(t, Limit{Max: 100, Burst: 10})
		time.Sleep(time.Second)
		_, ok = All(big, idle).TryAcquire(1)
		require.False(t, ok, "it would overtake callers of its tag")
		behind := beginWith(All(big, idle).Acquire, 1, 0)
		require.True(t, behind.waits())

		// A change of the share fails nobody whose turn comes in time.
		_, ok = small.TryAcquire(9)
		require.True(t, ok)
		soon := beginWith(small.Acquire, 3, 300*time.Millisecond)
		require.True(t, soon.waits())
		s.give(0.45)
		time.Sleep(200 * time.Millisecond)
		require.NoError(t, soon.end(t).err)

		// The quota that holds most callers is what operators see.
		_, _ = th.ForTag("x").TryAcquire(1)
		waiting := make([]*call, 9)
		for i := range waiting {
			waiting[i] = beginWith(th.ForTag("x").Acquire, 1, 0)
		}
		h, ok := th.HoldUp()
		require.True(t, ok)
		require.Equal(t, "x", h.Tag, "%+v", h)
		require.Equal(t, "x", rateHolder{th}.Report(time.Second).Tag)
		s.give(1)
		time.Sleep(time.Minute)
		require.NoError(t, several.end(t).err)
		require.NoError(t, alone.end(t).err)
		require.NoError(t, behind.end(t).err)
		for _, c := range waiting {
			c.cancel()
			_ = c.end(t)
		}
		require.Zero(t, th.Status().Waiting)
		sound(t, th)
	})
}

// Nobody waits for a draw that the share cannot grant at once, whether it came behind another caller or the share fell while it waited. A
// caller of another tag that meets its deadline without that draw is not refused.
func TestHardDrawSetAsideIsBeforeNobody(t *testing.T) {
	for name, large := range map[string]func(th *Throttle, s *script, tpm Limiter) *call{
		"alone": func(th *Throttle, _ *script, _ Limiter) *call { return beginWith(th.ForTag("big").Acquire, 15, 0) },
		"with a second limit": func(th *Throttle, _ *script, tpm Limiter) *call {
			return beginWith(All(th.ForTag("big"), tpm).Acquire, 15, 0)
		},
		"behind one of its tag": func(th *Throttle, _ *script, _ Limiter) *call {
			beginWith(th.ForTag("big").Acquire, 1, 0)
			return beginWith(th.ForTag("big").Acquire, 15, 0)
		},
		"as the share falls": func(th *Throttle, s *script, _ Limiter) *call {
			s.give(0.75)
			return beginWith(th.ForTag("big").Acquire, 15, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				quotas := map[string]Quota{"big": {}, "mid": {}, "small": {}}
				th, s := scripted(t, Limit{Max: 100, Burst: 20, Hard: true}, 0.5, WithQuotas(tagsOf(quotas)))
				tpm := whole(t, Limit{Max: 1000, Burst: 100})
				time.Sleep(time.Minute)
				for {
					if _, ok := th.ForTag("mid").TryAcquire(1); !ok {
						break
					}
				}
				mid := beginWith(th.ForTag("mid").Acquire, 8, 0) // 200 ms
				c := large(th, s, tpm)
				small := beginWith(th.ForTag("small").Acquire, 1, 400*time.Millisecond)
				require.True(t, small.waits(), "%v", name)
				s.give(0.5)
				require.True(t, small.waits(), "%v", name)
				time.Sleep(400 * time.Millisecond)
				require.NoError(t, mid.end(t).err)
				require.NoError(t, small.end(t).err)
				late := beginWith(th.ForTag("small").Acquire, 1, 100*time.Millisecond)
				time.Sleep(100 * time.Millisecond)
				require.NoError(t, late.end(t).err)
				require.True(t, c.waits())
				s.give(1)
				time.Sleep(time.Second)
				require.NoError(t, c.end(t).err)
			})
		})
	}
}

// The same holds for a draw that stands in the queues of two limits as the share falls.
func TestHardDrawInTwoQueuesIsBeforeNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 100, Burst: 20, Hard: true}, 0.75, WithQuotas(tagsOf(map[string]Quota{"big": {}, "mid": {}, "small": {}})))
		tpm := whole(t, Limit{Max: 100, Burst: 10})
		time.Sleep(time.Minute)
		_, ok := th.ForTag("mid").TryAcquire(15)
		require.True(t, ok)
		take(t, tpm, 10)
		c := beginWith(All(th.ForTag("big"), tpm).Acquire, 15, 0) // 240 ms
		for tpm.Status().Waiting == 0 || th.Status().Waiting == 0 {
			time.Sleep(5 * time.Millisecond)
		}
		mid := beginWith(th.ForTag("mid").Acquire, 8, 0)
		small := beginWith(th.ForTag("small").Acquire, 1, 400*time.Millisecond)
		require.True(t, small.waits())
		s.give(0.5)
		time.Sleep(400 * time.Millisecond)
		require.NoError(t, small.end(t).err)
		require.NoError(t, mid.end(t).err)
		require.True(t, c.waits())
		s.give(1)
		time.Sleep(time.Second)
		require.NoError(t, c.end(t).err)
	})
}

// Several tags make impatient, large and cancelled calls, alone and with a second limit, while the share moves. Once the share is whole, all
// calls end and nobody waits.
func TestHardTagsLoseNobody(t *testing.T) {
	for seed := range uint64(race.Fewer(300)) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			quotas := map[string]Quota{"a": {Reserved: 10}, "b": {}, "c": {Class: Batch}}
			th, s := scripted(t, Limit{Max: 100, Burst: 20, Hard: true}, 0.5, WithQuotas(tagsOf(quotas)))
			tpm := whole(t, Limit{Max: 200, Burst: 20})
			var calls []*call
			for range 80 {
				l := th.ForTag([]string{"a", "b", "c", "d"}[r.IntN(4)])
				if r.IntN(3) == 0 {
					l = All(l, tpm)
				}
				draw, n := l.Acquire, 1+r.IntN(20)*r.IntN(2)
				switch r.IntN(8) {
				case 0:
					draw = l.AcquireUpTo
				case 1:
					l.TryAcquire(n)
				case 2:
					_ = Probe(l)
				case 3:
					s.give(float64(r.IntN(11)) / 10)
				case 4:
					if len(calls) > 0 {
						calls[r.IntN(len(calls))].cancel()
					}
				}
				calls = append(calls, beginWith(draw, n, time.Duration(r.IntN(4))*time.Duration(r.IntN(3000))*time.Millisecond))
				time.Sleep(time.Duration(r.IntN(200)) * time.Millisecond)
			}
			s.give(1)
			time.Sleep(2 * time.Minute)
			for i, c := range calls {
				require.False(t, c.waits(), "seed %d, call %d", seed, i)
			}
			require.Zero(t, th.Status().Waiting, "seed %d", seed)
			th.gate.Lock()
			require.Zero(t, th.queue.Tokens, "seed %d", seed)
			th.gate.Unlock()
			sound(t, th)
		})
	}
}

// Callers that others pass leave like all others: cancelled, out of time, or because the limiter is closed.
func TestHardCallersSetAsideEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 100, Burst: 20, Hard: true}, 0.5, WithQuotas(tagsOf(map[string]Quota{"a": {}, "b": {}})))
		tpm := whole(t, Limit{Max: 1000})
		time.Sleep(time.Minute)
		a := th.ForTag("a")
		cancelled, late, both, closed := beginWith(a.Acquire, 15, 0), beginWith(a.Acquire, 15, time.Second),
			beginWith(All(a, tpm).Acquire, 15, time.Minute), beginWith(a.Acquire, 12, 0)
		other := beginWith(th.ForTag("b").Acquire, 15, 0)
		cancelled.cancel()
		time.Sleep(2 * time.Second)
		require.ErrorIs(t, cancelled.end(t).err, context.Canceled)
		require.Equal(t, ReasonShareTooSmall, throttled(t, late.end(t).err).Reason)
		require.Equal(t, 3, th.Status().Waiting)
		s.give(0.6) // 12
		time.Sleep(time.Second)
		require.True(t, closed.waits(), "it stands behind one of its tag")
		time.Sleep(time.Minute)
		require.Equal(t, ReasonShareTooSmall, throttled(t, both.end(t).err).Reason)
		require.NoError(t, closed.end(t).err)
		require.True(t, other.waits())
		require.NoError(t, th.Close())
		require.ErrorIs(t, other.end(t).err, ErrClosed)
		require.Zero(t, th.Status().Waiting)
	})
}

// The demand is at least the share that grants the largest draw.
func TestHardDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Limit{Max: 100, Burst: 10, Hard: true}
		th, _ := scripted(t, l, 0.5)
		least := th.bucket.HardShare(th.bucket.Units(1))
		require.InDelta(t, WholeShare/10, least, 200)
		demand := func() int64 {
			time.Sleep(500 * time.Millisecond)
			return rateHolder{th}.Report(time.Second).Demand
		}
		require.Zero(t, demand())
		require.Zero(t, demand())
		take(t, th, 1)
		require.Equal(t, least, demand(), "one token in a second would be 1 %")

		deny(t, th, 6)
		take(t, th, 1)
		require.GreaterOrEqual(t, demand(), WholeShare*599/1000, "six tokens take six tenths of the burst")
		take(t, th, 1)
		require.GreaterOrEqual(t, demand(), WholeShare*599/1000, "it may be asked for again")
		require.Zero(t, demand(), "idle")
		take(t, th, 1)
		require.Equal(t, least, demand())

		c := begin(th, 8, 0)
		require.GreaterOrEqual(t, demand(), WholeShare*799/1000)
		c.cancel()
		require.Error(t, c.end(t).err)
	})
}

func TestHardGiveBack(t *testing.T) {
	l := Limit{Max: 100, Burst: 10, Hard: true}
	full := func(t *testing.T) (*Throttle, *script) {
		t.Helper()
		th, s := scripted(t, l, 1)
		time.Sleep(time.Second)
		return th, s
	}
	back := func(t *testing.T, th *Throttle, p Permit, used int) int64 {
		t.Helper()
		before := th.Status().Returned
		p.Settle(used)
		sound(t, th)
		return th.Status().Returned - before
	}
	for _, tc := range []struct {
		name string
		want int64
		f    func(t *testing.T, th *Throttle, s *script) int64
	}{
		{"at once", 6, func(t *testing.T, th *Throttle, _ *script) int64 { return back(t, th, take(t, th, 6), 0) }},
		{"in part", 4, func(t *testing.T, th *Throttle, _ *script) int64 { return back(t, th, take(t, th, 6), 2) }},
		{"at once, one after the other", 8, func(t *testing.T, th *Throttle, _ *script) int64 {
			p, q := take(t, th, 4), take(t, th, 4)
			return back(t, th, p, 0) + back(t, th, q, 0)
		}},
		{"in reverse, where the later draw still counts as one", 4, func(t *testing.T, th *Throttle, _ *script) int64 {
			p, q := take(t, th, 4), take(t, th, 4)
			return back(t, th, q, 0) + back(t, th, p, 0)
		}},
		{"as the bucket has filled by half", 4, func(t *testing.T, th *Throttle, _ *script) int64 {
			p := take(t, th, 10)
			time.Sleep(60 * time.Millisecond) // 5 tokens: one of 10 would have overflowed by as much
			return back(t, th, p, 0)
		}},
		{"as the bucket has filled", 0, func(t *testing.T, th *Throttle, _ *script) int64 {
			p := take(t, th, 6)
			time.Sleep(time.Second)
			return back(t, th, p, 0)
		}},
		{"though it has filled and was drawn from again", 0, func(t *testing.T, th *Throttle, _ *script) int64 {
			p := take(t, th, 6)
			time.Sleep(time.Second)
			take(t, th, 10)
			return back(t, th, p, 0)
		}},
		{"after another share", 0, func(t *testing.T, th *Throttle, s *script) int64 {
			p := take(t, th, 6)
			s.give(0.9)
			s.give(1)
			return back(t, th, p, 0)
		}},
		{"after a renewal", 6, func(t *testing.T, th *Throttle, s *script) int64 {
			p := take(t, th, 6)
			s.lend(1, time.Minute)
			return back(t, th, p, 0)
		}},
		{"after the lease was over", 0, func(t *testing.T, th *Throttle, s *script) int64 {
			s.lend(1, time.Millisecond)
			p := take(t, th, 6)
			time.Sleep(2 * time.Millisecond)
			n := back(t, th, p, 3)
			s.lend(1, time.Minute)
			return n
		}},
		{"after a debt", 0, func(t *testing.T, th *Throttle, _ *script) int64 {
			p := take(t, th, 5)
			take(t, th, 1).Settle(5)
			return back(t, th, p, 0)
		}},
		{"after it was closed", 0, func(t *testing.T, th *Throttle, _ *script) int64 {
			p := take(t, th, 5)
			require.NoError(t, th.Close())
			return back(t, th, p, 0)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th, s := full(t)
				require.Equal(t, tc.want, tc.f(t, th, s))
			})
		})
	}
	t.Run("to one who waits", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			th, _ := full(t)
			p := take(t, th, 10)
			c := begin(th, 5, 0)
			require.True(t, c.waits())
			p.Settle(5)
			require.NoError(t, c.end(t).err)
			sound(t, th)
		})
	})
}

func TestHardDegradedShareGrantsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 100, Hard: true}, 1)
		time.Sleep(time.Second)
		s.h.Lease(Lease{Share: WholeShare, Degraded: true})
		time.Sleep(time.Second)
		require.Zero(t, drain(th))
		held, _ := th.Throttled()
		require.Equal(t, ReasonStoreLost, held.Reason)
	})
}

// Four greedy processors use what the formula says, in the long run and by true
// clocks, and no window of Per sees more than Max.
func TestHardUse(t *testing.T) {
	for _, l := range []Limit{{Max: 100}, {Max: 1000}, {Max: 60, Per: time.Minute}, {Max: 600, Per: time.Minute}, {Max: 10_000, Per: time.Minute}} {
		synctest.Test(t, func(t *testing.T) {
			l.Hard = true
			var ths []*Throttle
			for range 4 {
				th, _ := scripted(t, l, 0.25)
				ths = append(ths, th)
			}
			l = ths[0].Limit()
			var uses []use
			began := time.Now()
			for time.Since(began) < 20*l.Per {
				time.Sleep(l.Per / 1000)
				for _, th := range ths {
					if n := drain(th); n > 0 {
						uses = append(uses, use{time.Since(began), n})
					}
				}
			}
			sum := 0
			for _, u := range uses {
				sum += u.tokens
			}
			got, want := float64(sum)/20/float64(l.Max), l.Rate()*l.Per.Seconds()/float64(l.Max)
			t.Logf("max %d per %s, burst %d: %.1f %% of max used, the formula says %.1f %%; worst window %d",
				l.Max, l.Per, l.Burst, 100*got, 100*want, worst(uses, l.Per))
			require.InDelta(t, want, got, 0.01)
			require.LessOrEqual(t, worst(uses, l.Per), l.Max)
		})
	}
}
