package throttle

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/bounds"
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

func TestPauseOfTooManyTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, ten, WithTag("a"))
		pauseFor(t, th, time.Minute, PauseTag("b"))
		_, ok := th.Paused("c")
		require.False(t, ok)
		p, ok := th.Paused("b")
		require.True(t, ok)
		require.Equal(t, Paused{Tag: "b", Until: time.Now().Add(time.Minute), Reason: "told so"}, p)
		for i := range bounds.MaxPausedTags - 2 {
			pauseFor(t, th, time.Minute, PauseTag(fmt.Sprint(i)))
		}
		_, err := th.Pause(t.Context(), time.Time{}, "", PauseTag("one more"))
		require.ErrorContains(t, err, `tag of the pause is "one more"`)
		pauseFor(t, th, 2*time.Minute, PauseTag("3"))
		pauseFor(t, th, time.Minute) // always has room
		require.NotNil(t, th.Status().Paused)
		_, err = th.Pause(t.Context(), time.Time{}, "", PauseTag("one more"))
		require.ErrorContains(t, err, "15 tags are paused")
	})
}

func TestPausesThatAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, ten)
		for want, pause := range map[string]func() error{
			"end of the pause is in 0s": func() error { _, err := th.Pause(t.Context(), time.Now(), ""); return err },
			"end of the pause is in -1": func() error { _, err := th.Pause(t.Context(), time.Now().Add(-1), ""); return err },
			"end of the pause is in 87": func() error { _, err := th.Pause(t.Context(), time.Now().Add(bounds.MaxPause+1), ""); return err },
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

// After a pause in which nobody waited, draws need no lock again.
func TestAPauseThatIsOverOpensTheBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := full(t, 10)
		pauseFor(t, th, time.Minute)
		require.NotNil(t, th.bucket.Current().Behind)
		time.Sleep(2 * time.Minute)
		require.Nil(t, th.bucket.Current().Behind)
	})
}
