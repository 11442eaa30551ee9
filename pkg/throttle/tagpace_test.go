package throttle

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A pace lets a tag draw at its rate, with a quarter of a second saved up, at least a token. A second's worth of excess counts.
func TestTagPace(t *testing.T) {
	const second = int64(time.Second)
	for what, c := range map[string]struct {
		p      pace
		now    int64
		n      int
		within bool
		spent  float64 // the level after a draw of n
	}{
		"no plan yet":                {pace{}, second, 1000, true, 0},
		"no plan yet, a return":      {pace{}, second, -5, true, 0},
		"nothing earned":             {pace{rate: 8, at: second}, second, 1, false, -1},
		"a token earned":             {pace{rate: 8, at: second}, second + second/8, 1, true, 0},
		"not quite a token":          {pace{rate: 8, at: second}, second + second/16, 1, false, -0.5},
		"it adds up":                 {pace{rate: 8, level: 0.5, at: second}, second + second/16, 1, true, 0},
		"a quarter of a second":      {pace{rate: 8, at: second}, 9 * second, 2, true, 0},
		"a large draw":               {pace{rate: 8, at: second}, 9 * second, 6, true, -4},
		"an excess of a second":      {pace{rate: 8, at: second}, 9 * second, 600, true, -8},
		"a slow tag":                 {pace{rate: 2, at: second}, 9 * second, 1, true, 0},
		"a slow tag, half a token":   {pace{rate: 2, at: second}, second + second/4, 1, false, -0.5},
		"returned tokens can be had": {pace{rate: 8, level: 1, at: second}, second, -3, true, 4},
	} {
		t.Run(what, func(t *testing.T) {
			require.Equal(t, c.within, c.p.within(c.now, c.n))
			c.p.spend(c.now, c.n)
			require.InDelta(t, c.spent, c.p.level, 1e-9)
		})
	}
}

// A shortage counts for a second. There is a place for each of sixteen, and again for others when these are over.
func TestTagShortages(t *testing.T) {
	const now = 10 * lackFor
	var s shortages[int]
	names := make([]int, 2*maxShort)
	short := func(now int64) (tags []int) {
		for i := range maxShort {
			if g, n := s.at(i, now); g != nil {
				require.EqualValues(t, *g, n)
				tags = append(tags, *g)
			}
		}
		return tags
	}
	for i := range names {
		names[i] = i + 1
	}
	s.lacks(&names[0], 7, now-lackFor/2)
	s.lacks(&names[0], names[0], now)
	require.Equal(t, []int{1}, short(now+lackFor-1), "the later one counts")
	require.True(t, s.any(now+lackFor-1))
	require.False(t, s.any(now+lackFor))
	require.Empty(t, short(now+lackFor))
	require.Nil(t, s.other(&names[0], now))
	require.Same(t, &names[0], s.other(&names[1], now))
	require.Nil(t, s.other(&names[1], now+lackFor))
	for i := 1; i < maxShort; i++ {
		s.lacks(&names[i], names[i], now)
	}
	require.ElementsMatch(t, names[:maxShort], short(now))
	for i := maxShort; i < len(names); i++ {
		s.lacks(&names[i], names[i], now+lackFor)
	}
	require.ElementsMatch(t, names[maxShort:], short(now+lackFor))
	s.satisfied(&names[20])
	require.NotContains(t, short(now+lackFor), names[20])
	require.Len(t, short(now+lackFor), maxShort-1)
	s.lacks(&names[20], names[20], now) // by a clock that was read before
	require.True(t, s.any(now+lackFor), "of the others")
}

// Waiting callers leave tokens for tags that lack some, except their own tag. They leave none that they need themselves, and none for a draw
// that never fits.
func TestTagTokensKept(t *testing.T) {
	for what, c := range map[string]struct {
		a, b   int // tokens that they lack
		of     string
		least  int
		queued bool
		kept   int
		passes bool
	}{
		"nobody is short":          {of: "hog", least: 1},
		"one tag":                  {a: 3, of: "hog", least: 1, kept: 3},
		"two tags":                 {a: 3, b: 2, of: "hog", least: 1, kept: 5},
		"more than the rest":       {a: 4, b: 4, of: "hog", least: 5, kept: 5},
		"for nobody above that":    {a: 3, of: "hog", least: 20},
		"a draw of all":            {a: 10, of: "hog", least: 1, kept: 9},
		"a draw that never fits":   {a: 11, b: 2, of: "hog", least: 1, kept: 2},
		"its own tag":              {a: 3, b: 2, of: "a", least: 3, passes: true},
		"its own, for less":        {a: 3, of: "a", least: 1, passes: true},
		"its own, for more":        {a: 3, of: "a", least: 4, kept: 3},
		"its own, in the queue":    {a: 3, b: 2, of: "a", least: 3, queued: true, kept: 2, passes: true},
		"another one in the queue": {a: 3, of: "b", least: 3, queued: true, kept: 3},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th := quotaed(t, Limit{Max: 10, Burst: 10}, tagsOf(map[string]Quota{"a": {}, "b": {}, "hog": {}}))
				th.gate.Lock()
				defer th.gate.Unlock()
				now := th.gate.Now()
				for tag, n := range map[string]int{"a": c.a, "b": c.b} {
					if n > 0 {
						th.tags.short.lacks(viewOf(th.ForTag(tag)).first(), n, now)
					}
				}
				w := &waiter{N: c.least, Least: c.least, TagQueue: viewOf(th.ForTag(c.of)).first().tagQueue}
				if c.queued {
					th.queue.Insert(w)
					defer th.queue.Remove(w)
				}
				require.Equal(t, th.bucket.Units(c.kept), th.tags.kept(now, w))
				require.Equal(t, c.passes, th.tags.passes(now, w))
			})
		})
	}
}

// Where tokens are issued one by one there is nothing to keep.
func TestTagTokensKeptOfIssuedOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, _ := issued(t, Limit{Max: 10, Strict: true}, WithQuotas(tagsOf(map[string]Quota{"a": {}, "hog": {}})))
		th.gate.Lock()
		defer th.gate.Unlock()
		now, a := th.gate.Now(), viewOf(th.ForTag("a")).first()
		th.tags.short.lacks(a, 1, now)
		require.Zero(t, th.tags.kept(now, &waiter{Least: 1, TagQueue: viewOf(th.ForTag("hog")).first().tagQueue}))
		require.False(t, th.tags.passes(now, &waiter{Least: 1, TagQueue: a.tagQueue}))
	})
}
