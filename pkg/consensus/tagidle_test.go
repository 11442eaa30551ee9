package consensus_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// kindsOfQuotas are quotas of each kind alone, for the tag acme/1. The tag hog has none that could hold it.
func kindsOfQuotas() map[string]throttle.Quotas {
	one := func(q throttle.Quota) throttle.Quotas {
		return throttle.Quotas{Tags: map[string]throttle.Quota{"acme/1": q}}
	}
	hog := map[string]throttle.Quota{"hog": {}}
	day := []throttle.Budget{{Amount: 1_000_000, Per: limit.PeriodDay}}
	return map[string]throttle.Quotas{
		"empty":    one(throttle.Quota{}),
		"weight":   one(throttle.Quota{Weight: 3}),
		"reserved": one(throttle.Quota{Reserved: 50}),
		"total":    one(throttle.Quota{Total: 50}),
		"budget":   one(throttle.Quota{Budgets: day}),
		"pattern":  {Match: []limit.QuotaPattern{{Tag: "acme/*", Quota: throttle.Quota{Total: 50}}}, Tags: hog},
		"other":    {Other: throttle.Quota{Total: 50, Budgets: day}, Tags: hog},
		"all":      {Tags: map[string]throttle.Quota{"acme/1": {Reserved: 50}, "hog": {Reserved: 50}}},
	}
}

// A rareCall is a call of n tokens with a deadline, at a pod that was idle, has just started, or was killed just before.
type rareCall struct {
	pods  int
	state string
	idle  time.Duration // since the pod's last call, of one token
	n     int
}

// outcome is what became of a call: err is nil if it got its tokens.
type outcome struct {
	waited, retry time.Duration
	err           error
}

// by draws n tokens with a deadline.
func (p *matrixPool) by(deadline time.Duration, th *throttle.Throttle, tag string, n int) outcome {
	ctx, cancel := context.WithTimeout(p.ctx, deadline)
	defer cancel()
	began := time.Now()
	_, err := th.ForTag(tag).Acquire(ctx, n)
	o := outcome{waited: time.Since(began), err: err}
	if e, ok := errors.AsType[*throttle.Error](err); ok {
		o.retry = e.RetryAfter
	}
	return o
}

// start returns a pod that is idle, new, or was killed and has started again under its ID: it was idle, or busy. A takeover lock has seen the death.
func (p *matrixPool) start(state string, idle time.Duration) *throttle.Throttle {
	p.t.Helper()
	if state == "new" {
		return p.join()
	}
	last := len(p.pods)
	opts := []consensus.Option{consensus.WithID(fmt.Sprintf("p%02d", last))}
	at, before := &desk{}, &clerk{}
	if state == "witness" {
		*before = clerk{desk: at}
		opts = append(opts, protocol.WithTakeoverLock(before))
	}
	th := p.join(opts...)
	if state == "busy" || state == "witness" {
		p.closed(th, "hog", 8, 1)
	}
	time.Sleep(20 * time.Second)
	require.NoError(p.t, p.by(10*time.Second, th, "acme/1", 1).err)
	if time.Sleep(idle); state == "idle" {
		return th
	}
	p.links[last].Hang.Store(true)
	time.Sleep(time.Second)
	if state == "witness" {
		before.Release(true)
		opts[1] = protocol.WithTakeoverLock(&clerk{desk: at})
	}
	return p.join(opts...)
}

// make makes the call beside hogs on the pool's other pods, and then one that has no time to wait.
func (c rareCall) make(t *testing.T, q *throttle.Quotas, deadline time.Duration) (call, hopeless outcome) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newMatrixPool(t, 0, throttle.Limit{Max: 100}, throttle.Quotas{})
		if p.bare = q == nil; q != nil {
			p.quota = *q
		}
		for range c.pods - 1 {
			p.closed(p.join(), "hog", 8, 1)
		}
		time.Sleep(20 * time.Second)
		th := p.start(c.state, c.idle)
		call = p.by(deadline, th, "acme/1", c.n)
		hopeless = p.by(time.Millisecond, th, "acme/1", c.n)
	})
	return call, hopeless
}

// TestMatrixOfRareCalls: at a pod without demand a call with a deadline fares with quotas as without. None is refused because of the share or
// the rate in force, and none is told to come again later than the whole limit or total takes, and two intervals. None waits until the claim
// of a killed process is removed.
func TestMatrixOfRareCalls(t *testing.T) {
	testkit.SkipRace(t, "it measures")
	for _, c := range []rareCall{
		{2, "idle", time.Second, 1},
		{2, "idle", time.Second, 5},
		{2, "idle", 10 * time.Second, 1},
		{2, "idle", 10 * time.Second, 20},
		{4, "idle", driver.DefaultLease, 1},
		{4, "idle", driver.DefaultLease, 5},
		{2, "new", 0, 1},
		{4, "new", 0, 5},
		{2, "killed", time.Second, 1},
		{4, "killed", 10 * time.Second, 5},
		{2, "busy", time.Second, 5},
		{4, "busy", 10 * time.Second, 1},
		{4, "busy", time.Second, 20},
		{2, "witness", time.Second, 5},
		{4, "witness", 10 * time.Second, 1},
	} {
		c.judge(t)
	}
}

// judge makes the call with each kind of quota and each deadline, and compares it with the same call without quotas.
func (c rareCall) judge(t *testing.T) {
	t.Helper()
	deadlines := []time.Duration{5 * time.Second, interval / 2, 2 * time.Second, 30 * time.Second}
	if testing.Short() {
		deadlines = deadlines[:1]
	}
	for _, deadline := range deadlines {
		plain, _ := c.make(t, nil, deadline)
		require.LessOrEqual(t, plain.waited, 3*time.Second, "%v", c)
		for kind, q := range kindsOfQuotas() {
			t.Run(fmt.Sprintf("%d/%s/%s/%d/%s/%s", c.pods, c.state, c.idle, c.n, deadline, kind), func(t *testing.T) {
				call, hopeless := c.make(t, &q, deadline)
				takes := time.Duration(c.n) * time.Second / 50 // by the tag's total
				if call.err != nil {
					require.GreaterOrEqual(t, call.waited, deadline-takes, "it is refused at once: %v", call.err)
					require.True(t, plain.err != nil || plain.waited+2*interval > deadline, call.err)
				}
				// The syncs of the two runs are not at the same times: by chance the plain call comes just before one.
				require.LessOrEqual(t, call.waited, max(plain.waited, interval/5)+2*interval)
				if plain.waited == 0 && kind != "all" { // a floor would take from what is reserved there
					require.Less(t, call.waited, interval/4, "tokens are there for a first call")
				}
				for _, o := range []outcome{call, hopeless} {
					require.LessOrEqual(t, o.retry, takes+2*interval)
				}
			})
		}
	}
}

// A pod that was killed while it used most of a tag is replaced by one with another ID, which the limit knows nothing of. Its first call does
// not wait until the dead pod's demand is silent, which takes 3 s, unless all the rest is reserved. It takes up to 2.2 s, and without quotas
// 1.1 s: an interval less.
func TestTheFirstCallOfAReplacement(t *testing.T) {
	testkit.SkipRace(t, "it measures")
	for kind, q := range kindsOfQuotas() {
		for _, others := range []int{1, 3} {
			for _, after := range []time.Duration{0, 300 * time.Millisecond, 1100 * time.Millisecond, 4 * time.Second} {
				if kind == "all" {
					continue
				}
				synctest.Test(t, func(t *testing.T) {
					p := newMatrixPool(t, others, throttle.Limit{Max: 100}, q)
					for _, th := range p.pods {
						p.closed(th, "hog", 2, 1)
					}
					time.Sleep(20 * time.Second)
					p.closed(p.join(), "acme/1", 8, 1)
					time.Sleep(20 * time.Second)
					p.links[others].Hang.Store(true)
					time.Sleep(after)
					o := p.by(2500*time.Millisecond, p.join(), "acme/1", 1)
					require.NoError(t, o.err, "%s, %d others, %s after the kill", kind, others, after)
				})
			}
		}
	}
}

// A call behind a queue at a pod that is idle, new or was killed and has started again is told to come again when the whole limit or total has
// served the queue, or two intervals later.
func TestRetryAfterAtAnIdlePod(t *testing.T) {
	const queue = 300
	for _, state := range []string{"idle", "new", "killed", "busy", "witness"} {
		for kind, q := range kindsOfQuotas() {
			synctest.Test(t, func(t *testing.T) {
				p := newMatrixPool(t, 0, throttle.Limit{Max: 100}, q)
				p.closed(p.join(), "hog", 8, 1)
				time.Sleep(20 * time.Second)
				th := p.start(state, 10*time.Second)
				for range queue {
					go p.by(time.Hour, th, "acme/1", 1)
				}
				synctest.Wait()
				most := (queue+2)*time.Second/50 + 2*interval
				for _, deadline := range []time.Duration{time.Millisecond, time.Second} {
					o := p.by(deadline, th, "acme/1", 1)
					require.ErrorIs(t, o.err, throttle.ErrThrottled, kind, state)
					require.LessOrEqual(t, o.retry, most, kind, state)
				}
				h, held := th.HoldUp()
				require.True(t, held)
				require.LessOrEqual(t, h.RetryAfter, most, kind, state)
			})
		}
	}
}

// A call whose budget is spent is told to come again when the window ends, also at a pod that is new or was killed and has started again.
func TestRetryAfterABudgetIsSpent(t *testing.T) {
	for _, state := range []string{"idle", "new", "killed"} {
		synctest.Test(t, func(t *testing.T) {
			p := newMatrixPool(t, 2, throttle.Limit{Max: 100}, throttle.Quotas{Tags: map[string]throttle.Quota{
				"a": {Budgets: []throttle.Budget{{Amount: 50, Per: limit.PeriodHour}}},
			}})
			p.closed(p.pods[0], "a", 4, 1)
			time.Sleep(30 * time.Second)
			synctest.Wait()
			require.EqualValues(t, 50, p.of("a").sum)
			th := p.pods[1]
			switch state {
			case "new":
				th = p.join()
			case "killed":
				p.links[1].Hang.Store(true)
				th = p.join(consensus.WithID("p01"))
			}
			p.by(time.Second, th, "a", 1)
			o := p.by(time.Second, th, "a", 1)
			require.ErrorIs(t, o.err, throttle.ErrThrottled)
			end := time.Now().Truncate(time.Hour).Add(time.Hour)
			require.InDelta(t, time.Until(end).Seconds(), o.retry.Seconds(), 1, state)
		})
	}
}

// TestMatrixOfClosedLoops: callers that each wait for their tokens before they come again use the limit, or the tag's own total, however few
// they are.
func TestMatrixOfClosedLoops(t *testing.T) {
	testkit.SkipRace(t, "it measures")
	testkit.SkipShort(t, "many pools")
	for kind, q := range kindsOfQuotas() {
		for _, shape := range []struct{ pods, callers int }{{1, 1}, {1, 20}, {4, 1}, {4, 3}, {4, 20}} {
			t.Run(fmt.Sprintf("%s/%dx%d", kind, shape.pods, shape.callers), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := newMatrixPool(t, shape.pods, throttle.Limit{Max: 200}, q)
					for _, th := range p.pods {
						p.closed(th, "acme/1", shape.callers, 1)
					}
					time.Sleep(15 * time.Second)
					least := 0.99 * 200
					if kind == "total" || kind == "pattern" || kind == "other" {
						least = 0.9 * 50
					}
					require.GreaterOrEqual(t, p.over(20*time.Second, "acme/1"), least)
				})
			})
		}
	}
}

// TestMatrixOfSmallBesideLarge: calls of one token and of the whole total come to each pod, from a caller each. Both are served, and most of the
// total is used.
func TestMatrixOfSmallBesideLarge(t *testing.T) {
	testkit.SkipRace(t, "it measures")
	testkit.SkipShort(t, "many pools")
	for _, pods := range []int{1, 4, 16} {
		for _, large := range []int{30, 60} {
			t.Run(fmt.Sprintf("%d/%d", pods, large), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := newMatrixPool(t, pods, throttle.Limit{Max: 20_000}, throttle.Quotas{Tags: map[string]throttle.Quota{"a": {Total: 60}}})
					for _, th := range p.pods {
						p.closed(th, "a", 1, 1)
						p.closed(th, "a", 1, large)
					}
					time.Sleep(20 * time.Second)
					got := p.over(100*time.Second, "a")
					p.within("a")
					t.Log(got/60, p.of("a").bySize)
					require.GreaterOrEqual(t, got, 0.75*60, "of 600 runs the lowest was 0.78")
					require.GreaterOrEqual(t, p.of("a").bySize[1], int64(pods))
				})
			})
		}
	}
}

// A share that earns no token in its lease is none: its pod says so, although it holds the floor of an idle one.
func TestAShareBelowATokenIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newMatrixPool(t, 6, throttle.Limit{Max: 10}, throttle.Quotas{Tags: map[string]throttle.Quota{"a": {}}})
		p.closed(p.pods[0], "hog", 8, 1)
		time.Sleep(40 * time.Second)
		o := p.by(time.Millisecond, p.pods[5], "a", 2)
		e, ok := errors.AsType[*throttle.Error](o.err)
		require.True(t, ok)
		require.Equal(t, throttle.ReasonNoShare, e.Reason)
		require.Positive(t, p.pods[5].Status().Lease.Share)
		require.NoError(t, p.by(5*time.Second, p.pods[5], "a", 2).err)
	})
}
