package throttle

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLowerShareRetimesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 100, Burst: 100}, 1)
		began := time.Now()
		a := begin(th, 10, 0)                     // would be due at 100 ms
		b := begin(th, 10, 250*time.Millisecond)  // at 200 ms
		c := begin(th, 10, 800*time.Millisecond)  // at 300 ms
		d := begin(th, 20, 550*time.Millisecond)  // at 500 ms
		e := beginUpTo(th, 20, time.Second)       // at 510 ms
		f := begin(th, 10, 1500*time.Millisecond) // at 610 ms
		time.Sleep(50 * time.Millisecond)
		s.give(0.25) // 5 tokens are there, the other 5 of a come at 250 ms

		for _, late := range []*call{b, d} {
			require.False(t, late.waits(), "who does not fit any more is told at once")
			r := late.end(t)
			require.Equal(t, 50*time.Millisecond, r.at.Sub(began))
			require.ErrorIs(t, r.err, ErrThrottled)
			require.Equal(t, ReasonLimit, throttled(t, r.err).Reason)
			require.Positive(t, throttled(t, r.err).RetryAfter)
		}
		sound(t, th)
		time.Sleep(10 * time.Second)
		for _, want := range []struct {
			call *call
			ms   float64
			n    int
		}{{a, 250, 10}, {c, 650, 10}, {e, 690, 1}, {f, 1090, 10}} {
			r := want.call.end(t)
			require.NoError(t, r.err)
			require.Equal(t, want.n, r.permit.N())
			require.InDelta(t, want.ms, float64(r.at.Sub(began))/1e6, 1e-3)
		}
		sound(t, th)
	})
}

func TestHigherShareServesTheQueueSooner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 100, Burst: 100}, 0.1)
		began := time.Now()
		a, b := begin(th, 10, 0), begin(th, 10, 0)
		time.Sleep(500 * time.Millisecond)
		s.give(1)
		time.Sleep(time.Second)
		require.InDelta(t, 550, float64(a.end(t).at.Sub(began))/1e6, 1e-3)
		require.InDelta(t, 650, float64(b.end(t).at.Sub(began))/1e6, 1e-3)
	})
}

func TestShareThatComesRetimesWhoWaitedForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 100, Burst: 100}, 0)
		short, long := begin(th, 50, time.Second), begin(th, 50, 10*time.Second)
		time.Sleep(600 * time.Millisecond)
		s.give(1)
		require.ErrorIs(t, short.end(t).err, ErrThrottled)
		require.True(t, long.waits())
		time.Sleep(time.Second)
		require.NoError(t, long.end(t).err)
	})
}

func TestShareThatGoesKeepsTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 100, Burst: 100}, 1)
		c := begin(th, 50, time.Second)
		time.Sleep(400 * time.Millisecond)
		s.give(0)
		require.True(t, c.waits(), "a share may come back in time")
		s.give(1)
		time.Sleep(500*time.Millisecond + time.Microsecond)
		require.NoError(t, c.end(t).err)
		require.Zero(t, drain(th))
	})
}

// When a change of share sends the last waiters away, callers draw again without
// waiting for the next lease.
func TestGateOpensAfterRetimingEmptiedTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 100, Burst: 10}, 1)
		c := begin(th, 10, 200*time.Millisecond)
		s.give(0.1)
		require.ErrorIs(t, c.end(t).err, ErrThrottled)
		sound(t, th)
		time.Sleep(time.Second)
		require.Equal(t, 1, drain(th))
	})
}

// A draw that collects more than the bucket holds keeps what it has collected
// when the share changes, and loses it with the share.
func TestCollectingDrawWhileTheShareChanges(t *testing.T) {
	for _, tc := range []struct {
		name string
		next float64
		ms   float64 // when the draw of 40 is granted
	}{{"same share", 1, 400}, {"half the share", 0.5, 600}, {"a quarter more", 0.25, 1000}} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th, s := scripted(t, Limit{Max: 100, Burst: 20}, 1)
				began := time.Now()
				c := begin(th, 40, 0)
				time.Sleep(200*time.Millisecond + time.Microsecond) // just collected
				s.give(tc.next)
				time.Sleep(5 * time.Second)
				require.InDelta(t, tc.ms, float64(c.end(t).at.Sub(began))/1e6, 1e-2)
				require.Equal(t, int64(40), th.Status().Granted)
				sound(t, th)
			})
		})
	}
	t.Run("no share in between", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			th, s := scripted(t, Limit{Max: 100, Burst: 20}, 1)
			c := begin(th, 40, 0)
			time.Sleep(300 * time.Millisecond)
			s.give(0)
			began := time.Now()
			s.give(1)
			time.Sleep(5 * time.Second)
			require.InDelta(t, 400, float64(c.end(t).at.Sub(began))/1e6, 1e-3)
			st := th.Status()
			require.Equal(t, int64(40), st.Granted, "what was collected in vain was granted to nobody")
			require.Zero(t, st.Returned)
			sound(t, th)
		})
	})
}

func TestDrawLargerThanTheBucket(t *testing.T) {
	for _, share := range []float64{1, 0.5, 0.01} {
		t.Run(fmt.Sprint(share), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th, _ := scripted(t, Limit{Max: 100, Burst: 10}, share)
				time.Sleep(time.Hour)
				held := th.Status().Tokens
				began := time.Now()
				c := begin(th, 100, 0)
				small := begin(th, 1, 0)
				want := (100 - held) / 100 / share
				time.Sleep(time.Duration((want - 0.001) * 1e9))
				require.True(t, c.waits(), "never on credit")
				require.True(t, small.waits(), "nothing else is granted meanwhile")
				deny(t, th, 1)
				time.Sleep(time.Duration(2 / share * 1e9))
				r := c.end(t)
				require.NoError(t, r.err)
				require.InDelta(t, want, r.at.Sub(began).Seconds(), 1e-5)
				require.NoError(t, small.end(t).err)
				require.Equal(t, int64(101), th.Status().Granted)
				sound(t, th)
			})
		})
	}
}

func TestTooLarge(t *testing.T) {
	for _, tc := range []struct {
		limit Limit
		max   int
	}{
		{Limit{Max: 100}, 100},
		{Limit{Max: 100, Burst: 500}, 500},
		{Limit{Max: 1, Per: time.Hour}, 1},
	} {
		t.Run(fmt.Sprintf("%+v", tc.limit), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th, _ := scripted(t, tc.limit, 0, WithName("llm"))
				for _, n := range []int{tc.max + 1, 1 << 40, 1<<63 - 1} {
					_, err := th.Acquire(t.Context(), n)
					require.ErrorIs(t, err, ErrThrottled)
					require.Equal(t, Error{Reason: ReasonTooLarge, Limit: "llm", Cost: n, Largest: tc.max, by: th}, *throttled(t, err))
					deny(t, th, n)
				}
				c := begin(th, tc.max, 0)
				require.True(t, c.waits(), "the largest that is allowed")
				c.cancel()
				require.Error(t, c.end(t).err)
			})
		})
	}
}

func TestAcquireUpTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, Limit{Max: 100, Burst: 10})
		take := func(n int) int {
			t.Helper()
			p, err := th.AcquireUpTo(t.Context(), n)
			require.NoError(t, err)
			return p.N()
		}
		began := time.Now()
		require.Equal(t, 1, take(5), "waits for the first")
		require.InDelta(t, 0.01, time.Since(began).Seconds(), 1e-6)
		time.Sleep(73 * time.Millisecond)
		require.Equal(t, 3, take(3), "at most n")
		require.Equal(t, 4, take(100), "as many as there are")
		time.Sleep(time.Second)
		require.Equal(t, 10, take(1<<40), "at most a burst, however much is asked for")
		require.Equal(t, int64(18), th.Status().Granted)

		_, err := th.AcquireUpTo(timeout(t, time.Millisecond), 7)
		e := throttled(t, err)
		require.Equal(t, ReasonLimit, e.Reason)
		require.Equal(t, 7, e.Cost)
		require.InDelta(t, 0.01, e.RetryAfter.Seconds(), 1e-6, "the time until one token is there")
	})
}

// The sums of many large draws must not overflow: the deadline is known to be
// missed however many wait.
func TestManyLargeWaiters(t *testing.T) {
	for _, l := range extremes {
		t.Run(fmt.Sprintf("%+v", l), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th := whole(t, l)
				most := th.limit.maxCost()
				var calls []*call
				for range 40 {
					calls = append(calls, begin(th, most, 0))
					_, err := th.Acquire(timeout(t, time.Nanosecond), most)
					require.Positive(t, throttled(t, err).RetryAfter)
					require.Equal(t, ReasonLimit, throttled(t, err).Reason)
				}
				require.Equal(t, wholeShare, rateHolder{th}.Report(time.Second).Demand)
				for _, c := range calls {
					c.cancel()
					require.Error(t, c.end(t).err)
				}
				sound(t, th)
			})
		})
	}
}
