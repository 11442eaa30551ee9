package throttle

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Without a pool, a limiter that is told to wait is paused; no longer than an hour.
func TestToldAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Replicas(4)
		require.NoError(t, err)
		for _, th := range []*Throttle{whole(t, ten), whole(t, ten, WithSharer(s))} {
			f := flight(t, 2)
			th.RetryAfter(time.Now().Add(-time.Second), "late")
			require.Nil(t, th.Status().Paused)
			th.RetryAfter(time.Now().Add(10*time.Second), strings.Repeat("ü", 100))
			f.RetryAfter(time.Now().Add(1000*time.Hour), "status 429")
			require.Equal(t, time.Now().Add(10*time.Second), th.Status().Paused.Until.Truncate(time.Second))
			require.Equal(t, strings.Repeat("ü", 64), th.Status().Paused.Reason)
			require.LessOrEqual(t, time.Until(f.Status().Paused.Until), time.Hour+time.Minute)
		}
		first := whole(t, ten)
		all, ok := All(first, PerCall(flight(t, 2))).(*multi)
		require.True(t, ok)
		all.RetryAfter(time.Now().Add(time.Second), "")
		require.NotNil(t, first.Status().Paused)
		whole(t, Limit{}).RetryAfter(time.Now().Add(time.Hour), "no limit")
		closed := whole(t, ten)
		require.NoError(t, closed.Close())
		closed.RetryAfter(time.Now().Add(time.Hour), "closed")
		require.Nil(t, closed.Status().Paused)
	})
}

// What was refused to a tag is no reason to stop the others: neither the limit of the tag nor another one of an All is told.
func TestToldForATag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, requests := quotaed(t, ten, tagsOf(map[string]Quota{"a": {}})), whole(t, ten)
		reported := func(l Limiter) bool {
			all, ok := l.(interface {
				RetryAfter(until time.Time, reason string)
			})
			require.True(t, ok)
			all.RetryAfter(time.Now().Add(time.Second), "")
			return th.Status().Paused != nil || requests.Status().Paused != nil
		}
		both, ok := All(PerCall(requests), th).(Tagger)
		require.True(t, ok)
		require.False(t, reported(both.ForTag("a")))
		require.False(t, reported(both.ForTag("nobody's")))
		require.False(t, reported(ForTags(both, "a", "b")))
		require.False(t, reported(All(requests, th.ForTag("a"))))
		require.True(t, reported(both), "without a tag it is as ever")
	})
}
