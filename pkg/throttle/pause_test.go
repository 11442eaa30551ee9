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

func refusedBy(l Limiter, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	_, err := l.Acquire(ctx, 1)
	return err
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
