package throttle

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// freeTags are quotas of any number of names: 10 tokens a second each, 5 of which can be saved up.
var freeTags = Quotas{
	Tags: map[string]Quota{"known": {Total: 10}},
	Match: []QuotaPattern{
		{Tag: "free/*", Quota: Quota{Total: 10, Burst: 5}},
		{Tag: "day/*", Quota: Quota{Budgets: []Budget{{Amount: 100, Per: "day"}}}},
	},
}

// fewTags is how many tags have quotas of their own in these tests.
const fewTags = 512

// crowded makes so many tags, which have been used once, one after the other.
func crowded(t *testing.T, n int) *Throttle {
	t.Helper()
	th := quotaed(t, Limit{Max: 1_000_000, Burst: 1_000_000}, freeTags)
	require.Equal(t, maxTags, th.tags.most)
	th.tags.most = fewTags
	time.Sleep(10 * time.Second)
	for i := range n {
		take(t, th.ForTag(fmt.Sprint("free/", i)), 1, i)
		if i%4 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	return th
}

func (s *tagSet) knows(name string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.tags[name] != nil
}

// When a name comes and the table is full all tags make way that were idle for long, and who comes before that shares.
func TestIdleTagsMakeWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := crowded(t, fewTags)
		s := th.tags
		require.Contains(t, s.shared[:], viewOf(th.ForTag("free/early")).first(), "all were used a moment ago")
		time.Sleep(time.Duration(evictAfter))
		take(t, th.ForTag("free/0"), 1)
		view := viewOf(th.ForTag("free/new"))
		require.Equal(t, "free/new", view.first().name)
		require.True(t, s.knows("free/new"))
		require.True(t, s.knows("free/0"), "it was used again")
		require.False(t, s.knows("free/1"), "all that were idle make way")
		require.False(t, s.knows("free/2"))
		require.LessOrEqual(t, len(s.tags), fewTags+2)
		require.Equal(t, struct{ Used, Refused int64 }{Used: fewTags - 2}, th.Status().TagsGone)
		require.Equal(t, "free/early", viewOf(th.ForTag("free/early")).first().name, "who shared has one of its own now")
	})
}

// A name that shares a quota has one of its own once there is room: no new name has to come first. This holds for a limiter that is kept,
// for draws on two tags or two levels, and for what an All remembers.
func TestSharingEndsOnceThereIsRoom(t *testing.T) {
	kept := func(l Limiter) func() Limiter { return func() Limiter { return l } }
	for name, of := range map[string]func(t *testing.T, th *Throttle) func() Limiter{
		"a kept limiter": func(t *testing.T, th *Throttle) func() Limiter { return kept(th.ForTag("free/late")) },
		"two tags":       func(t *testing.T, th *Throttle) func() Limiter { return kept(th.ForTags("known", "free/late")) },
		"two levels":     func(t *testing.T, th *Throttle) func() Limiter { return kept(forLevels(th, "known", "free/late")) },
		"two limits": func(t *testing.T, th *Throttle) func() Limiter {
			both := All(th, quotaed(t, Limit{Max: 1000}, Quotas{})).(Tagger) //nolint:forcetypeassert,errcheck // all its limits have tags
			return func() Limiter { return both.ForTag("free/late") }
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			th := crowded(t, fewTags)
			late := of(t, th)
			time.Sleep(time.Second)
			take(t, late(), 1, name)
			require.False(t, th.tags.knows("free/late"), name)
			time.Sleep(time.Duration(evictAfter) - 2*time.Second)
			take(t, late(), 1, name)
			require.False(t, th.tags.knows("free/late"), "%s: no tag is idle", name)
			time.Sleep(2 * time.Second)
			take(t, late(), 1, name)
			time.Sleep(time.Second)
			take(t, late(), 1, name)
			require.True(t, th.tags.knows("free/late"), name)
			require.EqualValues(t, 2, statusOf(th, "free/late").Used, name)
		})
	}
}

// A new tag is weighed against those there are: also after some have made way, have come back, or have got other weights.
func TestNewTagsAreWeighedAgainstThoseThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := Quotas{Tags: map[string]Quota{"a": {Weight: 2}, "b": {Weight: 3}}, Match: []QuotaPattern{{Tag: "free/*", Quota: Quota{Weight: 5}}}}
		th := quotaed(t, Limit{Max: 1000}, q)
		time.Sleep(time.Second)
		s := th.tags
		weighed := func(when string) {
			t.Helper()
			sum := 0
			for _, g := range s.tags {
				sum += g.quota().Weight
			}
			require.Equal(t, sum, s.weights, when)
		}
		for _, name := range []string{"a", "b", "free/1", "free/2"} {
			take(t, th.ForTag(name), 1)
		}
		weighed("they came")
		p := take(t, th.ForTag("free/3"), 1)
		time.Sleep(2 * time.Duration(evictAfter))
		s.mu.Lock()
		require.True(t, s.evict())
		s.mu.Unlock()
		require.False(t, s.knows("free/3"))
		weighed("some made way")
		p.Settle(2)
		require.True(t, s.knows("free/3"))
		weighed("one came back")
		q.Tags = map[string]Quota{"a": {Weight: 7}}
		rateHolder{th}.SetQuotas(q.WithDefaults(time.Second))
		weighed("other quotas")
	})
}

// Whoever has kept a Limiter of a tag that made way goes on under its name, within its quota.
func TestALimiterOutlivesItsTag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := crowded(t, fewTags)
		kept, both := th.ForTag("free/0"), th.ForTags("free/0", "free/1")
		old := viewOf(kept).first()
		time.Sleep(time.Duration(2 * evictAfter))
		for i := range 3 {
			th.ForTag(fmt.Sprint("free/new", i))
		}
		require.True(t, old.gone.Load())
		take(t, kept, 5)
		deny(t, kept, 1, "the quota is its own")
		deny(t, th.ForTag("free/0"), 1, "it is the same tag")
		deny(t, both, 1, "the first one has no tokens")
		require.EqualValues(t, 5, statusOf(th, "free/0").Used)
		began := time.Now()
		p := acquire(t, kept, 2)
		require.InDelta(t, 0.2, time.Since(began).Seconds(), 0.01, "it waits for its own tokens")
		p.Settle(0)
		acquire(t, both, 1)
		th2, held := kept.(interface{ Throttled() (Throttling, bool) })
		require.True(t, held)
		_, _ = th2.Throttled()
	})
}

// The second name of a draw may take the place of the first one's tag. The limiter of both is not kept then, and the draw looks for them once more.
func TestATagMakesWayForAnotherOfTheSameDraw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := crowded(t, fewTags)
		old := viewOf(th.ForTag("free/0")).first()
		time.Sleep(time.Duration(2 * evictAfter))
		both := th.ForTags("free/0", "free/new")
		require.True(t, old.gone.Load())
		for _, l := range th.tags.joint {
			require.False(t, slices.ContainsFunc(l.tags, func(g *tag) bool { return g.gone.Load() }), "a lookup would return this view for ever")
		}
		take(t, both, 1)
		require.EqualValues(t, 1, statusOf(th, "free/0").Used)
		require.EqualValues(t, 1, statusOf(th, "free/new").Used)
	})
}

// What would be forgotten with it keeps a tag.
func TestTagsThatDoNotMakeWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := crowded(t, 100)
		s := th.tags
		drop := func(name string) bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.drop(s.tags[name], th.gate.Now())
		}
		idle := time.Duration(evictAfter)
		take(t, th.ForTag("day/spent"), 1)
		debt := take(t, th.ForTag("free/7"), 1)
		debt.Settle(100 * 10 * 60) // tokens of ten minutes and more
		all := All(th.ForTag("free/8"), th.ForTag("free/9"))
		waits := make(chan error)
		go func() {
			_, err := th.ForTags("free/10", "free/11").Acquire(t.Context(), 8)
			waits <- err
		}()
		synctest.Wait()
		require.False(t, drop("free/10"), "somebody waits")
		require.False(t, drop("free/11"), "somebody waits")
		require.NoError(t, <-waits)
		require.False(t, drop("free/10"), "it was used a moment ago")
		time.Sleep(idle + time.Second)
		require.False(t, drop("free/7"), "it is in debt")
		require.False(t, drop("day/spent"), "what is spent today must not be forgotten")
		require.False(t, drop("free/8"), "an All has it")
		require.True(t, drop("free/10"))
		require.True(t, drop("free/12"))
		take(t, all, 1)
		time.Sleep(25 * time.Hour)
		require.True(t, drop("day/spent"), "the day is over")
		require.True(t, drop("free/7"))
		runtime.KeepAlive(all)
	})
}

// A permit that is settled after its tag made way counts for the tag of its name.
func TestSettleAfterATagMadeWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := crowded(t, 100)
		_, _ = th.ForTag("free/0").TryAcquire(1)
		first := take(t, th.ForTag("free/1"), 1)
		second := take(t, th.ForTag("free/2"), 1)
		time.Sleep(time.Duration(2 * evictAfter))
		s := th.tags
		s.mu.Lock()
		for _, name := range []string{"free/1", "free/2"} {
			require.True(t, s.drop(s.tags[name], th.gate.Now()))
		}
		s.mu.Unlock()
		first.Settle(31) // its tag comes back
		require.EqualValues(t, 2+30, statusOf(th, "free/1").Used)
		deny(t, th.ForTag("free/1"), 1, "it is in debt")
		_, ok := th.ForTag("free/2").TryAcquire(1) // another tag under the name
		require.True(t, ok)
		second.Settle(41)
		deny(t, th.ForTag("free/2"), 1, "it is in debt")
		require.EqualValues(t, 41, statusOf(th, "free/2").Used)
		require.Equal(t, struct{ Used, Refused int64 }{Used: 2}, th.Status().TagsGone)
	})
}

// An All forgets the Limiters that it remembers by tag when they keep all tags from making way.
func TestAllFreesItsTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := quotaed(t, Limit{Max: 1_000_000, Burst: 1_000_000}, freeTags)
		th.tags.most = fewTags
		both, ok := All(th, quotaed(t, Limit{Max: 1_000_000, Burst: 1_000_000}, Quotas{})).(Tagger)
		require.True(t, ok)
		time.Sleep(10 * time.Second)
		for i := range fewTags {
			both.ForTag(fmt.Sprint("free/", i))
		}
		time.Sleep(time.Duration(evictAfter) * 2)
		require.Contains(t, th.tags.shared[:], viewOf(th.ForTag("free/new")).first())
		both.ForTag("free/0")
		found := false
		for range 50 {
			runtime.GC()
			time.Sleep(2 * time.Second)
			if found = viewOf(th.ForTag("free/newer")).live().first().name == "free/newer" && th.tags.knows("free/newer"); found {
				break
			}
		}
		require.True(t, found)
	})
}

// Names come and go while their Limiters are in use, and every token is counted once.
func TestTagsMakeWayUnderUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := crowded(t, fewTags)
		var granted atomic.Int64
		granted.Store(fewTags)
		kept := make([]Limiter, 64)
		for i := range kept {
			kept[i] = th.ForTag(fmt.Sprint("free/", i))
		}
		for round := range 8 { // in one round the tag that should go may happen to be in use
			time.Sleep(time.Duration(evictAfter) * 2)
			var wg sync.WaitGroup
			for k := range 8 {
				wg.Go(func() {
					for i := range 200 {
						l := kept[(i*7+k)%len(kept)]
						if i%3 > 0 {
							l = th.ForTag(fmt.Sprint("free/", round, "-", i))
						}
						if i%5 == 0 {
							p, err := l.Acquire(t.Context(), 1)
							if err == nil {
								granted.Add(int64(p.N()))
							}
							continue
						}
						if p, ok := l.TryAcquire(1); ok {
							p.Settle(2)
							granted.Add(2)
						}
					}
				})
			}
			wg.Wait()
		}
		st := th.Status()
		used := st.TagsGone.Used
		for _, tag := range st.Tags {
			used += tag.Used
		}
		require.Equal(t, granted.Load(), used)
		require.Positive(t, th.tags.gone.count)
		require.LessOrEqual(t, len(th.tags.tags), fewTags+2)
	})
}
