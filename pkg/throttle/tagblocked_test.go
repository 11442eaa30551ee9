package throttle

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A blocked tag gets nothing, whatever is reserved or saved up, until its quota is changed; the others get all of the limit.
func TestBlockedTag(t *testing.T) {
	for name, pooled := range map[string]bool{"alone": false, "in a pool": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := Quotas{
					Tags:  map[string]Quota{"a": {Blocked: true, Reserved: 50}, "shadowed": {Blocked: true, Shadow: true}, "b": {}},
					Match: []QuotaPattern{{Tag: "free/*", Quota: Quota{Blocked: true}}},
				}
				var th *Throttle
				var s *script
				if pooled {
					th, s = scripted(t, Limit{Max: 100, Burst: 100}, 1, WithQuotas(q))
				} else {
					th = quotaed(t, Limit{Max: 100, Burst: 100}, q)
				}
				time.Sleep(10 * time.Second)
				if pooled {
					s.h.GrantTags([]TagGrant{{Tag: "a"}, {Tag: "b"}})
				}
				for _, tag := range []string{"a", "free/x"} {
					deny(t, th.ForTag(tag), 1, tag)
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					_, err := th.ForTag(tag).Acquire(ctx, 1)
					cancel()
					require.Equal(t, ReasonQuota, throttled(t, err).Reason)
					deny(t, th.ForTags("b", tag), 1, tag)
				}
				take(t, th.ForTag("shadowed"), 1)
				time.Sleep(10 * time.Second)
				take(t, th.ForTag("b"), 100)
				require.Equal(t, "total", statusOf(th, "a").By)
				require.Zero(t, statusOf(th, "a").Target)
				if pooled {
					s.h.(rateHolder).SetQuotas( //nolint:errcheck,forcetypeassert // it is one
						Quotas{Tags: map[string]Quota{"a": {}, "b": {}}}.WithDefaults(time.Second))
					time.Sleep(time.Second)
					take(t, th.ForTag("a"), 1)
				}
			})
		})
	}
}
