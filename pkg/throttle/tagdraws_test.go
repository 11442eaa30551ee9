package throttle

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/engine/waitqueue"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// held is a tag with so many tokens of a pool.
func held(t *testing.T, tokens int64) *tag {
	t.Helper()
	th, s := scripted(t, Limit{Max: 1000}, 1, WithQuotas(tagsOf(map[string]Quota{"a": {Total: 1000}})))
	s.h.GrantTags([]sharing.TagGrant{batch("a", tokens, time.Hour)})
	return viewOf(th.ForTag("a")).first()
}

// Promised tokens are at hand for their owners, and for draws that stand in several queues: their owners may be waiting elsewhere.
func TestTagTokensPromised(t *testing.T) {
	for what, c := range map[string]struct {
		tokens, promised int64
		w                waiter
		hand             int
	}{
		"none":              {10, 0, waiter{}, 10},
		"to others":         {10, 4, waiter{}, 6},
		"more than are":     {3, 4, waiter{}, 0},
		"in several queues": {10, 4, waiter{Many: true}, 10},
		"to it alone":       {10, 4, waiter{Promised: 4}, 10},
		"to it, too":        {10, 4, waiter{Promised: 1}, 7},
		"to it of too few":  {3, 4, waiter{Promised: 1}, 1},
		"to it of none":     {0, 4, waiter{Promised: 1}, 0},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := tagBucketSource{held(t, c.tokens)}
				g.Lock()
				defer g.Unlock()
				g.promised, c.w.Age = c.promised, waitqueue.Latest
				require.Equal(t, c.hand, g.AtHand(&c.w))
				require.Equal(t, min(c.promised, c.tokens), g.kept(g.t.gate.Now()))
				require.Equal(t, c.promised > int64(c.w.Promised), g.Promised(&c.w))
				first := &waiter{Least: 1, Age: 1, Attempt: &waitqueue.Attempt[Permit]{}}
				g.queue.Insert(first)
				defer g.queue.Remove(first)
				if c.w.Promised == 0 && !c.w.Many { // which come first
					c.hand = 0
				}
				require.Equal(t, c.hand, g.AtHand(&c.w), "behind another one")
			})
		})
	}
}

// A closed limit has no tokens of tags at hand, for any caller.
func TestTagTokensOfAClosedLimit(t *testing.T) {
	g := tagBucketSource{held(t, 10)}
	require.NoError(t, as[*Throttle](t, g.t.seat.self).Close())
	g.Lock()
	defer g.Unlock()
	g.promised = 4
	require.Zero(t, g.AtHand(&waiter{Age: waitqueue.Latest}))
	require.Zero(t, g.AtHand(&waiter{Promised: 4}))
}

// A tag that yields stands behind the others until it yields no more.
func TestTagCallersLetOthersPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := tagBucketSource{held(t, 0)}
		l := g.set.viewOf(g.tag)
		beginWith(l.Acquire, 3, 0)
		beginWith(l.Acquire, 4, 0)
		g.Lock()
		defer g.Unlock()
		first := g.queue.First
		require.Equal(t, 3, first.Least)
		g.LetPass(first, true)
		require.Equal(t, 4, g.queue.First.Least)
		g.LetPass(first, false)
		require.Same(t, first, g.queue.First)
		g.LetPass(&waiter{Least: 1}, true)
		require.Equal(t, 2, g.queue.Len, "it does not stand there")
	})
}

// A tag of many names refuses for that reason what its total refuses.
func TestTagOfManyNamesLacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := held(t, 0)
		g.mu.Lock()
		defer g.mu.Unlock()
		require.Equal(t, ReasonQuota, g.lacks(0, 1))
		g.many = true
		require.Equal(t, ReasonNames, g.lacks(0, 1))
		g.tagBucket.Grant(sharing.TagGrant{Needed: true, Lacks: ReasonBudget}, 0, 0, 0)
		require.Equal(t, ReasonBudget, g.lacks(0, 1))
	})
}

// A draw that does not wait, of a tag above its rate, is refused while another tag lacks tokens: by that one's class only if it is higher.
func TestTagYieldsToOthers(t *testing.T) {
	for _, c := range []struct {
		own, other limit.Class
		reason     Reason
	}{
		{ClassBatch, ClassInteractive, ReasonClass},
		{ClassBatch, ClassBatch, ReasonLimit},
		{ClassInteractive, ClassInteractive, ReasonLimit},
		{ClassInteractive, ClassBatch, ReasonLimit},
	} {
		synctest.Test(t, func(t *testing.T) {
			th := quotaed(t, Limit{Max: 1000, Burst: 100}, tagsOf(map[string]Quota{"own": {Class: c.own}, "other": {Class: c.other}}))
			time.Sleep(time.Second)
			l, now := viewOf(th.ForTag("own")), th.gate.Now()
			l.first().pace = pace{rate: 1, level: -1, at: now}
			th.tags.short.lacks(viewOf(th.ForTag("other")).first(), 1, now)
			deny(t, l, 1)
			require.Equal(t, []WaitStats{{Reason: c.reason, Refusals: 1}}, th.WaitStats())
		})
	}
}

// Before there is a plan no tag keeps to a rate, so none is short of tokens.
func TestTagIsNotShortBeforeAPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := quotaed(t, Limit{Max: 10, Burst: 1}, tagsOf(map[string]Quota{"a": {}}))
		l := viewOf(th.ForTag("a"))
		deny(t, l, 1)
		require.False(t, th.tags.short.any(0))
		require.False(t, l.within(0, 1))
		l.first().pace = pace{rate: 8}
		require.False(t, l.within(0, 1))
		require.True(t, l.within(int64(time.Second), 1))
	})
}

// A wait of a draw with several tags counts for the pace of the first one, in whose tag queue it stands.
func TestTagPaceOfDrawsThatWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := quotaed(t, Limit{Max: 100, Burst: 1}, tagsOf(map[string]Quota{"a": {}, "b": {}}))
		th.tags.plan.stop()
		l := viewOf(th.ForTags("a", "b"))
		for _, g := range l.tags {
			g.pace = pace{rate: 8}
		}
		acquire(t, l, 3)
		require.Less(t, l.tags[0].pace.level, -2.0)
		require.Zero(t, l.tags[1].pace.level)
	})
}

// A pause of a tag holds draws until it ends, and not longer.
func TestTagPauseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 1000, Burst: 100}, 1, WithQuotas(tagsOf(map[string]Quota{"a": {}})))
		time.Sleep(time.Second)
		l := viewOf(th.ForTag("a"))
		pauses := &pauseSource{tagView: l}
		_, ok := pauses.Take(nil, 1)
		require.True(t, ok && pauses.Peek(1))
		until := time.Now().Add(10 * time.Second)
		s.h.SetPauses([]Paused{{Tag: "a", Until: until}})
		_, ok = pauses.Take(nil, 1)
		require.False(t, ok || pauses.Peek(1))
		acquire(t, l, 1)
		require.InDelta(t, 0, time.Since(until), float64(time.Microsecond))
	})
}

// Other quotas change nothing at a closed limit, nor at one without quotas.
func TestTagQuotasOfAClosedLimit(t *testing.T) {
	th := quotaed(t, Limit{Max: 10}, tagsOf(map[string]Quota{"a": {Total: 5}}))
	require.NoError(t, th.Close())
	rateHolder{th}.SetQuotas(Quotas{})
	require.Equal(t, 5, th.tags.quotas.Tags["a"].Total)
	rateHolder{whole(t, Limit{Max: 10})}.SetQuotas(Quotas{})
}

// A caller that leaves a fair queue does not take away the tokens collected for the caller before it.
func TestCollectedTokensStayWithTheirCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := quotaed(t, Limit{Max: 10, Burst: 5}, Quotas{Tags: map[string]Quota{"a": {}}})
		large, small := begin(th, 9, 0), begin(th, 1, 0)
		time.Sleep(700 * time.Millisecond)
		collected := func() int64 {
			th.gate.Lock()
			defer th.gate.Unlock()
			return th.queue.Collected
		}
		before := collected()
		require.Positive(t, before)
		small.cancel()
		require.Error(t, small.end(t).err)
		require.GreaterOrEqual(t, collected(), before)
		time.Sleep(201 * time.Millisecond)
		require.NoError(t, large.end(t).err)
	})
}
