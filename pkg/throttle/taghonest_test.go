package throttle

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// pooledTag is a Throttle of which tag a has a total of 10 per second, and the pool nothing for it but a token in 100 ms; this limiter should get
// rate of it.
func pooledTag(t *testing.T, rate float64) (*Throttle, *script) {
	t.Helper()
	th, s := scripted(t, Limit{Max: 1000, Burst: 1000}, 1, WithQuotas(tagsOf(map[string]Quota{"a": {Total: 10, Burst: 1}})))
	time.Sleep(time.Second)
	th.ForTag("a")
	s.h.GrantTags([]TagGrant{dryGrant(rate, 0)})
	return th, s
}

func dryGrant(rate float64, tokens int64) TagGrant {
	return TagGrant{
		Tag: "a", Needed: true, Rate: rate, Lacks: ReasonQuota, Again: time.Now().Add(100 * time.Millisecond),
		Lot: limitLot(tokens, 0, 2*time.Second, 1),
	}
}

// requireHeld checks that a call was held back by the quota of tag a, and tells when to come back.
func requireHeld(t *testing.T, err error, after time.Duration) {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	require.True(t, ok, err)
	require.Equal(t, []any{ReasonQuota, "a", after}, []any{e.Reason, e.Tag, e.RetryAfter})
}

// A caller that a pool's total cannot serve in time is refused at once, and so is one that waits, when the pool says how little it has. Nobody is
// refused that could have been served.
func TestDeadlinesAtATotalOfAPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := pooledTag(t, 5)
		a := th.ForTag("a")
		time.Sleep(150 * time.Millisecond)
		began := time.Now()
		late := beginWith(a.Acquire, 8, 600*time.Millisecond) // in 650 ms the total has earned eight
		err := late.end(t).err
		requireHeld(t, err, 1600*time.Millisecond)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		require.Zero(t, time.Since(began), "at once")

		first := beginWith(a.Acquire, 3, 0)
		second := beginWith(a.Acquire, 5, 700*time.Millisecond)
		third := beginWith(a.Acquire, 1, 700*time.Millisecond)
		require.True(t, second.waits(), "it may be served")
		requireHeld(t, third.end(t).err, 1800*time.Millisecond) // nine

		time.Sleep(400 * time.Millisecond)
		s.h.GrantTags([]TagGrant{dryGrant(5, 2)}) // others have had the rest
		requireHeld(t, second.end(t).err, 1200*time.Millisecond)
		require.True(t, first.waits())
		time.Sleep(time.Second)
		s.h.GrantTags([]TagGrant{dryGrant(5, 1)})
		require.NoError(t, first.end(t).err)
		requireNobody(t, th)
	})
}

// A deadline that passes while the pool says nothing tells what the caller waited for, and when to come back.
func TestADeadlineThatPassesAtATotalOfAPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, _ := pooledTag(t, 0)
		c := beginWith(th.ForTag("a").Acquire, 2, time.Second)
		time.Sleep(500 * time.Millisecond)
		require.True(t, c.waits())
		time.Sleep(time.Second)
		err := c.end(t).err
		require.ErrorIs(t, err, context.DeadlineExceeded)
		requireHeld(t, err, 200*time.Millisecond)
		requireNobody(t, th)
	})
}

// What a tag may have to wait for keeps nobody else from the limit, however many wait.
func TestATotalOfAPoolHoldsUpNobody(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		th, _ := pooledTag(t, 5)
		gather(ctx, 200, &service{}, one(th.ForTag("a")))
		time.Sleep(time.Second)
		b := &load{tag: "b", callers: 20}
		b.run(ctx, th)
		before := b.granted.Load()
		time.Sleep(10 * time.Second)
		require.InDelta(t, 10_000, b.granted.Load()-before, 1000)
	})
}
