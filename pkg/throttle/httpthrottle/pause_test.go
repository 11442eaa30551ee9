package httpthrottle_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p httpthrottle.Pause
		refused := func(class httpthrottle.Class, reported time.Duration, sent time.Time) time.Duration {
			p.Refused(t.Context(), httpthrottle.Refusal{Class: class, RetryAfter: reported, Sent: sent, At: time.Now()})
			return p.Paused("")
		}
		accepted := func(sent time.Time) {
			p.Accepted(t.Context(), httpthrottle.Acceptance{Status: 200, Sent: sent, At: time.Now()})
		}
		accepted(time.Now())
		require.Zero(t, p.Paused(""))
		require.Zero(t, refused(httpthrottle.Stop, time.Minute, time.Now()))
		require.Zero(t, refused(httpthrottle.Overload, 0, time.Now()))
		require.Equal(t, 2*time.Second, refused(httpthrottle.Overload, 2*time.Second, time.Now()))
		require.Equal(t, 2*time.Second, refused(httpthrottle.Wait, time.Second, time.Now()))
		require.Equal(t, 5*time.Minute, refused(httpthrottle.Wait, 100*time.Hour, time.Now()))
		require.Zero(t, p.Paused("other"))
		time.Sleep(5 * time.Minute)
		require.Zero(t, p.Paused(""))

		// Refusals that do not say how long count once for each round trip.
		before := time.Now()
		require.Equal(t, 500*time.Millisecond, refused(httpthrottle.Wait, 0, before))
		time.Sleep(time.Millisecond)
		for range 10 {
			require.Equal(t, 499*time.Millisecond, refused(httpthrottle.Wait, 0, before.Add(-time.Millisecond)))
		}
		accepted(before.Add(-time.Millisecond)) // sent before, so it says nothing about now
		for _, want := range []int{1000, 2000, 4000, 8000, 16_000, 30_000, 30_000} {
			time.Sleep(time.Minute)
			require.Equal(t, time.Duration(want)*time.Millisecond, refused(httpthrottle.Wait, 0, time.Now()))
		}
		time.Sleep(time.Minute)
		accepted(time.Now())
		require.Equal(t, 500*time.Millisecond, refused(httpthrottle.Wait, 0, time.Now()))
	})
}

// A Pause forgets tags whose pause is over.
func TestPauseForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p httpthrottle.Pause
		refused := func(tag int) {
			p.Refused(t.Context(), httpthrottle.Refusal{Class: httpthrottle.Wait, RetryAfter: time.Second, At: time.Now(), Tag: strconv.Itoa(tag)})
		}
		for i := range 1000 {
			refused(i)
		}
		require.Equal(t, 1000, httpthrottle.Tags(&p), "forgot what is paused")
		for i := range 1000 {
			time.Sleep(time.Minute)
			refused(1000 + i)
			require.Equal(t, time.Second, p.Paused(strconv.Itoa(1000+i)))
		}
		require.LessOrEqual(t, httpthrottle.Tags(&p), 16)
	})
}
