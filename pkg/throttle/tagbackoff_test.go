package throttle

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A caller of a tag, and what came of its calls.
type client struct {
	accepted, refused atomic.Int64
}

// since is what became of the calls in d, per second.
func (c *client) over(d time.Duration) (accepted, refused float64) {
	a, r := c.accepted.Load(), c.refused.Load()
	time.Sleep(d)
	return float64(c.accepted.Load()-a) / d.Seconds(), float64(c.refused.Load()-r) / d.Seconds()
}

// crowd starts callers that draw from l, call and report. A nil service accepts everything.
func crowd(ctx context.Context, l Limiter, s *service, callers int, took time.Duration) *client {
	c := &client{}
	for range callers {
		go func() {
			for {
				p, err := l.Acquire(ctx, 1)
				if err != nil {
					return
				}
				o := Accepted
				if s != nil {
					o = s.take()
				}
				time.Sleep(took)
				p.Report(o)
				if o == Accepted {
					c.accepted.Add(1)
				} else {
					c.refused.Add(1)
				}
			}
		}()
	}
	return c
}

// inBubble runs a test in virtual time, whose calls end with it.
func inBubble(t *testing.T, test func(t *testing.T, ctx context.Context)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		test(t, ctx)
		cancel()
		time.Sleep(time.Minute)
	})
}

// A service that refuses one tag slows that tag, and nobody else.
func TestATagIsSlowedDownByItself(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		th := quotaed(t, Limit{Max: 1000, Adaptive: true}, tagsOf(map[string]Quota{"a": {}, "b": {}}))
		s := &service{rate: 1e6, at: time.Now()}
		a := crowd(ctx, th.ForTag("a"), s, 8, 20*time.Millisecond)
		b := crowd(ctx, th.ForTag("b"), nil, 8, 20*time.Millisecond)
		got, _ := a.over(10 * time.Second)
		require.InDelta(t, 400, got, 5)
		require.Zero(t, statusOf(th, "a").Limiting)

		s.can(50)
		time.Sleep(10 * time.Second)
		got, refused := a.over(time.Minute)
		t.Log(got, refused, statusOf(th, "a"))
		require.InDelta(t, 50, got, 10)
		require.Less(t, refused, got/20)
		got, _ = b.over(time.Minute)
		require.InDelta(t, 400, got, 5)
		require.InDelta(t, 1, th.Status().Backoff.Part, 0)
		require.Zero(t, th.Status().Backoff.Cuts)
		st := statusOf(th, "a")
		require.Equal(t, "limiting", st.By)
		require.InDelta(t, 50, st.Limiting, 20)

		s.can(1e6)
		time.Sleep(20 * time.Second)
		got, _ = a.over(10 * time.Second)
		require.InDelta(t, 400, got, 5, "it comes back with the service")
		require.Zero(t, statusOf(th, "a").Limiting, "and is free")
		require.EqualValues(t, -1, inHand(th, "a"))
	})
}

// Where the service refuses calls of all tags it is the limit that falls.
func TestTheLimitFallsForWhatAllTagsAreRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		th := quotaed(t, Limit{Max: 1000, Adaptive: true}, tagsOf(map[string]Quota{"a": {}, "b": {}, "c": {}}))
		s := &service{rate: 1e6, at: time.Now()}
		var all []*client
		for _, tag := range []string{"a", "b", "c"} {
			all = append(all, crowd(ctx, th.ForTag(tag), s, 8, 20*time.Millisecond))
		}
		time.Sleep(10 * time.Second)
		s.can(100)
		time.Sleep(20 * time.Second)
		require.Positive(t, th.Status().Backoff.Cuts)
		require.Less(t, th.Status().Rate, 200.0)
		for _, tag := range []string{"a", "b", "c"} {
			t.Log(statusOf(th, tag))
		}
		got, _ := all[0].over(30 * time.Second)
		require.InDelta(t, 33, got, 8)
	})
}
