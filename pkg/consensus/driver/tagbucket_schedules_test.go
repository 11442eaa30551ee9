package driver

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// A tagBucketTrial is a pool with one tag bucket, from which a thousand tokens a second are earned.
type tagBucketTrial struct {
	rec Record
	at  At
	// seqs are the newest requests of each processor, taken the ones of which the answer was taken.
	seqs  map[string]uint64
	taken map[string]Answer
}

func newTagBucketTrial() *tagBucketTrial {
	return &tagBucketTrial{
		at:   At{Now: 1_795_000_000_000_000, Identity: "1", Remembers: math.MaxInt64},
		seqs: map[string]uint64{}, taken: map[string]Answer{},
	}
}

// seconds lets time pass, of which a processor says every half second that it is there.
func (t *tagBucketTrial) seconds(s float64) {
	for ; s > 0; s -= 0.5 {
		t.at.Now += int64(min(s, 0.5) * 1e6)
		t.take("clock", t.request("clock", nil))
	}
}

// request is the next one of a processor.
func (t *tagBucketTrial) request(id string, draws []Draw) Request {
	t.seqs[id]++
	last := t.taken[id]
	req := Request{
		Pool: "p", ID: id, Incarnation: "1", Seq: t.seqs[id], Nonce: t.seqs[id], Lease: DefaultLease,
		LastSeq: last.Seq, LastNonce: last.Nonce, LastTime: last.Time, Revision: last.Revision, Draws: draws,
	}
	for seq := last.Seq + 1; seq < req.Seq; seq++ {
		req.Unanswered = append(req.Unanswered, Ticket{seq, seq})
	}
	return req
}

// send sends a request of which the answer is lost, take one of which it arrives.
func (t *tagBucketTrial) send(req Request) Answer {
	ans, _ := t.rec.Sync(&req, t.at)
	return ans
}

func (t *tagBucketTrial) take(id string, req Request) Answer {
	ans := t.send(req)
	if ans.Status == Granted {
		t.taken[id] = ans
	}
	return ans
}

// draw draws and takes the answer.
func (t *tagBucketTrial) draw(id string, d Draw) Drawn {
	ans := t.take(id, t.request(id, []Draw{d}))
	if len(ans.Draws) != 1 {
		return Drawn{Lack: 99}
	}
	return ans.Draws[0]
}

// asks is a draw of n tokens.
func asks(n int64) Draw {
	return Draw{Key: 7, Version: 5, Total: 1000, Per: time.Second, Burst: 1_000_000, Ask: n}
}

// spends is a draw of n tokens of a budget of 1000, and gives some back.
func spends(n, back int64) Draw {
	return Draw{Key: 8, Version: 5, Ask: n, Back: back, Budgets: []BudgetDraw{{Amount: 1000, End: maxWindowEnd}}}
}

// tagBucketSchedules each need a rule of tag buckets. They return what went wrong, or nothing.
var tagBucketSchedules = []struct {
	rule string // see package mutants
	name string
	play func(t *tagBucketTrial) string
}{
	{"tagbucket-hold", "a wiped store gives nothing while what it gave is good", func(t *tagBucketTrial) string {
		t.draw("a", asks(1000))
		t.rec, t.at.Remembers = Record{}, 0
		return wrongTokens("just after", t.draw("b", asks(1000)), 0)
	}},
	{"tagbucket-hold-short", "nor does it a little later", func(t *tagBucketTrial) string {
		t.draw("a", asks(1000))
		t.at.Identity = "2"
		t.draw("clock", asks(0))
		t.seconds(2)
		return wrongTokens("2 s later, which may be 2.3 s", t.draw("b", asks(1000)), 0)
	}},
	{"tagbucket-hold-short", "and for longer when it knows nothing of the pool", func(t *tagBucketTrial) string {
		t.draw("a", asks(1000))
		t.rec, t.at.Remembers = Record{}, 0
		t.draw("clock", asks(0))
		t.seconds(5.5)
		return wrongTokens("5.5 s later", t.draw("b", asks(1000)), 0)
	}},
	{"tagbucket-back", "what is given back by a request that is lost and sent again counts once", func(t *tagBucketTrial) string {
		t.draw("a", spends(1000, 0))
		t.send(t.request("a", []Draw{spends(0, 300)}))
		t.send(t.request("a", []Draw{spends(0, 300)}))
		return wrongTokens("to another", t.draw("b", spends(1000, 0)), 300)
	}},
	{"tagbucket-back-after-wipe", "what was drawn before a freeze is not given back after it", func(t *tagBucketTrial) string {
		t.draw("a", spends(900, 0))
		t.at.Identity = "2"
		t.draw("clock", asks(0))
		t.seconds(2.5) // the hold ends after 2.38 s
		return wrongTokens("after the hold", t.draw("a", spends(1000, 500)), 100)
	}},
	{"tagbucket-late", "a late request gives nothing back", func(t *tagBucketTrial) string {
		t.draw("a", spends(1000, 0))
		back := t.request("a", []Draw{spends(0, 300)})
		t.take("a", back)
		t.take("a", t.request("a", nil))
		t.send(back)
		return wrongTokens("to another", t.draw("b", spends(1000, 0)), 300)
	}},
	{"tagbucket-late", "a repeated request gives nothing back", func(t *tagBucketTrial) string {
		t.draw("a", spends(1000, 0))
		back := t.request("a", []Draw{spends(0, 300)})
		t.take("a", back)
		t.send(back)
		return wrongTokens("to another", t.draw("b", spends(1000, 0)), 300)
	}},
	{"tagbucket-version", "a total that was lowered holds for all", func(t *tagBucketTrial) string {
		lowered := asks(1000)
		lowered.Version, lowered.Total = 6, 10
		t.draw("a", lowered)
		t.seconds(1)
		return wrongTokens("by the older quotas", t.draw("b", asks(1000)), 0)
	}},
	{"tagbucket-seen-sum", "what two have seen spent counts once", func(t *tagBucketTrial) string {
		d := asks(0)
		d.Budgets = []BudgetDraw{{Amount: 100, Start: t.at.Now, End: t.at.Now + 3_600_000_000, Seen: 40}}
		t.draw("clock", asks(0))
		t.at.Identity = "2"
		t.draw("clock", asks(0))
		t.draw("a", d)
		if got := t.draw("b", d); got.Spent[0] != 40 {
			return fmt.Sprintf("%d are spent, want 40", got.Spent[0])
		}
		return ""
	}},
	{"tagbucket-dropped", "a name whose tag bucket was dropped early has its burst once", func(t *tagBucketTrial) string {
		d := asks(2_000_000)
		d.Key, d.Pattern = nameKey(0), true
		t.draw("a", d)
		t.names(1)
		return wrongTokens("again", t.draw("a", d), 0)
	}},
	{"tagbucket-dropped", "and what it has spent of a budget is spent", func(t *tagBucketTrial) string {
		d := Draw{Key: nameKey(0), Pattern: true, Ask: 60}
		d.Budgets = []BudgetDraw{{Amount: 100, Start: t.at.Now, End: t.at.Now + 3_600_000_000}}
		t.draw("a", d)
		t.names(1)
		return wrongTokens("again", t.draw("a", d), 40)
	}},
}

// names draws for so many names from one on that all tag buckets of names that there were are dropped.
func (t *tagBucketTrial) names(from int) {
	for i := 0; i <= wire.MaxNames; i += wire.MaxDraws {
		var draws []Draw
		for k := range wire.MaxDraws {
			draws = append(draws, Draw{Key: nameKey(from + i + k), Version: 5, Pattern: true, Total: 1, Per: time.Hour, Burst: 9, Ask: 1})
		}
		t.take("names", t.request("names", draws))
	}
}

func nameKey(i int) uint64 { return tagname.Key(fmt.Sprint("name-", i)) }

func wrongTokens(when string, got Drawn, want int64) string {
	if got.Tokens == want {
		return ""
	}
	return fmt.Sprintf("%s %d tokens are given, want %d: %+v", when, got.Tokens, want, got)
}

// TestTagBucketSchedules plays them with all rules; see TestEveryTagBucketScheduleNeedsItsRule.
func TestTagBucketSchedules(t *testing.T) {
	for _, s := range tagBucketSchedules {
		t.Run(s.name, func(t *testing.T) { require.Empty(t, s.play(newTagBucketTrial())) })
	}
}

// TestHoldOfTagBuckets: it ends to the microsecond, at twice the interval and 19 % more after the freeze, by the number of
// processors, and as late as can be when the store knows nothing of the pool.
func TestHoldOfTagBuckets(t *testing.T) {
	for name, c := range map[string]struct {
		rows int
		wipe bool
		want time.Duration
	}{
		"few processors":    {rows: 3, want: 2380 * time.Millisecond},
		"a hundred":         {rows: 100, want: 4760 * time.Millisecond},
		"more":              {rows: 200, want: 5950 * time.Millisecond},
		"nothing on record": {rows: 3, wipe: true, want: 5950 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTagBucketTrial()
			for i := range c.rows {
				s.take(fmt.Sprint(i), s.request(fmt.Sprint(i), nil))
			}
			if c.wipe {
				s.rec, s.at.Remembers = Record{}, 0
			} else {
				s.at.Identity = "2"
			}
			requireHeld(t, c.want, s.draw("0", asks(1)))
			s.rec.Clock += c.want.Microseconds() - 1
			requireHeld(t, time.Microsecond, s.draw("0", asks(1)))
			s.at.Now++
			lead := wire.Interval(DefaultLease, len(s.rec.Rows)).Milliseconds()
			require.Equal(t, lead, s.draw("0", asks(100_000)).Tokens, "as if it were new")
		})
	}
}

func requireHeld(t *testing.T, again time.Duration, got Drawn) {
	t.Helper()
	require.Zero(t, got.Tokens)
	require.Equal(t, LackFrozen, got.Lack)
	require.Equal(t, again, got.Again)
}

// TestHoldOfTagBucketsOnADeferredStore: there the time of the freeze is known one step later.
func TestHoldOfTagBucketsOnADeferredStore(t *testing.T) {
	s := newTagBucketTrial()
	s.at.Deferred = true
	s.draw("a", asks(1000))
	s.at.Now += 1_000_000
	s.draw("a", asks(1000))
	s.at.Identity = "2"
	s.at.Now += 1_000_000
	require.Equal(t, LackFrozen, s.draw("a", asks(1)).Lack, "not known since when")
	s.at.Now += 2_000_000 // that was the time of the freeze
	require.Equal(t, LackFrozen, s.draw("a", asks(1)).Lack)
	s.at.Now += 2_379_999
	require.Equal(t, LackFrozen, s.draw("a", asks(1)).Lack)
	s.at.Now++
	require.EqualValues(t, 1, s.draw("a", asks(1)).Tokens)
}

// TestDeferredTagBucketsGiveTheTotal: a clock that is one step old makes tokens come later, and not fewer.
func TestDeferredTagBucketsGiveTheTotal(t *testing.T) {
	for _, deferred := range []bool{false, true} {
		s := newTagBucketTrial()
		s.at.Deferred = deferred
		given := int64(0)
		for range 100 {
			s.at.Now += 1_000_000
			given += s.draw("a", asks(5000)).Tokens
		}
		require.InDelta(t, 100_000, given, 1000)
	}
}

// TestCostsAreRoundedUp: no number of draws gives more than the total, however small each is.
func TestCostsAreRoundedUp(t *testing.T) {
	for _, total := range []int64{1, 3, 7, 333_333, 999_999_937, wire.MaxTokens} {
		for _, per := range []time.Duration{wire.MinPer, 1_234_567 * time.Microsecond, time.Hour, wire.MaxSpacing} {
			s := newTagBucketTrial()
			d := Draw{Key: 7, Total: total, Per: per, Ask: 1}
			given := int64(0)
			for i := range 300 {
				s.at.Now += int64(i) * 1000 % 7
				d.Ask = int64(1 + i*i*i)
				given += s.draw("a", d).Tokens
			}
			window := time.Duration(s.rec.Clock-1_795_000_000_000_000)*time.Microsecond + wire.Interval(DefaultLease, 1)
			require.LessOrEqual(t, float64(given), float64(total)*float64(window)/float64(per), "%d per %s", total, per)
		}
	}
}

// TestWindowsOfATagBucket: those that have ended are known for a while, for the store's clock may be set back, and there are never
// more than there is room for.
func TestWindowsOfATagBucket(t *testing.T) {
	s := newTagBucketTrial()
	const minute = 60_000_000
	draw := func(start, end int64) Drawn {
		d := Draw{Key: 7, Ask: 10, Budgets: []BudgetDraw{{Amount: 15, Start: start, End: end}}}
		return s.draw("a", d)
	}
	began := s.at.Now
	require.EqualValues(t, 10, draw(began, began+minute).Tokens)
	s.at.Now += minute
	require.EqualValues(t, 10, draw(began+minute, began+2*minute).Tokens)
	s.at.Now -= minute
	require.EqualValues(t, 5, draw(began, began+minute).Tokens, "the clock was set back")
	s.at.Now += 11 * minute
	require.EqualValues(t, 10, draw(s.at.Now-1, s.at.Now+minute).Tokens)
	require.Len(t, s.rec.TagBuckets[0].Spent, 2, "the first is forgotten")
	for i := range int64(10) {
		require.EqualValues(t, 10, draw(s.at.Now-2-i, s.at.Now+minute).Tokens)
	}
	require.Len(t, s.rec.TagBuckets[0].Spent, maxWindows)
	copyOf(t, &s.rec)
}
