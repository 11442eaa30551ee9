package throttle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// waitFor is waitWith for as long as it takes.
func waitFor(t *testing.T, l Limiter, n int) chan Permit {
	t.Helper()
	return waitWith(t.Context(), l, n)
}

// waitWith returns a channel with the permit of a call that waits for n slots; it is closed then.
func waitWith(ctx context.Context, l Limiter, n int) chan Permit {
	got := make(chan Permit, 1)
	go func() {
		if p, err := l.Acquire(ctx, n); err == nil {
			got <- p
		}
		close(got)
	}()
	synctest.Wait()
	return got
}

// Of one tag nobody passes a larger draw that came first, until it gives up.
func TestALargeDrawOfATagIsNotPassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := taggedFlight(t, 10, Quotas{Tags: map[string]Quota{"a": {Total: 4}}})
		a := f.ForTag("a")
		_, ok := a.TryAcquire(2)
		require.True(t, ok)
		ctx, cancel := context.WithCancel(t.Context())
		large, small := waitWith(ctx, a, 3), waitFor(t, a, 1)
		_, ok = a.TryAcquire(1)
		require.False(t, ok)
		require.Empty(t, small)
		_, ok = f.ForTag("b").TryAcquire(7)
		require.True(t, ok, "of another tag")
		cancel()
		_, ok = <-large
		require.False(t, ok)
		_, ok = <-small
		require.True(t, ok)
		require.Equal(t, 3, tagStatus(f, "a").InUse)
	})
}

// A tag that was idle has saved up nothing, and one whose callers came once is served by slot-seconds, too.
func TestAnIdleTagSavesUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := taggedFlight(t, 4, Quotas{Tags: map[string]Quota{"a": {}, "b": {}}})
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		calls(ctx, &all, f.ForTag("a"), 8, time.Second)
		time.Sleep(10 * time.Minute)
		calls(ctx, &all, f.ForTag("b"), 8, time.Second)
		time.Sleep(5 * time.Second)
		used := 0
		for range 100 {
			time.Sleep(390 * time.Millisecond)
			synctest.Wait()
			used += tagStatus(f, "b").InUse
		}
		require.InDelta(t, 200, used, 25)
		cancel()
		all.Wait()

		for tag, takes := range map[string]time.Duration{"a": 10 * time.Second, "b": time.Second} {
			for range 100 {
				all.Go(func() {
					if p, err := f.ForTag(tag).Acquire(t.Context(), 1); err == nil {
						time.Sleep(takes)
						p.Settle(1)
					}
				})
			}
		}
		used = 0
		for range 40 {
			time.Sleep(990 * time.Millisecond)
			synctest.Wait()
			used += tagStatus(f, "b").InUse
		}
		require.InDelta(t, 80, used, 20)
		all.Wait()
	})
}

// What has been drawn counts while quotas change, also if the tag has no quota for a while; views find their tag again.
func TestQuotasOfSlotsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		two := Quotas{Tags: map[string]Quota{"a": {Total: 2}}}
		f := taggedFlight(t, 10, two)
		a, b := f.ForTag("a"), f.ForTag("b")
		first, _ := a.TryAcquire(1)
		second, _ := a.TryAcquire(1)
		waiting := waitFor(t, a, 1)
		slotHolder{f}.SetQuotas(Quotas{Tags: map[string]Quota{"b": {Total: 1}}}.WithDefaults(0))
		third := <-waiting
		require.NotZero(t, third.N())
		reports := slotHolder{f}.ReportSlots(0, 0, 1)
		require.Len(t, reports, 2)
		require.Equal(t, "a", reports[1].Tag)
		require.Equal(t, int64(2), reports[1].InUse, "they still count")
		_, ok := b.TryAcquire(1)
		require.True(t, ok)
		_, ok = b.TryAcquire(1)
		require.False(t, ok)
		slotHolder{f}.SetQuotas(two.WithDefaults(0))
		_, ok = a.TryAcquire(1)
		require.False(t, ok)
		first.Settle(1)
		_, ok = a.TryAcquire(1)
		require.True(t, ok)
		second.Settle(1)
		slotHolder{f}.SetQuotas(Quotas{Tags: map[string]Quota{"a": {Blocked: true}}}.WithDefaults(0))
		_, ok = a.TryAcquire(1)
		require.False(t, ok)
		require.Equal(t, 1, tagStatus(f, "a").InUse)
		for _, r := range (slotHolder{f}).ReportSlots(0, 0, 1) {
			if r.Tag == "a" {
				require.Equal(t, int64(1), r.InUse, "blocked calls still count")
			}
		}
	})
}

// A call whose name is paused holds back no other name of its tag.
func TestAPausedNameHoldsBackNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := taggedFlight(t, 10, Quotas{Other: Quota{Total: 2}})
		_, err := f.Pause(t.Context(), time.Time{}, "", PauseTag("x"))
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		_, ok := f.ForTag("y").TryAcquire(1)
		require.True(t, ok)
		x := waitWith(ctx, f.ForTag("x"), 2)
		_, ok = f.ForTag("y").TryAcquire(1)
		require.True(t, ok)
		cancel()
		_, ok = <-x
		require.False(t, ok)
		short, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		require.NoError(t, f.Resume(t.Context(), PauseTag("x")))
		_, err = f.Pause(t.Context(), time.Now().Add(time.Minute), "", PauseTag("x"))
		require.NoError(t, err)
		_, err = f.ForTag("x").Acquire(short, 1)
		e, ok := errors.AsType[*Error](err)
		require.True(t, ok)
		require.InDelta(t, 60, e.RetryAfter.Seconds(), 2)
	})
}

// noSlots refuses everything.
type noSlots struct{ Limiter }

func (noSlots) TryAcquire(int) (Permit, bool) { return Permit{}, false }

// In an All each call counts in its tags, and in that of calls without one; what is undone doesn't.
func TestTagsOfSlotsInAnAll(t *testing.T) {
	f := taggedFlight(t, 10, Quotas{Tags: map[string]Quota{"a": {Total: 2}, "b": {Total: 3}}, Other: Quota{Total: 4}})
	rate := flight(t, 1000)
	all := All(f, rate)
	none, ok := all.TryAcquire(1)
	require.True(t, ok)
	require.Equal(t, 1, tagStatus(f, "").InUse)
	one, ok := ForTags(all, "a").TryAcquire(1)
	require.True(t, ok)
	require.Equal(t, 1, tagStatus(f, "a").InUse)
	both, ok := ForTags(all, "a", "b").TryAcquire(1)
	require.True(t, ok)
	require.Equal(t, 3, f.Status().InUse, "a slot of the limit each")
	require.Equal(t, 1, tagStatus(f, "b").InUse)
	_, ok = ForTags(all, "b", "a").TryAcquire(1)
	require.False(t, ok)
	both.Settle(1)
	_, ok = All(f.ForTag("b"), f.ForTag("a")).TryAcquire(1)
	require.False(t, ok, "it takes two slots of each")
	one.Settle(1)
	twice, ok := All(f.ForTag("b"), f.ForTag("a")).TryAcquire(1)
	require.True(t, ok)
	require.Equal(t, 3, f.Status().InUse)
	require.Equal(t, 2, tagStatus(f, "a").InUse)
	_, ok = All(f, noSlots{rate}).TryAcquire(1)
	require.False(t, ok)
	require.Equal(t, 1, tagStatus(f, "").InUse)
	require.Equal(t, int64(1), tagStatus(f, "").Granted)
	none.Cancel()
	twice.Cancel()
	require.Zero(t, f.Status().InUse)
}

// The oldest call of a tag shows how long the longest runs, whichever end first; refusals by a quota ask for no share.
func TestViewsOfSlotsOfTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := taggedFlight(t, 10, Quotas{Tags: map[string]Quota{"a": {Total: 4}}})
		var permits []Permit
		for range 4 {
			p, _ := f.ForTag("a").TryAcquire(1)
			permits = append(permits, p)
			time.Sleep(time.Second)
		}
		require.Equal(t, 4*time.Second, tagStatus(f, "a").Longest)
		permits[1].Settle(1)
		require.Equal(t, 4*time.Second, tagStatus(f, "a").Longest)
		permits[0].Settle(1)
		require.Equal(t, 2*time.Second, tagStatus(f, "a").Longest)
		permits[3].Settle(1)
		permits[2].Settle(1)
		require.Zero(t, tagStatus(f, "a").Longest)

		p, _ := f.ForTag("a").TryAcquire(4)
		slotHolder{f}.Report(time.Second)
		slotHolder{f}.Report(time.Second)
		_, ok := f.ForTag("a").TryAcquire(1)
		require.False(t, ok)
		require.Equal(t, wholeShare*4/10, slotHolder{f}.Report(time.Second).Demand)
		got := waitFor(t, f.ForTag("a"), 1)
		r := slotHolder{f}.Report(time.Second)
		require.Equal(t, wholeShare*4/10, r.Demand)
		require.Equal(t, ReasonQuota, r.Throttled)
		require.True(t, r.OfTag)
		require.Equal(t, "a", r.Tag)
		p.Settle(4)
		last := <-got
		last.Settle(1)
	})
}

// A view of several new tags keeps both where many others are in use.
func TestViewsBesideManyTags(t *testing.T) {
	f := taggedFlight(t, 5000, Quotas{Match: []QuotaPattern{{Tag: "*", Quota: Quota{Total: 1}}}})
	for i := range 2 * tagsKept {
		_, ok := f.ForTag(fmt.Sprint("busy", i)).TryAcquire(1)
		require.True(t, ok)
	}
	_, ok := f.ForTags("t", "k").TryAcquire(1)
	require.True(t, ok)
	for _, tag := range []string{"t", "k"} {
		_, ok = f.ForTag(tag).TryAcquire(1)
		require.False(t, ok, tag)
	}
}

// A name that cannot be a tag's is no two names; a key without a quota is not among all others; a limit that is off has no tags.
func TestNamesOfViewsOfSlots(t *testing.T) {
	f := taggedFlight(t, 10, Quotas{Tags: map[string]Quota{"team": {Total: 3}, "key": {Total: 1}}, Other: Quota{Total: 2}})
	_, ok := f.ForTag("team\x00key").TryAcquire(2)
	require.True(t, ok, "of all others")
	_, ok = f.ForTags("team", "key").TryAcquire(1)
	require.True(t, ok)
	require.Equal(t, 1, tagStatus(f, "key").InUse)
	levels := forLevels(f, "team", "none")
	_, ok = levels.TryAcquire(2)
	require.True(t, ok, "all others have used theirs")
	_, ok = levels.TryAcquire(1)
	require.False(t, ok)
	require.NoError(t, f.Close())
	th, held := throttledOf(t, f.ForTag("team"))
	require.True(t, held)
	require.Equal(t, ReasonClosed, th.Reason)

	off, err := NewInFlight(0, WithQuotas(Quotas{}))
	require.NoError(t, err)
	_, ok = off.ForTag("x").TryAcquire(7)
	require.True(t, ok)
}

// After quotas have changed nothing is kept for callers that went, and nobody waits behind a draw that can't be granted any more.
func TestWaitersWhenQuotasOfSlotsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := taggedFlight(t, 8, Quotas{Tags: map[string]Quota{"hog": {}, "a": {Total: 4}}, Other: Quota{Total: 1}})
		set := func(q Quotas) { slotHolder{f}.SetQuotas(q.WithDefaults(0)) }
		hog, _ := f.ForTag("hog").TryAcquire(8)
		x := waitFor(t, f.ForTag("x"), 1)
		set(Quotas{Tags: map[string]Quota{"hog": {}, "x": {Total: 2}, "a": {Total: 8}}, Other: Quota{Total: 1}})
		large := waitFor(t, f.ForTag("a"), 6)
		set(Quotas{Tags: map[string]Quota{"hog": {}, "x": {Total: 2}, "a": {Total: 4}}, Other: Quota{Total: 1}})
		_, ok := <-large
		require.False(t, ok, "it is too large now")
		hog.Settle(1)
		_, ok = <-x
		require.True(t, ok)
		for _, tag := range []string{"a", ""} {
			_, ok = f.ForTag(tag).TryAcquire(1)
			require.True(t, ok, tag)
		}
	})
}

// What waits for the end of a pause asks for nothing; what a tag was granted is gone with its quota.
func TestReportsOnSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{first: limit.Lease{Share: wholeShare}}
		f := taggedFlight(t, 16, Quotas{Tags: map[string]Quota{"a": {Total: 8}, "b": {}}}, WithSharer(s))
		report := func(tag string) sharing.TagSlotReport {
			for _, r := range (slotHolder{f}).ReportSlots(0, 0, 2) {
				if r.Tag == tag {
					return r
				}
			}
			return sharing.TagSlotReport{}
		}
		slotHolder{f}.SetPauses([]Paused{{Tag: "b"}})
		ctx, cancel := context.WithCancel(t.Context())
		b := waitWith(ctx, f.ForTag("b"), 3)
		require.Zero(t, report("b").Demand)
		require.Zero(t, slotHolder{f}.Report(time.Second).Demand)
		slotHolder{f}.SetPauses(nil)
		<-b
		require.Equal(t, int64(3), report("b").Demand)
		cancel()

		first := waitFor(t, f.ForTag("a"), 2)
		require.Equal(t, int64(2), report("a").Wanted)
		slotHolder{f}.GrantSlots([]sharing.TagSlotGrant{{Tag: "a", Bound: true, Granted: 8}})
		<-first
		require.Equal(t, int64(2), report("a").InUse, "what it has no use for is given up")
		_, ok := f.ForTag("a").TryAcquire(1)
		require.False(t, ok, "it is given up already")
		slotHolder{f}.GrantSlots([]sharing.TagSlotGrant{{Tag: "a", Bound: true, Granted: 8}})
		slotHolder{f}.SetQuotas(Quotas{Tags: map[string]Quota{"b": {}}}.WithDefaults(0))
		require.Equal(t, int64(2), report("a").InUse)
		slotHolder{f}.SetQuotas(Quotas{Tags: map[string]Quota{"a": {Total: 8}}}.WithDefaults(0))
		_, ok = f.ForTag("a").TryAcquire(1)
		require.False(t, ok, "the pool has granted others the rest")
	})
}

// With more tags than a request names, those that use nothing of what they were granted make room for others.
func TestMoreTagsThanARequestNames(t *testing.T) {
	f := taggedFlight(t, 4, Quotas{Match: []QuotaPattern{{Tag: "*", Quota: Quota{Total: 2}}}}, WithSharer(&script{first: limit.Lease{Share: wholeShare}}))
	inUse := func() (n int) {
		for _, r := range (slotHolder{f}).ReportSlots(0, 0, 1) {
			n += min(int(r.InUse), 1)
			slotHolder{f}.GrantSlots([]sharing.TagSlotGrant{{Tag: r.Tag, Bound: true, Granted: r.Wanted}})
		}
		return n
	}
	for i := range wire.MaxTagSlots {
		f.ForTag(fmt.Sprint(i)).TryAcquire(1)
	}
	inUse()
	require.Equal(t, wire.MaxTagSlots, inUse())
	for i := range 2 * wire.MaxTagSlots {
		f.ForTag(fmt.Sprint(i)).TryAcquire(1)
	}
	require.Equal(t, 4, inUse())
}
