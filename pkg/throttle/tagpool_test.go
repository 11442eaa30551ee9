package throttle

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// limitBatch is a batch that is good from one time from now on until another.
func limitBatch(tokens int64, from, until time.Duration, window int64) sharing.Batch {
	return sharing.Batch{Tokens: tokens, From: time.Now().Add(from), Until: time.Now().Add(until), Window: window}
}

// batch is a grant of tokens that are good from now on for d.
func batch(tag string, tokens int64, d time.Duration) sharing.TagGrant {
	return sharing.TagGrant{Tag: tag, Needed: true, Rate: 1, Batch: limitBatch(tokens, 0, d, 1)}
}

func reportOf(s *script, tag string, keep time.Duration) sharing.TagReport {
	for _, r := range s.h.ReportTags(keep) {
		if r.Tag == tag {
			return r
		}
	}
	return sharing.TagReport{}
}

// Whatever is drawn, settled, undone and granted at the same time, no token of a quota is lost or made.
func TestTagsAreConserved(t *testing.T) {
	q := tagsOf(map[string]Quota{"a": {Total: 1_000_000}, "b": {Total: 1_000_000}, "c": {}})
	th, s := scripted(t, Limit{Max: 1_000_000_000, Burst: 1_000_000_000}, 1, WithQuotas(q))
	slots := flight(t, 4)
	const granted = 200_000
	s.h.GrantTags([]sharing.TagGrant{batch("a", granted, time.Hour), batch("b", granted, time.Hour)})
	limits := []Limiter{
		th.ForTag("a"), th.ForTags("a", "b"), th.ForTags("b", "a", "c"), All(th.ForTag("b"), slots), All(th.ForTag("a"), th.ForTag("b")), th,
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 1))
			for range 1000 {
				l, n := limits[r.IntN(len(limits))], 1+r.IntN(20)
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(r.IntN(3))*time.Millisecond)
				var p Permit
				switch r.IntN(3) {
				case 0:
					p, _ = l.TryAcquire(n)
				case 1:
					p, _ = l.Acquire(ctx, n)
				default:
					p, _ = l.AcquireUpTo(ctx, n)
				}
				cancel()
				p.Cancel()
				switch r.IntN(50) {
				case 0:
					s.h.GrantTags([]sharing.TagGrant{{Tag: "a", Needed: true, Rate: r.Float64() * 100}, {Tag: "b", Needed: true}})
				case 1:
					th.Status()
					viewOf(th.ForTag("a")).Throttled()
				case 2:
					s.h.SetPauses([]Paused{{Tag: "b", Until: time.Now().Add(time.Millisecond)}})
				}
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, granted, inHand(th, "a"))
	require.EqualValues(t, granted, inHand(th, "b"))
	for _, tag := range []string{"a", "b", "c", ""} {
		require.Zero(t, statusOf(th, tag).Used, tag)
		require.Zero(t, statusOf(th, tag).Waiting, tag)
	}
	require.Zero(t, th.queue.Len)
	require.True(t, viewOf(th.ForTag("a")).first().tagQueue.Empty())
}

// Hard: no more than Total in any window of Per.
func TestHardTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := quotaed(t, Limit{Max: 1000, Burst: 1000}, tagsOf(map[string]Quota{"a": {Total: 200, Per: 10 * time.Second, Hard: true}}))
		r := rand.New(rand.NewPCG(1, 1))
		var at []time.Time
		for began := time.Now(); time.Since(began) < 2*time.Minute; {
			if p, ok := th.ForTag("a").TryAcquire(1); ok {
				at = append(at, time.Now())
				if r.IntN(100) == 0 {
					time.Sleep(time.Duration(r.IntN(10)) * time.Second)
				}
				_ = p
			} else {
				time.Sleep(5 * time.Millisecond)
			}
		}
		require.Greater(t, len(at), 500)
		for i := range at {
			if i >= 200 {
				require.Greater(t, at[i].Sub(at[i-200]), 10*time.Second)
			}
		}
	})
}

// A lineCase has waiting calls of one tag, and the line expected in the report.
type lineCase struct {
	share, even float64 // of a limit of 1,000 a second; even: 0 if unknown
	coming      int64
	calls       []int
	head, line  int64
	more        bool
}

// wrong plays the case, and describes the reported line if it differs.
func (c *lineCase) wrong(t *testing.T) (wrong string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 2000, Per: 2 * time.Second, Burst: 100}, c.share, WithQuotas(tagsOf(map[string]Quota{"a": {Total: 2000}})))
		s.h.Lease(limit.Lease{Share: fraction(c.share), Even: fraction(c.even)})
		for _, n := range c.calls {
			beginWith(th.ForTag("a").Acquire, n, 0)
			synctest.Wait()
		}
		s.h.GrantTags([]sharing.TagGrant{{Tag: "a", Needed: true, Rate: 10_000, Coming: c.coming}})
		if r := reportOf(s, "a", time.Second); r.Head != c.head || r.Line != c.line || r.More != c.more {
			wrong = fmt.Sprintf("head %d, line %d, more %t, not as in %+v", r.Head, r.Line, r.More, *c)
		}
	})
	return wrong
}

// wholeCalls: a pod asks for whole calls. Tokens set aside count for the calls that they cover completely, from the first one on.
var wholeCalls = []lineCase{
	{1, 0, 0, []int{60, 1}, 60, 61, false},
	{1, 0, 60, []int{60, 1}, 60, 61, false},
	{1, 0, 61, []int{60, 1, 60}, 60, 121, false},
	{1, 0, 1, []int{60, 1}, 60, 62, false},
	{1, 0, 1, []int{60}, 60, 61, false},           // the one token is for a call that has gone
	{1, 0, 123, []int{60, 60, 1}, 60, 123, false}, // a call of 1 has gone, and nothing more is lacking
	{1, 0, 123, []int{60, 60, 1, 60}, 60, 183, false},
}

// delayedCalls: a call for which an even share earns too little within a report interval is asked for alone. Behind others its tag's tokens
// would lapse.
var delayedCalls = []lineCase{
	{1, 0, 0, []int{10, 900}, 10, 910, false}, // 0.9 s
	{1, 0, 0, []int{10, 1100}, 10, 10, true},
	{1, 0, 0, []int{1100, 10}, 1100, 1110, false},
	{1, 0.5, 0, []int{10, 490}, 10, 500, false},
	{1, 0.5, 0, []int{10, 510}, 10, 10, true},
	{0.2, 0.5, 0, []int{10, 490}, 10, 500, false},
	{0, 0, 0, []int{10, 20}, 10, 10, true}, // nothing is known yet
}

func TestTheLineOfATag(t *testing.T) {
	for _, c := range slices.Concat(wholeCalls, delayedCalls) {
		require.Empty(t, c.wrong(t))
	}
}
