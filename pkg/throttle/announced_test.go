package throttle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
	"github.com/numaproj-contrib/numathrottle/internal/hook"
)

// A lower limit counts at once, a higher one once the lower was not announced for a while, and none after five minutes.
func TestAnnouncedLimitsOfAThrottle(t *testing.T) {
	const second = int64(time.Second)
	var a announced
	require.Zero(t, a.at(0))
	for _, step := range []struct{ at, told, want int64 }{
		{0, 600, 600},
		{1, 300, 300},
		{2, 600, 300},
		{5, 300, 300},
		{9, 600, 300},
		{10, 700, 700},
		{11, 0, 700},
		{310, 0, 700},
		{311, 0, 0},
		{312, 900, 900},
		{313, 1, 1},
		{613, 0, 1},
		{614, 0, 0},
		{614, 800, 800},
	} {
		if step.told > 0 {
			a.note(step.told, step.at*second)
		}
		require.Equal(t, step.want, a.at(step.at*second), "at %d s", step.at)
	}
}

// Absurd figures are brought into the bounds of a limit, and other limiters have no use for any.
func TestAnnounceIsBounded(t *testing.T) {
	th, err := New(Limit{Max: 600, Per: time.Minute})
	require.NoError(t, err)
	defer th.Close()
	for _, step := range []struct{ told, want int64 }{{1 << 60, maxTokens}, {0, 1}, {-5, 1}} {
		hook.Announce(th, step.told)
		r, _ := th.activity(time.Second, false)
		require.Equal(t, step.want, r.Announced)
	}
	hook.Announce(PerCall(th), 5)
	r, _ := th.activity(0, false)
	require.Equal(t, int64(1), r.Announced)
	for told, want := range map[int64]int64{-1: 0, 60: 60, 1 << 60: maxTokens} {
		l := hook.Follow(Limit{Max: 600, Per: time.Minute}, told).(Limit) //nolint:forcetypeassert,errcheck // as documented
		require.NoError(t, l.Validate())
		c := l.ceilingConfig()
		require.True(t, c.Follows)
		require.Equal(t, want, c.First)
	}
	require.Equal(t, ceiling.Config{}, hook.Follow(Limit{}, 60).(Limit).ceilingConfig()) //nolint:forcetypeassert,errcheck // as documented
}
