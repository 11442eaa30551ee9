package throttle

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

func TestShareFallsClampsTheBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 1000, Burst: 100}, 1)
		time.Sleep(time.Second)
		s.give(0.1)
		require.InDelta(t, 10, th.Status().Tokens, 1e-6)
		s.give(1)
		require.Equal(t, 10, drain(th))
	})
}

func TestShareFallsKeepsWhatFits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 1000, Burst: 100}, 1)
		time.Sleep(5*time.Millisecond + time.Microsecond)
		s.give(0.1)
		require.Equal(t, 5, drain(th))
	})
}

func TestShareRisesAddsNothing(t *testing.T) {
	for _, idle := range []time.Duration{0, 55 * time.Millisecond, time.Second, time.Hour} {
		t.Run(idle.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th, s := scripted(t, Limit{Max: 1000, Burst: 100}, 0.1)
				time.Sleep(idle)
				before := th.Status().Tokens
				s.give(1)
				require.InDelta(t, before, th.Status().Tokens, 1e-6)
				require.Equal(t, int(before+1e-6), drain(th))
			})
		})
	}
}

// Two processors that hand the limit to and fro must not gain by it, even though
// nobody looks into their buckets while they overflow.
func TestShareToAndFroIsNoSourceOfTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Limit{Max: 100, Burst: 100}
		a, sa := scripted(t, l, 0.99)
		b, sb := scripted(t, l, 0.01)
		for range 10 {
			time.Sleep(time.Hour)
			atOnce := drain(a)
			sa.give(0.01)
			sb.give(0.99)
			atOnce += drain(a) + drain(b)
			require.LessOrEqual(t, atOnce, 100+2, "a burst and a token for each processor")
			a, sa, b, sb = b, sb, a, sa
		}
	})
}

func TestLeaseOverGrantsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 1000, Burst: 100}, 0)
		s.lend(1, time.Second)
		time.Sleep(time.Second - time.Nanosecond)
		take(t, th, 1, "one nanosecond before Until")
		time.Sleep(time.Nanosecond)
		deny(t, th, 1, "at Until")
		time.Sleep(time.Hour)
		require.Zero(t, drain(th), "after Until")

		st := th.Status()
		require.Zero(t, st.Lease.Share)
		require.Zero(t, st.Rate)
		require.LessOrEqual(t, st.Tokens, 0.0, "nothing is at hand once the lease is over")
		th1, held := th.Throttled()
		require.True(t, held)
		require.Equal(t, ReasonStoreLost, th1.Reason)
		require.Zero(t, th1.RetryAfter)
	})
}

func TestLateRenewalStartsEmpty(t *testing.T) {
	for _, late := range []time.Duration{0, time.Nanosecond, time.Second, time.Hour} {
		t.Run(late.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th, s := scripted(t, Limit{Max: 1000, Burst: 100}, 0)
				s.lend(1, time.Second)
				time.Sleep(time.Second + late)
				s.lend(1, time.Second)
				require.Zero(t, th.Status().Tokens)
				require.Zero(t, drain(th))
				time.Sleep(10*time.Millisecond + time.Microsecond)
				require.Equal(t, 10, drain(th), "and earns from the renewal on")
			})
		})
	}
}

func TestRenewalInTimeKeepsTheLevel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 1000, Burst: 100}, 0)
		s.lend(1, time.Second)
		time.Sleep(50*time.Millisecond + time.Microsecond)
		for range 1000 {
			s.lend(1, time.Second)
		}
		require.Equal(t, 50, drain(th))
		got := 0
		for range 100 {
			time.Sleep(90 * time.Millisecond)
			s.lend(1, time.Second)
			got += drain(th)
		}
		require.InDelta(t, 9000, got, 1)
	})
}

func TestLeaseThatIsOverWhenItComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 1000, Burst: 100}, 1)
		time.Sleep(time.Second)
		s.lend(1, -time.Millisecond)
		require.Zero(t, drain(th))
		s.lend(1, 0)
		require.Zero(t, drain(th))
		s.lend(1, time.Second)
		require.Zero(t, drain(th), "the share had ended in between")
	})
}

// A caller that read the clock and was then held up must not draw by that
// reading on a lease that has come and gone meanwhile.
func TestStaleClockReadingDoesNotOutliveALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 1000, Burst: 100}, 1)
		time.Sleep(time.Second)
		stale := int64(time.Since(th.gate.Base))
		time.Sleep(time.Second)
		s.lend(1, time.Second)
		time.Sleep(time.Second)
		_, ok := th.bucket.Draw(th.bucket.Units(1), stale)
		require.False(t, ok)
	})
}

// And it must not see less than nothing when the lease is newer than its reading.
func TestStaleClockReadingOnANewerLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 1000, Burst: 100}, 0)
		stale := int64(time.Since(th.gate.Base))
		time.Sleep(time.Second)
		s.give(1)
		_, ok := th.bucket.Draw(th.bucket.Units(1), stale)
		require.False(t, ok)
		time.Sleep(10 * time.Millisecond)
		_, ok = th.bucket.Draw(th.bucket.Units(5), stale)
		require.True(t, ok)
	})
}

func TestShareOfZeroEmptiesTheBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 1000, Burst: 100}, 1)
		time.Sleep(time.Second)
		s.give(0)
		require.Zero(t, drain(th))
		require.Zero(t, th.Status().Tokens)
		s.give(1)
		require.Zero(t, drain(th))
	})
}

func TestShareOutOfRangeIsTakenAsTheNearest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 1000}, 0)
		s.h.Lease(Lease{Share: 5 * limit.MaxShare})
		require.InDelta(t, 64_000, th.Status().Rate, 1e-3)
		s.h.Lease(Lease{Share: -1})
		require.Zero(t, th.Status().Rate)
		require.Zero(t, drain(th))
	})
}

func TestSmallestShareStillGrants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, _ := scripted(t, Limit{Max: 1000}, 1e-9)
		c := begin(th, 1, 0)
		time.Sleep(11 * 24 * time.Hour)
		require.True(t, c.waits())
		time.Sleep(24 * time.Hour) // 1e6 s are 11.6 days
		require.NoError(t, c.end(t).err)
	})
}

// One token takes longer than the clock reaches: a deadline is told at once, and
// without one the caller waits.
func TestShareWorthCenturies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 1, Per: maxPer}, 1e-9)
		began := time.Now()
		_, err := th.Acquire(timeout(t, time.Hour), 1)
		require.ErrorIs(t, err, ErrThrottled)
		require.Zero(t, time.Since(began), "told at once")
		require.Equal(t, ReasonLimit, throttled(t, err).Reason)

		c := begin(th, 1, 0)
		require.True(t, c.waits())
		s.give(1)
		require.True(t, c.waits())
		time.Sleep(maxPer + time.Second)
		require.NoError(t, c.end(t).err)
	})
}
