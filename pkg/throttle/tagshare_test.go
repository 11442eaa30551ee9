package throttle

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// slowTags are quotas that a name cannot earn back while a test lasts.
var slowTags = Quotas{Match: []QuotaPattern{
	{Tag: "free/*", Quota: Quota{Total: 10}},
	{Tag: "day/*", Quota: Quota{Budgets: []Budget{{Amount: 100, Per: "day"}}}},
	{Tag: "hour/*", Quota: Quota{Total: 360, Per: time.Hour, Burst: 20}},
}}

// noRoom makes a Throttle that has no room for more names, until evictAfter is over.
func noRoom(t *testing.T) *Throttle {
	t.Helper()
	th := quotaed(t, Limit{Max: 1_000_000, Burst: 1_000_000}, slowTags)
	th.tags.most = fewTags
	time.Sleep(time.Hour)
	for i := range fewTags - 1 { // and the tag of all others
		take(t, th.ForTag(fmt.Sprint("free/", i)), 1)
	}
	return th
}

// neighbour returns a name that would share the same tag, and is told apart.
func neighbour(s *tagSet, name string) string {
	hash := maphash.String(s.seed, name)
	for i := 0; ; i++ {
		other := fmt.Sprint(name, i)
		if h := maphash.String(s.seed, other); h%sharedTags == hash%sharedTags && h/sharedTags%64 != hash/sharedTags%64 {
			return other
		}
	}
}

// A name that shared a quota and then has one of its own has no more than its quota in both together, whoever used what they shared. Names
// that come later have whole ones.
func TestWhatWasSharedCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := noRoom(t)
		day, hour := th.ForTag("day/x"), th.ForTag("hour/x")
		take(t, day, 60)
		take(t, hour, 20)
		require.False(t, th.tags.knows("day/x"))
		time.Sleep(time.Duration(evictAfter) + time.Second)
		take(t, day, 40)
		require.True(t, th.tags.knows("day/x"))
		deny(t, day, 1, "its budget is spent")
		deny(t, th.ForTag("day/x"), 1, "and for who asks anew")
		take(t, hour, 1)
		require.True(t, th.tags.knows("hour/x"))
		deny(t, hour, 1, "it earned one token in ten seconds")
		take(t, th.ForTag(neighbour(th.tags, "day/x")), 100)
		take(t, th.ForTag(neighbour(th.tags, "hour/x")), 20)
		time.Sleep(25 * time.Hour)
		take(t, day, 100)
		take(t, hour, 20)
	})
}

// This holds for callers that draw at once while the name gets its own quota, with one tag or two.
func TestWhatWasSharedCountsForCallersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := noRoom(t)
		kept, both := th.ForTag("day/x"), th.ForTags("free/0", "day/x")
		take(t, kept, 10)
		time.Sleep(time.Duration(evictAfter) + time.Second)
		var granted atomic.Int64
		var wg sync.WaitGroup
		for k := range 8 {
			wg.Go(func() {
				for i := range 60 {
					l := []Limiter{kept, both, th.ForTag("day/x")}[(i+k)%3]
					if _, ok := l.TryAcquire(1); ok {
						granted.Add(1)
					}
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 90, granted.Load())
	})
}

// Callers that wait for what a name shared may be its own: it begins behind them.
func TestAnOwnQuotaBeginsBehindSharedWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := noRoom(t)
		hour := th.ForTag("hour/x")
		take(t, hour, 20)
		served := make(chan time.Duration, 3)
		began := time.Now()
		for range 3 {
			go func() {
				if _, err := hour.Acquire(context.WithoutCancel(t.Context()), 1); err == nil {
					served <- time.Since(began)
				}
			}()
		}
		time.Sleep(time.Duration(evictAfter) + time.Second)
		deny(t, hour, 1, "callers wait")
		require.True(t, th.tags.knows("hour/x"))
		_, err := hour.Acquire(context.WithoutCancel(t.Context()), 1)
		require.NoError(t, err)
		require.Equal(t, 40*time.Second, time.Since(began), "three calls came before, and ten seconds earn one token")
		for i := range 3 {
			require.Equal(t, time.Duration(i+1)*10*time.Second, <-served)
		}
	})
}

// A name goes on sharing while the tag that it shares is in use at the moment of the search, and has its own at the next one.
func TestSharingGoesOnWhileTheTagIsInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := noRoom(t)
		shared := viewOf(th.ForTag("day/x")).first()
		take(t, th.ForTag("day/x"), 60)
		time.Sleep(time.Duration(evictAfter) + time.Second)
		shared.mu.Lock()
		l := th.ForTag("day/x")
		th.ForTag("free/new")
		require.True(t, viewOf(th.ForTag("day/x")).first().many)
		shared.mu.Unlock()
		take(t, l, 40)
		deny(t, l, 1)
		require.False(t, viewOf(th.ForTag("day/x")).first().many)
		deny(t, th.ForTag("day/x"), 1)
	})
}

// A search that finds no room keeps the limiters that were looked up: with many invented names a new lookup of each is expensive.
func TestSharingWithoutRoomLooksUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := noRoom(t)
		l := th.ForTag("day/x")
		time.Sleep(2 * time.Second)
		take(t, l, 1)
		require.Greater(t, th.tags.gone.lookAt.Load(), th.gate.Now(), "it searched")
		require.Zero(t, th.tags.gone.rounds.Load())
		require.Same(t, viewOf(l), viewOf(th.ForTag("day/x")))
	})
}

// A permit that is settled after its tag made way counts with what the name shared since.
func TestSettleOfANameThatShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := noRoom(t)
		time.Sleep(time.Duration(evictAfter))
		p := take(t, th.ForTag("day/x"), 1)
		time.Sleep(25 * time.Hour)
		for i := range fewTags - 1 {
			take(t, th.ForTag(fmt.Sprint("free/", i)), 1)
		}
		require.False(t, th.tags.knows("day/x"))
		take(t, th.ForTag("day/x"), 60)
		time.Sleep(time.Duration(evictAfter))
		p.Settle(11)
		require.True(t, th.tags.knows("day/x"))
		take(t, th.ForTag("day/x"), 30)
		deny(t, th.ForTag("day/x"), 1)
	})
}

// So may a caller that waits for the limit, and has the tokens of what it shares.
func TestAnOwnQuotaLeavesPromisedTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := noRoom(t)
		hour := th.ForTag("hour/x")
		shared := viewOf(hour).first()
		take(t, th, 1_000_000-fewTags+1)
		beginWith(hour.Acquire, 12, 0)
		require.EqualValues(t, 12, shared.promised)
		th.tags.most++
		th.tags.gone.rounds.Add(1)
		th.tags.limiters = map[string]*tagView{}
		own := viewOf(th.ForTag("hour/x")).first()
		require.False(t, own.many)
		require.EqualValues(t, 8, own.tagBucket.AtHand(th.gate.Now()))
	})
}

// 65,536 hashes are told apart among those that share a tag.
func TestSharersByHash(t *testing.T) {
	var s sharers
	for i := range uint64(64 * len(s)) {
		require.False(t, s.has(i*sharedTags))
		s.add(i*sharedTags + i%sharedTags)
		require.True(t, s.has(i*sharedTags))
	}
}
