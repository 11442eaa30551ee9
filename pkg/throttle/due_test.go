package throttle

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/engine/join"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// Behind kept tokens a caller waits until there are more than those, or until they are kept no longer. Without a share nobody knows.
func TestDueBesideKeptTokens(t *testing.T) {
	for until, want := range map[int64]time.Duration{
		never:                         400 * time.Millisecond,
		int64(250 * time.Millisecond): 250 * time.Millisecond,
		int64(50 * time.Millisecond):  100 * time.Millisecond,
	} {
		synctest.Test(t, func(t *testing.T) {
			th, s, r := reserved(t, Limit{Max: 10, Burst: 5}, 1)
			r.keeps, r.until = 3, until
			due := func() (time.Duration, bool) {
				source := rateSource{&th.rateLimiter}
				source.Lock()
				defer source.Unlock()
				w := join.Newcomer(source, 1)
				return source.Due(&w)
			}
			wait, known := due()
			require.True(t, known)
			require.InDelta(t, want, wait, 1000)
			s.h.Lease(limit.Lease{})
			wait, known = due()
			require.False(t, known)
			require.Zero(t, wait)
		})
	}
}
