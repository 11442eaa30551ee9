package sim

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// drawSchedules are the directed schedules of drawing.
var drawSchedules = []directed{
	{
		// The loop of a is stuck, its callers are not.
		name: "callers draw beside a stuck loop", rule: "lease-at-draw",
		run: func(t *testing.T, w *world) {
			a, b := w.join("a"), w.join("b")
			w.until(t, func() bool { return near(a, 50) && near(b, 50) })
			w.halt(a, time.Hour, false)
			for end := w.now + time.Minute; w.now < end && w.violation == nil; w.run(w.now + 20*time.Millisecond) {
				if _, ok := a.drawer.th.TryAcquire(1); ok {
					w.use(1)
				}
			}
			require.True(t, w.violation != nil || near(b, 100))
		},
	},
	{
		// a has a full bucket when it gives way to b and c, which fill theirs. Then all
		// draw at once.
		name: "full buckets change hands", rule: "fall-clamps",
		plan: func(p *plan) { p.limit.Burst = p.limit.Max },
		run: func(t *testing.T, w *world) {
			a := w.join("a")
			a.drawer.restUntil = time.Minute
			w.until(t, func() bool { return near(a, 100) })
			w.run(w.now + 5*time.Second)
			a.demand = 0
			b, c := w.join("b"), w.join("c")
			b.drawer.restUntil, c.drawer.restUntil = time.Minute, time.Minute
			w.run(w.now + 5*time.Second)
			require.True(t, near(b, 50) && near(c, 50))
			for _, p := range []*process{a, b, c} {
				for {
					if _, ok := p.drawer.th.TryAcquire(1); !ok {
						break
					}
					w.use(1)
				}
			}
		},
	},
	{
		// A caller of a waits for the whole burst with half the share, and gets it one
		// day. Then b draws what its own half has saved up.
		name: "a draw larger than the bucket under a hard limit", rule: "hard-collect",
		plan: func(p *plan) { p.limit = throttle.Limit{Max: 20, Burst: 20, Hard: true} },
		run: func(t *testing.T, w *world) {
			a, b := w.join("a"), w.join("b")
			a.drawer.restUntil, b.drawer.restUntil = time.Hour, time.Hour
			w.until(t, func() bool { return near(a, 50) && near(b, 50) })
			ctx, cancel := context.WithCancel(t.Context())
			got := make(chan throttle.Permit)
			go func() {
				permit, _ := a.drawer.th.Acquire(ctx, w.plan.limit.Burst)
				got <- permit
			}()
			waiting := func() bool { return a.drawer.th.Status().Waiting > 0 }
			require.Eventually(t, waiting, 10*time.Second, time.Millisecond)
			for end := w.now + 2*time.Minute; w.now < end && waiting(); {
				w.run(w.now + time.Second)
			}
			cancel()
			permit := <-got
			w.use(int64(permit.N()))
			for w.violation == nil {
				if _, ok := b.drawer.th.TryAcquire(1); !ok {
					break
				}
				w.use(1)
			}
			require.Equal(t, w.violation == nil, permit.N() == 0)
		},
	},
	{
		// Half of Max is drawn and not used. When the bucket is full again it is all
		// drawn and used, and then the rest is given back.
		name: "a full bucket and what is given back to it", rule: "hard-give-back",
		plan: func(p *plan) { p.limit = throttle.Limit{Max: 20, Burst: 10, Hard: true} },
		run: func(t *testing.T, w *world) {
			a := w.join("a")
			a.drawer.restUntil = time.Minute
			w.until(t, func() bool { return near(a, 100) })
			drawAll := func() (permits []throttle.Permit) {
				for {
					permit, ok := a.drawer.th.TryAcquire(1)
					if !ok {
						return permits
					}
					permits = append(permits, permit)
				}
			}
			w.run(w.now + 5*time.Second)
			unused := drawAll()
			require.Len(t, unused, 10)
			w.run(w.now + 5*time.Second)
			w.use(int64(len(drawAll())))
			for _, permit := range unused {
				permit.Cancel()
			}
			for end := w.now + 3*time.Second; w.now < end && w.violation == nil; w.run(w.now + 10*time.Millisecond) {
				w.use(int64(len(drawAll())))
			}
		},
	},
	{
		// a uses ten seconds' worth of its share more than it has estimated, and
		// leaves: that is not there for b a second time.
		name: "debt is left behind", rule: "debt-at-leave",
		run: func(t *testing.T, w *world) {
			a, b := w.join("a"), w.join("b")
			w.until(t, func() bool { return near(a, 50) && near(b, 50) })
			var permit throttle.Permit
			w.until(t, func() (ok bool) {
				permit, ok = a.drawer.th.TryAcquire(1)
				return ok
			})
			tenSeconds := 10 * w.plan.limit.Max / 2
			permit.Settle(1 + tenSeconds)
			before := w.counters.Granted
			w.leave(a)
			w.run(w.now + 10*time.Second)
			used, allowed := int(w.counters.Granted-before)+tenSeconds, 10*w.plan.limit.Max+w.plan.limit.Burst+2
			if used > allowed {
				w.violatef(CheckWindow, "%d used in ten seconds, allowed are %d", used, allowed)
			}
			w.run(w.now + 20*time.Second)
			require.True(t, w.violation != nil || near(b, 100))
		},
	},
}
