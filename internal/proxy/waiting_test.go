package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/proxy"
	"github.com/numaproj-contrib/numathrottle/internal/quotatest"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Half of the places may wait for one tag; what comes above is told at once what the tag lacks, and no other tag is.
func TestATagThatWaitsLeavesPlacesForOthers(t *testing.T) {
	for _, tag := range []string{quotatest.Total, quotatest.Budget, quotatest.Paused} {
		t.Run(tag, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th := quotatest.New(t)
				l, ok := proxy.BoundTags(th, 6).(throttle.Tagger)
				require.True(t, ok)
				for range quotatest.Passes(tag, 100) {
					_, err := l.ForTag(tag).Acquire(t.Context(), 1)
					require.NoError(t, err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 3)
				for range 3 {
					go func() {
						_, err := l.ForTag(tag).AcquireUpTo(ctx, 1)
						ended <- err
					}()
				}
				synctest.Wait()
				for _, acquire := range []func(context.Context, int) (throttle.Permit, error){l.ForTag(tag).Acquire, l.ForTag(tag).AcquireUpTo} {
					_, err := acquire(t.Context(), 1)
					require.NoError(t, quotatest.Fault(err, tag))
				}
				require.Empty(t, ended)
				_, err := l.ForTag(quotatest.Free).Acquire(t.Context(), 1)
				require.NoError(t, err)
				cancel()
				for range 3 {
					require.ErrorIs(t, <-ended, context.Canceled)
				}
				ctx, cancel = context.WithTimeout(t.Context(), 48*time.Hour)
				defer cancel()
				_, err = l.ForTag(tag).Acquire(ctx, 1)
				require.Equal(t, tag == quotatest.Paused, err == nil, "they have left, and the pause is over after a day: %v", err)
			})
		})
	}
}

// Invented names wait for one quota, that of all other tags: they leave half of the places, of a limit and of several.
func TestInventedTagsLeavePlacesForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, err := throttle.New(throttle.Limit{Max: 100}, throttle.WithQuotas(throttle.Quotas{
			Tags: map[string]throttle.Quota{"acme": {}}, Other: throttle.Quota{Total: 1},
		}))
		require.NoError(t, err)
		defer th.Close()
		calls, err := throttle.NewInFlight(100)
		require.NoError(t, err)
		defer calls.Close()
		for _, limiter := range []throttle.Limiter{th, throttle.All(th, calls)} {
			l, ok := proxy.BoundTags(limiter, 10).(throttle.Tagger)
			require.True(t, ok)
			ctx, cancel := context.WithCancel(t.Context())
			var waiting, refused atomic.Int32
			for i := range 20 {
				go func() {
					waiting.Add(1)
					defer waiting.Add(-1)
					if _, err := l.ForTag(fmt.Sprint("u", i)).Acquire(ctx, 1); errors.Is(err, throttle.ErrThrottled) {
						refused.Add(1)
					}
				}()
			}
			synctest.Wait()
			require.LessOrEqual(t, waiting.Load(), int32(5))
			require.GreaterOrEqual(t, refused.Load(), int32(14)) // one may have got its token
			_, err := l.ForTag("acme").Acquire(t.Context(), 1)
			require.NoError(t, err)
			cancel()
			synctest.Wait()
		}
	})
}

// What tells no tags apart stays as it is, and what a service says reaches the limit.
func TestBoundTagsOfOtherLimiters(t *testing.T) {
	plain, err := throttle.New(throttle.Limit{Max: 10})
	require.NoError(t, err)
	defer plain.Close()
	require.Same(t, plain, proxy.BoundTags(plain, 10))
	th := quotatest.New(t)
	l := proxy.BoundTags(th, 10)
	reported, ok := l.(interface {
		RetryAfter(until time.Time, reason string)
	})
	require.True(t, ok)
	reported.RetryAfter(time.Now().Add(time.Minute), "test")
	require.NotNil(t, th.Status().Paused)
}
