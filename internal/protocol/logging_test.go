package protocol

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// said feeds a logbook one situation every interval and returns what it logs, a line each, with the second in front.
func said(b *Logbook, every time.Duration, situations ...Situation) []string {
	began := time.Unix(1000, 0)
	var lines []string
	for i := range situations {
		for _, l := range b.Observe(began.Add(time.Duration(i)*every), &situations[i]) {
			text := fmt.Sprint(time.Duration(i)*every, " ", l.Level, " ", l.Message)
			for k := 0; k < len(l.Args); k += 2 {
				if l.Args[k] == "effect" || l.Args[k] == "because" {
					text += fmt.Sprint(": ", l.Args[k+1])
				}
			}
			lines = append(lines, text)
		}
	}
	return lines
}

func repeat(n int, s Situation) []Situation {
	all := make([]Situation, n)
	for i := range all {
		all[i] = s
	}
	return all
}

// The targets of tags with a quota by name are logged with what they come from, at most every five seconds, and never so many that a
// log is nothing else.
func TestTargetsOfTagsAreLogged(t *testing.T) {
	var b Logbook
	now := time.Unix(1000, 0)
	acme := TagView{
		Tag: "acme", Named: true, Demand: 3, Used: 2, Asked: 30, Reserved: 20, Total: 40, Taken: 35, Limiting: 4, Rate: 3.5, Weight: 7, Class: "batch",
		Target: 25, By: "class", InHand: 6, Spent: 8, Budget: 9, Lacks: "quota",
	}
	views := []TagView{{Tag: "", Named: true, Demand: 1}, acme, {Tag: "free/x", Demand: 5}, {Tag: "idle", Named: true, Target: 9}}
	lines := b.TagTargets(now, func() []TagView { return views })
	require.Len(t, lines, 2, "neither what goes by a pattern nor what is idle")
	require.Equal(t, LogLine{slog.LevelDebug, "the target of a tag", []any{
		"tag", "acme", "demand", 30.0, "demandHere", 3.0, "usedHere", 2.0, "reserved", 20.0, "total", 40.0, "limiting", 35.0, "limitingHere", 4.0, "weight", 7,
		"class", limit.Class("batch"), "target", 25.0, "by", "class", "rateHere", 3.5, "inHand", int64(6), "spent", int64(8), "budget", int64(9),
		"lacks", limit.ReasonQuota,
	}}, lines[1])
	require.Equal(t, "other", lines[0].Args[1])
	for range 4 {
		now = now.Add(time.Second)
		require.Empty(t, b.TagTargets(now, func() []TagView { return views }))
	}
	now = now.Add(time.Second)
	require.Len(t, b.TagTargets(now, func() []TagView { return views }), 2)

	many := make([]TagView, 3*mostTagTargets)
	for i := range many {
		many[i] = acme
	}
	require.Len(t, b.TagTargets(now.Add(time.Minute), func() []TagView { return many }), mostTagTargets)
}

func TestALossOfTheStoreIsSaidWhenItBeginsAndEnds(t *testing.T) {
	away := errors.New("WRONGPASS invalid username-password pair")
	holding := Situation{state: StateHolding, share: driver.Whole / 4}
	failing := Situation{err: away, state: StateHolding, share: driver.Whole / 4, left: 8 * time.Second}
	lost := Situation{err: away, state: StateLost, share: driver.Whole / 4, degraded: true}
	var b Logbook
	all := append([]Situation{holding}, repeat(3, failing)...)
	all = append(append(all, repeat(100, lost)...), holding, holding)
	require.Equal(t, []string{
		"2s WARN syncs with the pool's store fail: the share of 25% is good for 8s; a share of the pool's size is used after that",
		"4s WARN syncs with the pool's store fail: goes on with 25% of the limit, at most 1h without the store",
		"1m4s WARN syncs with the pool's store fail: goes on with 25% of the limit, at most 1h without the store",
		"1m44s INFO the pool's store answers again",
	}, said(&b, time.Second, all...))
}

// A document that stops this processor is an error, once; a loss of the store between does not say it again.
func TestADocumentThatStopsAProcessorIsAnError(t *testing.T) {
	fine, blind := Situation{state: StateHolding, share: driver.Whole}, Situation{state: StateHolding, share: driver.Whole, stopped: errors.New("no limit")}
	gone := Situation{state: StateLost, stopped: errors.New("no limit")}
	away := Situation{err: errors.New("away"), state: StateHolding, share: driver.Whole, left: time.Second}
	var b Logbook
	lines := said(&b, time.Second, fine, blind, blind, gone, away, gone, fine, fine, gone)
	const stops = " ERROR this release cannot read what the pool says: the share is not renewed, and this process draws nothing once it has ended; " +
		"a newer release can; numathrottle why names the command that ends it"
	require.Equal(t, []string{"1s" + stops, "6s INFO what the pool says can be read again", "8s" + stops}, lines)
}

func TestWhatALossMeansIsSaidForEachPolicy(t *testing.T) {
	away := errors.New("away")
	for _, tc := range []struct {
		name string
		s    Situation
		want string
	}{
		{"never answered", Situation{err: away, state: StateJoining}, "nothing is granted until the store answers for the first time"},
		{"stop", Situation{err: away, state: StateLost, onLoss: Stop}, "nothing is granted until the store answers"},
		{
			"degrade",
			Situation{err: away, state: StateLost, degraded: true, share: driver.Whole},
			"goes on with 100% of the limit, at most 1h without the store",
		},
	} {
		var b Logbook
		lines := said(&b, time.Second, tc.s)
		require.Len(t, lines, 1, tc.name)
		require.True(t, strings.HasSuffix(lines[0], ": "+tc.want), lines[0])
	}
	var b Logbook
	stop := Situation{err: away, state: StateHolding, share: driver.Whole, left: time.Second, onLoss: Stop}
	require.Equal(t, []string{"1s WARN syncs with the pool's store fail: what was granted is good for 1s; nothing is granted after that"},
		said(&b, time.Second, stop, stop, stop))
}

func TestContentionIsNotSaidWhileTheShareIsGood(t *testing.T) {
	behind := fmt.Errorf("natsstore: no success in 8 tries: %w", driver.ErrContention)
	good := Situation{err: behind, state: StateHolding, share: driver.Whole / 250, left: 5 * time.Second}
	var b Logbook
	require.Empty(t, said(&b, 250*time.Millisecond, repeat(1000, good)...))
	gone := Situation{err: behind, state: StateLost, onLoss: Stop}
	require.Equal(t, []string{
		"0s WARN syncs with the pool's store come too late: more pods write than it can serve: nothing is granted until the store answers",
	}, said(&b, 250*time.Millisecond, repeat(100, gone)...))
}

// The first sync may be too slow, and the next one be refused for a reason that somebody has to mend.
func TestAReasonIsSaidAsSoonAsItIsKnown(t *testing.T) {
	situationOf := func(s State, err error) Situation {
		return Situation{err: err, state: s, left: 8 * time.Second, onLoss: Stop}
	}
	slow, refused := fmt.Errorf("redisstore: %w", context.DeadlineExceeded), errors.New("NOPERM")
	for state, first := range map[State]string{
		StateJoining: "0s WARN syncs with the pool's store fail: nothing is granted until the store answers for the first time",
		StateHolding: "1s WARN syncs with the pool's store fail: what was granted is good for 8s; nothing is granted after that",
	} {
		var all []Situation
		for range 10 {
			all = append(append(all, repeat(2, situationOf(state, slow))...), situationOf(state, refused))
		}
		var b Logbook
		require.Equal(t, []string{first, "2s" + first[2:]}, said(&b, time.Second, all...), "and not each time")
		b = Logbook{}
		require.Len(t, said(&b, time.Second, append(repeat(3, situationOf(state, refused)), repeat(3, situationOf(state, slow))...)...), 1, "less is no news")
	}
}

func TestOneFailedSyncIsNotSaid(t *testing.T) {
	var b Logbook
	failed := Situation{err: errors.New("timeout"), state: StateHolding, share: driver.Whole}
	fine := Situation{state: StateHolding, share: driver.Whole}
	require.Empty(t, said(&b, time.Second, fine, failed, fine, failed, fine, failed, fine))
}

func TestAFreezeIsSaidWhenItBeginsAndEnds(t *testing.T) {
	frozen := func(left time.Duration, by driver.FreezeCause) Situation {
		return Situation{state: StateHolding, frozen: left, frozenBy: by}
	}
	var b Logbook
	require.Equal(t, []string{
		"0s INFO the pool is new to the store: nothing is granted yet: " + driver.FreezeNewRecord.Explain(),
		"2s INFO the pool is no longer frozen",
		"3s WARN the pool is frozen: no share grows: the store was started again or failed over, and may have lost what it promised",
		"5s INFO the pool is no longer frozen",
	}, said(&b, time.Second,
		frozen(15*time.Second, driver.FreezeNewRecord), frozen(14*time.Second, driver.FreezeNewRecord), Situation{state: StateHolding, share: driver.Whole},
		frozen(15*time.Second, driver.FreezeIdentity), frozen(14*time.Second, driver.FreezeIdentity), Situation{state: StateHolding, share: driver.Whole}))
	held := frozen(15*time.Second, driver.FreezeNewRecord)
	held.share = driver.Whole
	require.Equal(t, []string{
		"1s WARN the pool is frozen: no share grows: " + driver.FreezeNewRecord.Explain(),
	}, said(&Logbook{}, time.Second, Situation{state: StateHolding, share: driver.Whole}, held), "a store that was emptied, to who was in the pool")
	for _, cause := range []driver.FreezeCause{driver.FreezeNewRecord, driver.FreezeIdentity, driver.FreezeRollback, driver.FreezeLostRow} {
		require.NotEqual(t, string(cause), cause.Explain(), "every cause has words")
	}
}

func TestAReplacedProcessorSaysSoOnce(t *testing.T) {
	replaced := Situation{state: StateReplaced}
	var b Logbook
	require.Len(t, said(&b, time.Second, replaced, replaced, replaced), 1)
	require.Empty(t, said(&b, time.Second, Situation{err: errors.New("away"), state: StateReplaced}))
}

// A store that answers late, or not at all, is logged once when it begins and once when intervals are as usual again. One slow request
// isn't.
func TestASlowStoreIsLogged(t *testing.T) {
	const slow = "WARN the pool's store is slow, or was away: it is asked less often, and shares follow the load later"
	at := func(timeouts int, answer time.Duration, n int) []Situation {
		p := content(t, 0)
		var all []Situation
		now := 2 * time.Second
		for range timeouts {
			req := p.Request(now, uint64(now), Observation{Demand: driver.Whole})
			p.Failed(now+time.Second, req.Seq)
			now = p.Next(now+time.Second, 1)
		}
		for range n {
			req := p.Request(now, uint64(now), Observation{Demand: driver.Whole})
			require.NoError(t, p.Take(now+answer, driver.Answer{
				Seq: req.Seq, Nonce: req.Nonce, Lease: driver.DefaultLease, Revision: req.Revision + 1, Grant: p.Answer.Grant,
			}, ""))
			all = append(all, p.Situation(now+answer, nil))
			now = p.Next(now+answer, 1)
			answer = max(answer-300*time.Millisecond, 0)
		}
		return all
	}
	require.Empty(t, said(&Logbook{}, time.Second, at(0, 300*time.Millisecond, 10)...))
	require.Empty(t, said(&Logbook{}, time.Second, at(1, 0, 10)...))
	after := said(&Logbook{}, time.Second, at(3, 0, 10)...)
	require.Len(t, after, 2, "that intervals stay long after an outage")
	require.Equal(t, "0s "+slow, after[0])
	require.Equal(t, []string{
		"1s " + slow,
		"3s INFO the pool's store is quick again: it is asked as often as usual",
	}, said(&Logbook{}, time.Second, at(0, 700*time.Millisecond, 10)...))
}

// A store that came too late after it had not answered at all is no news, and an unreadable document of quotas is said once.
func TestNoNewsOfAStore(t *testing.T) {
	slow := Situation{err: context.DeadlineExceeded, state: StateHolding, left: time.Second, onLoss: Stop}
	late := slow
	late.err = driver.ErrContention
	var b Logbook
	require.Len(t, said(&b, time.Second, slow, slow, late, late), 1)
	b = Logbook{}
	strange, fine := Situation{state: StateHolding, quotas: errors.New("strange")}, Situation{state: StateHolding}
	require.Len(t, said(&b, time.Second, strange, strange, strange, fine, strange), 2)
}

// A freeze is no trouble only in a pool that is new to the store and to this processor.
func TestAFreezeOfANewPool(t *testing.T) {
	for _, c := range []struct {
		cause driver.FreezeCause
		first bool
		share driver.Share
		want  slog.Level
	}{
		{driver.FreezeNewRecord, true, 0, slog.LevelInfo},
		{driver.FreezeNewRecord, false, 0, slog.LevelWarn},
		{driver.FreezeNewRecord, true, 1, slog.LevelWarn},
		{"", true, 0, slog.LevelWarn},
	} {
		require.Equal(t, c.want, frozenLine(&Situation{frozenBy: c.cause, share: c.share}, c.first).Level, c)
	}
}
