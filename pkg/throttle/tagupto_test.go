package throttle

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A caller that takes whatever there is counts as one that wants all tokens there can be: a sum of several stays a number of tokens, and
// the pool learns of it.
func TestUpToAnyNumberOfTokensForATag(t *testing.T) {
	for name, of := range map[string]func(t *testing.T, l Limiter) Limiter{
		"a tag":        func(_ *testing.T, l Limiter) Limiter { return l },
		"a tag in All": func(t *testing.T, l Limiter) Limiter { return All(l, flight(t, 10)) },
	} {
		for held, q := range map[string]Quota{"by its quota": {Total: 1, Per: time.Hour}, "by the limit": {}, "by a pause": {}} {
			t.Run(name+" "+held, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					th, s := scripted(t, Limit{Max: 1, Per: time.Hour}, 1, WithQuotas(Quotas{Tags: map[string]Quota{"acme": q}}))
					if held == "by a pause" {
						s.h.SetPauses([]Paused{{Tag: "acme", Until: time.Now().Add(time.Minute)}})
					}
					upTo := of(t, th.ForTag("acme")).AcquireUpTo
					for range 2 {
						defer beginWith(upTo, math.MaxInt, 0).cancel()
						defer beginWith(upTo, math.MaxInt, 10*time.Second).cancel()
					}
					g := as[*tagView](t, th.ForTag("acme")).first()
					time.Sleep(11 * time.Second)
					for _, n := range []int64{g.waiting.Load(), g.refused.Load()} { // of two callers each
						require.GreaterOrEqual(t, n, int64(2))
						require.LessOrEqual(t, n, int64(2*maxTokens))
					}
					require.Equal(t, "acme", s.h.ReportTags(time.Second)[0].Tag)
				})
			})
		}
	}
}
