package throttle

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The average cost of a tag's calls counts each call that used tokens, in whatever way it drew them, and no other.
func TestTagCallsAreCounted(t *testing.T) {
	for what, call := range map[string]func(t *testing.T, th *Throttle){
		"at once":  func(t *testing.T, th *Throttle) { take(t, th.ForTag("a"), 7) },
		"in All":   func(t *testing.T, th *Throttle) { take(t, All(th.ForTag("a"), PerCall(whole(t, Limit{}))), 7) },
		"waits":    func(t *testing.T, th *Throttle) { drain(th); acquire(t, th.ForTag("a"), 7) },
		"settled":  func(t *testing.T, th *Throttle) { take(t, th.ForTag("a"), 20).Settle(7) },
		"charged":  func(t *testing.T, th *Throttle) { require.NoError(t, Charge(th.ForTag("a"), 7)) },
		"canceled": func(t *testing.T, th *Throttle) { take(t, th.ForTag("a"), 20).Cancel(); take(t, th.ForTag("a"), 7) },
		"undone": func(t *testing.T, th *Throttle) {
			deny(t, All(th.ForTag("a"), newForeign(0)), 20)
			take(t, th.ForTag("a"), 7)
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th := quotaed(t, Limit{Max: 1000, Burst: 100}, tagsOf(map[string]Quota{"a": {}}))
				time.Sleep(time.Second)
				th.tags.plan.tick()
				time.Sleep(time.Millisecond) // so that no look is in the middle of a call
				for range 50 {
					call(t, th)
					time.Sleep(500 * time.Millisecond)
				}
				require.InDelta(t, 7, statusOf(th, "a").Cost, 0.2)
			})
		})
	}
}

// A tag that made way gets nothing back from its old permits, and neither does the tag that has its name now.
func TestTagThatCameAgainGetsNothingReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := crowded(t, 100)
		p := take(t, th.ForTag("free/1"), 4)
		time.Sleep(time.Duration(2 * evictAfter))
		s := th.tags
		s.mu.Lock()
		require.True(t, s.drop(s.tags["free/1"], th.gate.Now()))
		s.mu.Unlock()
		time.Sleep(time.Second)
		take(t, th.ForTag("free/1"), 5)
		p.Settle(0)
		deny(t, th.ForTag("free/1"), 1)
	})
}

// Tags that made way are counted with what they were refused, until they come back.
func TestTagsGoneAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := crowded(t, 4)
		gone := struct{ Used, Refused int64 }{Used: 3, Refused: 9}
		p := take(t, th.ForTag("free/1"), 2)
		deny(t, th.ForTag("free/1"), 9)
		time.Sleep(time.Duration(2 * evictAfter))
		s := th.tags
		s.mu.Lock()
		require.True(t, s.drop(s.tags["free/1"], th.gate.Now()))
		s.mu.Unlock()
		require.Equal(t, gone, th.Status().TagsGone)
		p.Settle(3)
		require.True(t, s.knows("free/1"))
		require.Zero(t, th.Status().TagsGone)
		require.EqualValues(t, 4, statusOf(th, "free/1").Used)
	})
}

// A tag that made way does not come back without room, nor without a quota of its own.
func TestTagsThatStayAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := crowded(t, 4)
		s := th.tags
		permits := []Permit{take(t, th.ForTag("free/1"), 2), take(t, th.ForTag("free/2"), 2)}
		time.Sleep(time.Duration(2 * evictAfter))
		s.mu.Lock()
		require.True(t, s.evict())
		s.most = len(s.tags) + 2
		s.mu.Unlock()
		take(t, th.ForTag("free/8"), 1)
		take(t, th.ForTag("free/9"), 1)
		permits[0].Settle(1)
		require.False(t, s.knows("free/1"))
		require.Len(t, s.tags, s.most)
		s.most++
		other := s.other.first()
		rateHolder{th}.SetQuotas(Quotas{}.WithDefaults(time.Second))
		permits[1].Settle(1)
		require.Len(t, s.tags, 1)
		require.Same(t, other, s.tags[""])
	})
}

// A table without idle tags is searched once a second, and other limits forget their tags once in ten.
func TestTagsAreSeldomSearched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := crowded(t, 4)
		s := th.tags
		evicts := func(after time.Duration) bool {
			time.Sleep(after)
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.evict()
		}
		use := func() {
			for _, name := range []string{"free/0", "free/1", "free/2", "free/3"} {
				take(t, th.ForTag(name), 1)
			}
		}
		era := s.era.Load()
		require.False(t, evicts(0))
		require.Equal(t, era+1, s.era.Load())
		for range 9 {
			require.False(t, evicts(time.Second))
			use()
		}
		require.Equal(t, era+1, s.era.Load())
		require.False(t, evicts(time.Second))
		require.Equal(t, era+2, s.era.Load())
		require.False(t, evicts(8500*time.Millisecond))
		require.False(t, evicts(600*time.Millisecond), "they have become idle just now")
		require.True(t, evicts(400*time.Millisecond))
	})
}

// Names that share a tag are counted while they do.
func TestTagNamesThatShareAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := crowded(t, 4)
		th.tags.most = 5 // with that of all others
		const names = 4 * sharedTags
		for i := range names {
			th.ForTag(fmt.Sprint("free/more", i))
		}
		shared := slices.DeleteFunc(slices.Clone(th.tags.shared[:]), func(g *tag) bool { return g == nil })
		require.Equal(t, names-len(shared), th.tags.unknown, "a shared tag has the name of the first one")
		time.Sleep(time.Duration(evictAfter))
		th.ForTag("free/new")
		require.Zero(t, th.tags.unknown)
	})
}

// The end of a wait is a use of the tag.
func TestTagIsUsedUntilItsCallersEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := crowded(t, 4)
		c := beginWith(All(th.ForTag("free/1"), newForeign(0)).Acquire, 1, 0)
		g := viewOf(th.ForTag("free/2")).first()
		time.Sleep(time.Minute)
		viewOf(th.ForTag("free/2")).pin()
		time.Sleep(time.Minute)
		viewOf(th.ForTag("free/2")).unpin()
		require.Equal(t, th.gate.Now(), g.last)
		c.cancel()
	})
}

// A tag of the second level that made way does not come back when a kept limiter draws for it by itself.
func TestTagOfTheSecondLevelStaysAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := crowded(t, 4)
		forLevels(th, "known", "free/under")
		s := th.tags
		g := s.tags["free/under"]
		require.True(t, g.under.Load())
		time.Sleep(time.Duration(evictAfter))
		s.mu.Lock()
		require.True(t, s.drop(g, th.gate.Now()))
		weights := s.weights
		s.mu.Unlock()
		s.lead(g)
		require.False(t, s.knows("free/under"))
		require.Equal(t, weights, s.weights)
	})
}

// So many names of other tags are remembered. One more counts as any other, unless it is paused.
func TestTagNamesThatAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := quotaed(t, Limit{Max: 1000, Burst: 100}, Quotas{Tags: map[string]Quota{"a": {}}})
		time.Sleep(time.Second)
		for i := range maxNames + 5 {
			th.ForTag(fmt.Sprint("n", i))
		}
		require.Equal(t, maxNames, th.tags.unknown)
		for i := range maxNames {
			th.ForTags("a", fmt.Sprint("n", i))
			th.ForTags(fmt.Sprint("n", i), "a")
		}
		require.Len(t, th.tags.joint, maxNames)
		pauseFor(t, th, time.Minute, PauseTag("late"))
		deny(t, th.ForTag("late"), 1)
		require.Same(t, th.ForTag("-"), th.ForTag("another"))
	})
}

// A limiter of four tags is kept, and one of more is not. Each of its names is there once.
func TestTagsTogether(t *testing.T) {
	th := quotaed(t, Limit{Max: 1000}, tagsOf(map[string]Quota{"a": {}, "b": {}, "c": {}, "d": {}, "e": {}}))
	same := func(tags ...string) bool { return th.ForTags(tags...) == th.ForTags(tags...) }
	require.True(t, same("a", "b", "c", "d"))
	require.False(t, same("a", "b", "c", "d", "e"))
	require.Equal(t, []string{"a", "b"}, viewOf(th.ForTags("a", "b", "a", "not\x00valid")).names)
}
