package throttle

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// shortTwice is a Throttle with a caller of hog that was woken for the next token when quiet became short of three: it looks, has to leave the
// token, and is woken by nobody else.
func shortTwice(ctx context.Context, t *testing.T, limit Limit) (th *Throttle, granted *atomic.Int64) {
	t.Helper()
	th = whole(t, limit, WithQuotas(tagsOf(map[string]Quota{"quiet": {Reserved: 2, Per: time.Second}, "hog": {}})))
	hog := All(th.ForTag("hog"), flight(t, 5)) // so that callers wait by attempts
	granted = &atomic.Int64{}
	go func() {
		for {
			p, err := hog.Acquire(ctx, 1)
			if err != nil {
				return
			}
			p.Settle(1)
			granted.Add(1)
		}
	}()
	quiet := viewOf(th.ForTag("quiet")).first()
	time.Sleep(1500 * time.Millisecond)
	for woken := false; !woken; {
		th.gate.Lock()
		wait, ok := th.bucket.Law().Wait(th.bucket.Units(1) - th.bucket.Level(th.gate.Now()))
		th.gate.Unlock()
		require.True(t, ok)
		time.Sleep(wait)
		th.gate.Lock()
		now := th.gate.Now()
		if woken = th.bucket.Level(now) >= th.bucket.Units(1); woken {
			th.serve(now)
			th.tags.short.lacks(quiet, 3, now)
		}
		th.gate.Unlock()
	}
	return th, granted
}

// A caller that has to leave what it was woken for is served all the same, as soon as there is more, or nothing is kept any more.
func TestWhoLeavesTokensIsServedInTheEnd(t *testing.T) {
	for name, c := range map[string]struct {
		limit Limit
		after time.Duration
	}{
		"there is more":   {Limit{Max: 10, Burst: 5}, 2 * time.Second},
		"nothing is kept": {Limit{Max: 20, Per: 10 * time.Second, Burst: 5}, 1100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				_, granted := shortTwice(ctx, t, c.limit)
				before := granted.Load()
				time.Sleep(c.after)
				require.Greater(t, granted.Load(), before)
			})
		})
	}
}

// Nothing is kept for callers that wait: who comes later of a tag would overtake those who wait already.
func TestAcquireIsNoShortage(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		th := quotaed(t, Limit{Max: 100}, tagsOf(map[string]Quota{"a": {Reserved: 50, Total: 1000}, "hog": {}}))
		(&load{tag: "hog", callers: 50}).run(ctx, th)
		time.Sleep(2 * time.Second)
		h := gather(ctx, 400, &service{}, func(ctx context.Context, who int) (Permit, error) {
			time.Sleep(time.Duration(who) * 15 * time.Millisecond)
			return th.ForTag("a").Acquire(ctx, 1)
		})
		time.Sleep(30 * time.Second)
		granted, _ := h.done()
		require.Equal(t, 400, granted)
		h.requireOrder(t)
		require.False(t, th.tags.short.any(th.gate.Now()-lackFor*30), "in all this time")
	})
}
