package throttle

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// ten is a limit of which a token comes every hundred milliseconds.
var ten = Limit{Max: 10, Burst: 5}

// pauseFor pauses a limiter without a pool.
func pauseFor(t testing.TB, l interface {
	Pause(ctx context.Context, until time.Time, reason string, opts ...PauseOption) (PauseReceipts, error)
}, d time.Duration, opts ...PauseOption,
) {
	t.Helper()
	var until time.Time
	if d > 0 {
		until = time.Now().Add(d)
	}
	_, err := l.Pause(t.Context(), until, "told so", opts...)
	require.NoError(t, err)
}

// requireResumed waits until nothing is paused any more, and checks when that is.
func requireResumed(t testing.TB, paused func() bool, end time.Time, d time.Duration) {
	t.Helper()
	for paused() {
		require.Less(t, time.Since(end), d/10+time.Millisecond, "late by more than the stagger")
		time.Sleep(time.Millisecond)
	}
	require.GreaterOrEqual(t, time.Since(end), min(d/20, 250*time.Millisecond), "earlier than the least stagger")
}

// TestNothingIsGrantedWhilePaused goes through everything that grants.
func TestNothingIsGrantedWhilePaused(t *testing.T) {
	for name, l := range map[string]Limit{
		"share": ten, "hard": {Max: 100, Burst: 20, Hard: true}, "ramp": {Max: 10, Burst: 5, Min: 5, RampUpDuration: time.Second},
		"strict alone": {Max: 10, Strict: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th := whole(t, l)
				time.Sleep(10 * time.Second)
				pauseFor(t, th, 20*time.Second)
				end := time.Now().Add(20 * time.Second)
				before := th.Status().Granted
				deny(t, th, 1, "TryAcquire")
				calls := []*call{begin(th, 1, 0), begin(th, 3, 0), beginUpTo(th, 3, 0), begin(th, 5, 0)}
				slots := flight(t, 5)
				all := All(th, PerCall(slots))
				deny(t, all, 1, "TryAcquire of All")
				calls = append(calls, beginWith(all.Acquire, 1, 0), beginWith(all.AcquireUpTo, 2, 0))
				time.Sleep(20*time.Second - 1)
				for _, c := range calls {
					require.True(t, c.waits())
				}
				require.Equal(t, before, th.Status().Granted)
				require.Zero(t, slots.Status().InUse, "a slot is not held while a pause is waited out")
				requireResumed(t, func() bool { return th.Status().Paused != nil }, end, 20*time.Second)
				time.Sleep(10 * time.Second)
				for _, c := range calls {
					require.NoError(t, c.end(t).err)
				}
				sound(t, th)
			})
		})
	}
}

func TestPauseOfSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := flight(t, 3)
		held := take(t, f, 1)
		pauseFor(t, f, 10*time.Second)
		end := time.Now().Add(10 * time.Second)
		deny(t, f, 1)
		waits := []*call{beginWith(f.Acquire, 1, 0), beginWith(f.AcquireUpTo, 2, 0)}
		late := beginWith(f.Acquire, 1, time.Second).end(t)
		require.ErrorIs(t, late.err, ErrThrottled)
		require.NotErrorIs(t, late.err, context.DeadlineExceeded, "told at once")
		require.Equal(t, ReasonPause, as[*Error](t, late.err).Reason)
		require.InDelta(t, 10.5, as[*Error](t, late.err).RetryAfter.Seconds(), 0.26)
		th, throttled := f.Throttled()
		require.True(t, throttled)
		require.Equal(t, ReasonPause, th.Reason)
		require.Equal(t, "told so", th.Paused.Reason)
		held.Cancel() // a slot that comes back is not granted
		time.Sleep(10*time.Second - 1)
		require.Zero(t, f.Status().InUse)
		require.Equal(t, 3, f.Status().Slots, "the share is as before")
		requireResumed(t, func() bool { return f.Status().Paused != nil }, end, 10*time.Second)
		synctest.Wait()
		require.Equal(t, 3, f.Status().InUse)
		for _, c := range waits {
			c.end(t).permit.Cancel()
		}
		require.Equal(t, int64(1), f.Status().Pauses)
	})
}

// A share is leased and lost as always; what is granted waits for both.
func TestPauseAndLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, ten, 1)
		time.Sleep(5 * time.Second)
		th.gate.SetPauses([]Paused{{Until: time.Now().Add(time.Minute)}})
		s.lend(0.5, 10*time.Second)
		require.Zero(t, drain(th))
		c := begin(th, 1, 0)
		time.Sleep(30 * time.Second)
		require.Equal(t, ReasonPause, as[*Error](t, refusedBy(th, time.Second)).Reason, "the share is over, and the pause goes on")
		s.give(1)
		require.Zero(t, drain(th))
		time.Sleep(29 * time.Second)
		require.True(t, c.waits())
		time.Sleep(5 * time.Second)
		require.NoError(t, c.end(t).err)
		th.gate.SetPauses(nil)
		require.LessOrEqual(t, drain(th), 5, "what was saved up meanwhile is bounded")
	})
}

func refusedBy(l Limiter, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	_, err := l.Acquire(ctx, 1)
	return err
}

func TestPauseIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, ten, WithName("llm"), WithTag("gpt"))
		c := begin(th, 1, 5*time.Second)
		w := begin(th, 5, 0)
		require.True(t, c.waits())
		pauseFor(t, th, time.Minute)
		e := as[*Error](t, c.end(t).err) // it does not fit any more
		require.Equal(t, Error{Reason: ReasonPause, Limit: "llm", Tag: "gpt", Cost: 1, RetryAfter: e.RetryAfter, by: e.by}, *e)
		require.InDelta(t, 61, e.RetryAfter.Seconds(), 1)
		require.NotErrorIs(t, e, context.DeadlineExceeded)
		held, ok := th.Throttled()
		require.True(t, ok)
		require.Equal(t, ReasonPause, held.Reason)
		require.Equal(t, "gpt", held.Tag)
		require.Equal(t, "told so", held.Paused.Reason)
		require.Equal(t, held.Paused.Until, th.Status().Paused.Until)
		require.InDelta(t, 61, held.RetryAfter.Seconds(), 1)
		deny(t, th, 1)
		time.Sleep(2 * time.Minute)
		require.NoError(t, w.end(t).err)
		var b WaitStats
		for _, h := range th.WaitStats() {
			if h.Reason == ReasonPause {
				b = h
			}
		}
		require.Equal(t, int64(2), b.Refusals)
		require.InDelta(t, 62, b.Time.Seconds(), 2)
		require.Equal(t, int64(1), th.Status().Pauses)
	})
}

func TestPauseWithoutAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, ten)
		f := flight(t, 2)
		pauseFor(t, th, 0)
		pauseFor(t, f, 0)
		c, s := begin(th, 1, time.Hour), beginWith(f.Acquire, 1, time.Hour)
		held, ok := th.Throttled()
		require.True(t, ok)
		require.Zero(t, held.RetryAfter, "nobody knows")
		require.True(t, held.Paused.Until.IsZero())
		time.Sleep(30 * time.Minute)
		pauseFor(t, th, time.Second) // a shorter one changes nothing
		time.Sleep(10 * time.Minute)
		require.True(t, c.waits())
		require.True(t, s.waits())
		require.NoError(t, th.Resume(t.Context()))
		require.NoError(t, f.Resume(t.Context()))
		time.Sleep(time.Second) // the stagger
		require.NoError(t, c.end(t).err)
		require.NoError(t, s.end(t).err)
		require.NoError(t, th.Resume(t.Context()), "that there is none is no error")
		pauseFor(t, th, 0)
		late := begin(th, 1, time.Minute)
		time.Sleep(time.Minute)
		require.ErrorIs(t, late.end(t).err, ErrThrottled)
	})
}

func TestLaterPauseWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, ten)
		pauseFor(t, th, 10*time.Second)
		r, err := th.Pause(t.Context(), time.Now().Add(5*time.Second), "sooner")
		require.NoError(t, err)
		require.Equal(t, time.Now().Add(10*time.Second), r.Until)
		require.Empty(t, r.Answered)
		pauseFor(t, th, 20*time.Second)
		time.Sleep(20*time.Second - 1)
		require.Zero(t, drain(th))
		time.Sleep(2 * time.Second)
		require.NotZero(t, drain(th))
		require.Equal(t, int64(1), th.Status().Pauses, "one that went on")
	})
}

func TestPauseOfATag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, ten, WithTag("a"))
		time.Sleep(time.Second)
		pauseFor(t, th, time.Minute, PauseTag("b"))
		take(t, th, 1, "another tag")
		_, ok := th.Paused("c")
		require.False(t, ok)
		p, ok := th.Paused("b")
		require.True(t, ok)
		require.Equal(t, Paused{Tag: "b", Until: time.Now().Add(time.Minute), Reason: "told so"}, p)
		pauseFor(t, th, 10*time.Second, PauseTag("a"))
		deny(t, th, 1, "its own")
		require.NoError(t, th.Resume(t.Context()))
		deny(t, th, 1, "a pause of everything has ended, of which there was none")
		require.NoError(t, th.Resume(t.Context(), PauseTag("a")))
		time.Sleep(time.Second)
		take(t, th, 1)
		_, ok = th.Paused("b")
		require.True(t, ok)
		for i := range limit.MaxPausedTags - 1 {
			pauseFor(t, th, time.Minute, PauseTag(fmt.Sprint(i)))
		}
		_, err := th.Pause(t.Context(), time.Time{}, "", PauseTag("one more"))
		require.ErrorContains(t, err, `tag of the pause is "one more"`)
		pauseFor(t, th, 2*time.Minute, PauseTag("3"))
	})
}

func TestPausesThatAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, ten)
		for want, pause := range map[string]func() error{
			"end of the pause is in 0s": func() error { _, err := th.Pause(t.Context(), time.Now(), ""); return err },
			"end of the pause is in -1": func() error { _, err := th.Pause(t.Context(), time.Now().Add(-1), ""); return err },
			"end of the pause is in 87": func() error { _, err := th.Pause(t.Context(), time.Now().Add(limit.MaxPause+1), ""); return err },
			"reason of the pause is":    func() error { _, err := th.Pause(t.Context(), time.Time{}, strings.Repeat("x", 129)); return err },
			`reason of the pause is "a`: func() error { _, err := th.Pause(t.Context(), time.Time{}, "a\nb"); return err },
			"tag of the pause is":       func() error { _, err := th.Pause(t.Context(), time.Time{}, "", PauseTag("\xff")); return err },
			"wait for receipts of":      func() error { _, err := th.Pause(t.Context(), time.Time{}, "", WaitForReceipts(-1)); return err },
			`tag of the pause is "xxx`:  func() error { return th.Resume(t.Context(), PauseTag(strings.Repeat("x", 65))) },
		} {
			require.ErrorContains(t, pause(), want)
			require.Contains(t, pause().Error(), "allowed: ")
		}
		require.Nil(t, th.Status().Paused)
		_, err := whole(t, Limit{}).Pause(t.Context(), time.Time{}, "")
		require.ErrorContains(t, err, "no limit")
		require.NoError(t, th.Close())
		_, err = th.Pause(t.Context(), time.Time{}, "")
		require.ErrorIs(t, err, ErrClosed)
		require.ErrorIs(t, th.Resume(t.Context()), ErrClosed)
		f := flight(t, 1)
		require.NoError(t, f.Close())
		_, err = f.Pause(t.Context(), time.Time{}, "")
		require.ErrorIs(t, err, ErrClosed)
		_, err = flight(t, 0).Pause(t.Context(), time.Time{}, "")
		require.ErrorContains(t, err, "no limit")
	})
}

func TestNoPokesWhilePaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, ten, 1)
		s2 := &script{first: Lease{Share: WholeShare}}
		f := flight(t, 1, WithSharer(s2))
		until := []Paused{{Until: time.Now().Add(time.Minute)}}
		th.gate.SetPauses(until)
		f.gate.SetPauses(until)
		for range 100 {
			_, _ = th.TryAcquire(1)
			_, _ = f.TryAcquire(1)
			time.Sleep(20 * time.Millisecond)
		}
		require.Zero(t, s.pokes.Load()+s2.pokes.Load(), "no share would help")
		require.Equal(t, int64(100), th.Status().Refused)
	})
}

// Slots that were reserved before a pause are void after it, and none is reserved in it.
func TestPauseOfIssuedTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, c := issued(t, Limit{Max: 1, Strict: true, MaxReserved: 3})
		m := c.mint
		first := begin(th, 1, 0)
		time.Sleep(time.Second / 2)
		require.NoError(t, first.end(t).err)
		waits := []*call{begin(th, 1, 0), begin(th, 1, 0)}
		th.gate.SetPauses([]Paused{{Until: time.Now().Add(10 * time.Second)}})
		end := time.Now().Add(10 * time.Second)
		time.Sleep(time.Second)
		orders := m.asked()
		time.Sleep(9*time.Second - 1)
		require.Equal(t, orders, m.asked())
		require.True(t, waits[0].waits())
		held, _ := th.Throttled()
		require.Equal(t, ReasonPause, held.Reason)
		time.Sleep(10 * time.Second)
		var before time.Time
		for _, c := range waits {
			r := c.end(t)
			require.NoError(t, r.err)
			require.True(t, r.at.After(end))
			require.GreaterOrEqual(t, r.at.Sub(before), time.Second)
			before = r.at
		}
		sound(t, th)
	})
}
