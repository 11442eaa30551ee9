package throttle

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// taggedFlight returns an InFlight with quotas.
func taggedFlight(t *testing.T, slots int, q Quotas, opts ...Option) *InFlight {
	t.Helper()
	f, err := NewInFlight(slots, append(opts, WithQuotas(q))...)
	require.NoError(t, err)
	return f
}

// calls makes calls of a tag, so many at once, until ctx ends.
func calls(ctx context.Context, all *sync.WaitGroup, l Limiter, callers int, takes time.Duration) {
	for range callers {
		all.Go(func() {
			for {
				p, err := l.Acquire(ctx, 1)
				if err != nil {
					return
				}
				time.Sleep(takes)
				p.Settle(1)
			}
		})
	}
}

func tagStatus(f *InFlight, tag string) SlotTagStatus {
	for _, st := range f.Status().Tags {
		if st.Tag == tag {
			return st
		}
	}
	return SlotTagStatus{}
}

func TestATagHasNoMoreSlotsThanItsTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := taggedFlight(t, 10, Quotas{Tags: map[string]Quota{"a": {Total: 2}}, Match: []QuotaPattern{{Tag: "free/*", Quota: Quota{Total: 1}}}})
		a := f.ForTag("a")
		one, _ := a.TryAcquire(1)
		two, ok := a.TryAcquire(0)
		require.True(t, ok)
		_, ok = a.TryAcquire(1)
		require.False(t, ok)
		th, held := throttledOf(t, a)
		require.True(t, held)
		require.Equal(t, ReasonQuota, th.Reason)
		require.Equal(t, "a", th.Tag)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := a.Acquire(ctx, 1)
		require.ErrorContains(t, err, `tag "a"`)
		require.ErrorContains(t, err, "quota")
		_, err = a.Acquire(t.Context(), 3)
		require.ErrorContains(t, err, "2")
		for i := range 3 {
			_, ok = f.ForTag(fmt.Sprint("free/", i)).TryAcquire(1)
			require.True(t, ok, "each name has its own")
			_, ok = f.ForTag(fmt.Sprint("free/", i)).TryAcquire(1)
			require.False(t, ok)
		}
		done := waitFor(t, a, 1)
		require.Equal(t, 1, tagStatus(f, "a").Waiting)
		_, ok = f.TryAcquire(5) // the caller that waits for its tag holds back nobody
		require.True(t, ok)
		one.Settle(1)
		three := <-done
		require.Equal(t, 2, tagStatus(f, "a").InUse)
		time.Sleep(3 * time.Second)
		require.Equal(t, 4*time.Second, tagStatus(f, "a").Longest)
		two.Cancel()
		three.Settle(0)
		require.Zero(t, tagStatus(f, "a").InUse)
	})
}

// throttledOf is the Throttled of a limiter of a tag.
func throttledOf(t *testing.T, l Limiter) (Throttling, bool) {
	t.Helper()
	th, ok := l.(interface{ Throttled() (Throttling, bool) })
	require.True(t, ok)
	return th.Throttled()
}

// A reserved tag gets each slot that becomes free until it has all of its own; while it is idle others have them.
func TestAReservedTagComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := taggedFlight(t, 16, Quotas{Tags: map[string]Quota{"a": {Reserved: 4}}, Other: Quota{Weight: 1000}})
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 64 {
			time.Sleep(500 * time.Millisecond)
			calls(ctx, &all, f.ForTag("hog"), 1, 30*time.Second)
		}
		synctest.Wait() // a call ends at this moment, and another begins
		require.Equal(t, 16, f.Status().InUse)
		require.Equal(t, 16, tagStatus(f, "").InUse, "what is idle is lent")
		calls(ctx, &all, f.ForTag("a"), 6, time.Minute)
		for had := 0; had < 4; {
			synctest.Wait()
			had = tagStatus(f, "a").InUse
			require.Equal(t, 16-had, tagStatus(f, "").InUse, "no call of another tag has begun")
			time.Sleep(100 * time.Millisecond)
		}
		for range 300 {
			time.Sleep(7 * time.Second)
			synctest.Wait()
			require.Equal(t, 4, tagStatus(f, "a").InUse, "the others have the more weight")
		}
		cancel()
		all.Wait()
		require.Zero(t, f.Status().InUse)
	})
}

// Tags that wait have slot-seconds by weight, whatever their calls take, and a lower class the least.
func TestSlotSecondsAreDividedByWeight(t *testing.T) {
	quotas := Quotas{Tags: map[string]Quota{"batch": {Class: ClassBatch}, "heavy": {Weight: 2}}}
	for i := range 8 {
		quotas.Tags[fmt.Sprint(i)] = Quota{}
	}
	for _, batch := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := taggedFlight(t, 6, quotas)
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			for i, takes := range []float64{0.1, 0.2, 0.5, 1, 2, 4, 7, 10} {
				calls(ctx, &all, f.ForTag(fmt.Sprint(i)), 6, time.Duration(takes*float64(time.Second)))
			}
			calls(ctx, &all, f.ForTag("heavy"), 9, time.Second)
			if batch {
				calls(ctx, &all, f.ForTag("batch"), 9, time.Second)
			}
			used := map[string]int{}
			time.Sleep(time.Minute)
			for range 12_000 {
				time.Sleep(99 * time.Millisecond)
				synctest.Wait()
				sum := 0
				for _, st := range f.Status().Tags {
					used[st.Tag] += st.InUse
					sum += st.InUse
				}
				require.Equal(t, 6, sum)
			}
			sum, squares := 0.0, 0.0
			for i := range 8 {
				x := float64(used[fmt.Sprint(i)])
				sum, squares = sum+x, squares+x*x
			}
			require.Greater(t, sum*sum/8/squares, 0.98, "%v", used)
			require.InDelta(t, 2*sum/8, used["heavy"], 0.2*sum/8)
			if batch {
				require.InDelta(t, sum/8/20, used["batch"], sum/8/20)
			}
			cancel()
			all.Wait()
		})
	}
}

// Whatever comes, no tag uses more than its total, no slot is free while somebody waits who may have it, and all counts are right in the end.
func TestSlotsOfTagsAtRandom(t *testing.T) {
	names := []string{"a", "b", "c", "free/1", "free/2", "x", "y"}
	for seed := range uint64(testkit.Fewer(60)) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 49))
			quotas := func() Quotas {
				q := Quotas{Tags: map[string]Quota{}, Other: Quota{Total: 2 + r.IntN(4)}}
				q.Match = []QuotaPattern{{Tag: "free/*", Quota: Quota{Total: 1 + r.IntN(3)}}}
				for _, name := range names[:3] {
					reserved := r.IntN(3)
					q.Tags[name] = Quota{Reserved: reserved, Total: reserved + 1 + r.IntN(4), Weight: 1 + r.IntN(3)}
				}
				return q
			}
			f := taggedFlight(t, 8, quotas())
			rate, err := New(Limit{Max: 40, Burst: 5})
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			for range 40 {
				tags := []string{names[r.IntN(len(names))]}
				if r.IntN(4) == 0 {
					tags = append(tags, names[r.IntN(len(names))])
				}
				l := f.ForTags(tags...)
				if r.IntN(3) == 0 {
					l = All(rate, l)
				}
				own := rand.New(rand.NewPCG(r.Uint64(), 1))
				all.Go(func() {
					for ctx.Err() == nil {
						call, stop := context.WithTimeout(ctx, time.Duration(own.IntN(3000))*time.Millisecond)
						if p, err := l.Acquire(call, own.IntN(2)); err == nil {
							time.Sleep(time.Duration(own.IntN(700)) * time.Millisecond)
							p.Settle(1)
						} else {
							time.Sleep(time.Millisecond)
						}
						stop()
					}
				})
			}
			for i := range 300 {
				time.Sleep(37 * time.Millisecond)
				synctest.Wait()
				if i == 150 {
					q := quotas().WithDefaults(time.Second)
					slotHolder{f}.SetQuotas(q)
					time.Sleep(time.Second)
					synctest.Wait()
				}
				checkSlots(t, f)
			}
			cancel()
			all.Wait()
			st := f.Status()
			require.Zero(t, st.InUse)
			require.Zero(t, st.Waiting)
			for _, tag := range st.Tags {
				require.Zero(t, tag.InUse+tag.Waiting, tag.Tag)
			}
			require.Empty(t, f.tags.places)
			require.Empty(t, f.tags.waiting)
		})
	}
}

// checkSlots checks the invariants of tags.
func checkSlots(t *testing.T, f *InFlight) {
	t.Helper()
	f.gate.Lock()
	defer f.gate.Unlock()
	require.LessOrEqual(t, f.inUse, f.max)
	ready := map[*slotTag]int{}
	for w, at := range f.tags.places {
		require.True(t, w.Queued())
		if !f.queue.IsAside(w) {
			for _, g := range at.tags {
				ready[g] += w.Least
			}
			continue
		}
		require.False(t, f.tags.fits(at.tags, w.Least), "set aside without need")
	}
	weights := 0
	for _, g := range f.tags.tags {
		weights += g.quota.Weight
		if g.bound() {
			require.LessOrEqual(t, g.running, g.quota.Total, g.name)
		}
		if g.waiting > 0 {
			require.Equal(t, ready[g], g.ready, g.name)
			require.LessOrEqual(t, g.ready, f.tags.room(g), g.name)
		}
	}
	require.Equal(t, weights, f.tags.weights)
	if w := f.queue.First; w != nil && !w.Many {
		require.Equal(t, f.max, f.inUse, "a slot is free while somebody waits who may have it")
	}
}

// A pause of a tag holds its calls alone, and ends by itself.
func TestAPauseOfATagHoldsItsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := taggedFlight(t, 4, Quotas{Tags: map[string]Quota{"a": {}}})
		_, err := f.Pause(t.Context(), time.Now().Add(5*time.Second), "", PauseTag("a"))
		require.NoError(t, err)
		_, ok := f.ForTag("a").TryAcquire(1)
		require.False(t, ok)
		_, ok = f.ForTag("b").TryAcquire(1)
		require.True(t, ok)
		th, _ := throttledOf(t, f.ForTag("a"))
		require.Equal(t, ReasonPause, th.Reason)
		require.NotNil(t, th.Paused)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err = f.ForTag("a").Acquire(ctx, 1)
		require.ErrorContains(t, err, "pause")
		require.Zero(t, time.Since(began), "it ends after the deadline")
		_, err = f.ForTag("a").Acquire(t.Context(), 1)
		require.NoError(t, err)
		require.InDelta(t, 5, time.Since(began).Seconds(), 0.6)
	})
}

// A caller that waits for a slot fails at once when its tag is paused beyond its deadline. One that takes as many as there are takes no more than
// its tag may have.
func TestAPauseEndsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := taggedFlight(t, 4, Quotas{Tags: map[string]Quota{"a": {Total: 2}}})
		p, err := f.ForTag("a").AcquireUpTo(t.Context(), 5)
		require.NoError(t, err)
		require.Equal(t, 2, p.N())
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		ended := make(chan error, 1)
		go func() {
			_, err := f.ForTag("a").Acquire(ctx, 1)
			ended <- err
		}()
		time.Sleep(time.Second)
		_, err = f.Pause(t.Context(), time.Now().Add(time.Minute), "", PauseTag("a"))
		require.NoError(t, err)
		began := time.Now()
		require.ErrorContains(t, <-ended, "pause")
		require.Zero(t, time.Since(began))
	})
}

// Invented names take no memory for good, and one tag has one count however its view was made.
func TestInventedTagsOfSlots(t *testing.T) {
	f := taggedFlight(t, 100, Quotas{Match: []QuotaPattern{{Tag: "free/*", Quota: Quota{Total: 1}}}})
	first := f.ForTag("free/0")
	held, _ := first.TryAcquire(1)
	for i := range 20_000 {
		p, ok := f.ForTag(fmt.Sprint("free/", i)).TryAcquire(1)
		require.Equal(t, i > 0, ok)
		p.Cancel()
		f.ForTag(fmt.Sprint("other", i))
	}
	_, again := f.ForTag("free/0").TryAcquire(1)
	require.False(t, again, "a tag with calls in flight is kept")
	require.Less(t, len(f.tags.tags), 2*tagsKept)
	views := 0
	f.tags.views.Range(func(any, any) bool { views++; return true })
	require.Equal(t, maxNames, views)
	checkSlots(t, f)
	held.Cancel()
	_, ok := first.TryAcquire(1)
	require.True(t, ok)
	_, ok = f.ForTag("free/0").TryAcquire(1)
	require.False(t, ok)
}

func TestQuotasOfSlotsThatCannotBe(t *testing.T) {
	for text, q := range map[string]Quotas{
		"quotas.tags.a.per is 1m0s, allowed: none on a limit on calls in flight": {Tags: map[string]Quota{"a": {Total: 1, Per: time.Minute}}},
		"quotas.other.burst is 3, allowed: none":                                 {Other: Quota{Total: 1, Burst: 3}},
		"quotas.match[0].hard is true":                                           {Match: []QuotaPattern{{Tag: "x*", Quota: Quota{Total: 9, Hard: true}}}},
		"quotas.other.budgets are set":                                           {Other: Quota{Budgets: []Budget{{Amount: 1, Per: limit.PeriodDay}}}},
		"quotas reserve 6 calls in flight together, allowed: at most the limit, which is 5": {
			Tags: map[string]Quota{"a": {Reserved: 3}, "b": {Reserved: 3}},
		},
		"quotas.tags.a.reserved is 3, allowed: at most total, which is 1": {Tags: map[string]Quota{"a": {Reserved: 3, Total: 1}}},
	} {
		_, err := NewInFlight(5, WithQuotas(q))
		require.ErrorContains(t, err, text)
	}
	_, err := NewInFlight(0, WithQuotas(Quotas{Other: Quota{Total: 1}}))
	require.ErrorContains(t, err, "1 call in flight or more")
}
