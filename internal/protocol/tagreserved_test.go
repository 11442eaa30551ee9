package protocol

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// reserves lets tag a, which has 10 tokens per second, reserve 40 at 10 s for 14 s.
func reserves(t *testing.T) *bookkeeper {
	t.Helper()
	k := keep(t, one(10))
	k.asks(10*sec, sharing.TagReport{Tag: "a", Waiting: 45, Head: 40})
	g := k.gives(10*sec, 10*sec, driver.Drawn{Key: tagname.Key("a"), Tokens: 40, From: 4 * sec})
	require.Zero(t, g.Batch, "it stays here until it can be used")
	require.Equal(t, tagBase.Add(14*sec), g.Again)
	require.EqualValues(t, 40, g.AgainFor)
	return k
}

// answered takes an empty answer to a request that is made now.
func (k *bookkeeper) answered(now time.Duration, frozen time.Duration) (batches int64) {
	k.report(now, sec, false, []sharing.TagReport{{Tag: "a", Waiting: 45, Head: 40}})
	require.Empty(k.t, k.draws(now, sec, 1, false), "one at a time")
	k.take(now, now, sec, &driver.Answer{Time: now.Microseconds(), Wall: wallZero, Frozen: frozen})
	return k.batches(now)
}

func (k *bookkeeper) batches(now time.Duration) (batches int64) {
	for _, g := range k.grants(tagBase, now) {
		batches += g.Batch.Tokens
	}
	return batches
}

// A reservation is used only by who hears of its store: it may have forgotten it, and give its time to others.
func TestAReservationNeedsAFreshAnswer(t *testing.T) {
	k := reserves(t)
	for now := 11 * sec; now < 14*sec; now += sec {
		require.Zero(t, k.answered(now, 0))
	}
	require.Zero(t, k.batches(14*sec-1))
	require.EqualValues(t, 40, k.batches(14*sec))
	require.Zero(t, k.batches(14*sec+1), "once")

	k = reserves(t)
	require.Zero(t, k.answered(11*sec, 0))
	require.Zero(t, k.batches(14*sec), "the newest answer is three intervals old")
	require.NotZero(t, k.asks(14*sec, sharing.TagReport{Tag: "a", Waiting: 45, Head: 40}).Ask)
}

// It ends no later than the newest answer is good for.
func TestAReservationEndsWithTheNewestAnswer(t *testing.T) {
	k := reserves(t)
	k.answered(13*sec, 0)
	list := k.grants(tagBase, 14*sec)
	require.Len(t, list, 1)
	require.Equal(t, sharing.Batch{Tokens: 40, From: tagBase.Add(14 * sec), Until: tagBase.Add(15 * sec)}, list[0].Batch)
}

// A reservation is over when the store has forgotten something, or a clone may have it as well.
func TestAReservationDoesNotOutliveAFreeze(t *testing.T) {
	k := reserves(t)
	k.answered(11*sec, sec)
	k.report(13*sec, sec, false, nil)
	k.draws(13*sec, sec, 1, false)
	k.take(13*sec, 13*sec, sec, &driver.Answer{Wall: wallZero})
	require.Zero(t, k.batches(14*sec))

	k = reserves(t)
	k.answered(13*sec, 0)
	k.forget()
	require.Zero(t, k.batches(14*sec))

	k = reserves(t)
	k.answered(13*sec, 0)
	k.distrust()
	require.Zero(t, k.batches(14*sec))
}

// Two reservations are used when the store's clock says so, four seconds apart, however the clock of this pod runs: each in its time, but
// for what clocks run apart between two answers. By the clock read when they were made, they would be used eight seconds too early or late.
func TestReservationsGoByTheClockOfTheStore(t *testing.T) {
	for _, rate := range []float64{0.92, 1, 1.08} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			k := keep(t, one(10))
			k.report(0, sec, false, []sharing.TagReport{{Tag: "a"}})
			store := func(local time.Duration) time.Duration { return time.Duration(float64(local) * rate) }
			dues := []time.Duration{100 * sec, 104 * sec}
			var used []sharing.Batch
			for now := sec / 10; now < 130*sec; now += sec / 10 {
				if second := now % sec; second == 0 && (now/sec)%7 != 0 { // some answers are lost
					var drawn []driver.Drawn
					if n := int(now/sec) - 1; n < len(dues) {
						k.carried = []tagDraw{{Draw: driver.Draw{Key: tagname.Key("a"), Ask: 40, Ahead: wire.MaxReach}, tag: "a", covers: 40}}
						drawn = []driver.Drawn{{Key: tagname.Key("a"), Tokens: 40, From: dues[n] - store(now)}}
					}
					k.take(now, now, sec, &driver.Answer{Time: store(now).Microseconds(), Wall: wallZero, Draws: drawn})
				}
				for _, g := range k.grants(tagBase, now) {
					if g.Batch.Tokens > 0 {
						used = append(used, g.Batch)
					}
				}
			}
			require.Len(t, used, len(dues))
			for i, l := range used {
				from, until := store(l.From.Sub(tagBase)), store(l.Until.Sub(tagBase))
				require.InDelta(t, 0, (from - dues[i]).Seconds(), 0.2)
				require.Less(t, until-dues[i], 2*sec+sec/4)
			}
		})
	}
}

// Without the store a large draw gets its tokens when this processor's part has earned all of them.
func TestALargeDrawWithoutTheStoreAddsUp(t *testing.T) {
	k := keep(t, one(10))
	got := int64(0)
	for i := range 41 {
		now := 10*sec + time.Duration(i)*sec
		k.report(now, sec, true, []sharing.TagReport{{Tag: "a", Used: got, Waiting: 500, Head: 50}})
		k.grantLocally(now, sec, time.Hour, 4, 0.5, func(*tagAccount) bool { return true })
		n := k.batches(now)
		require.True(t, n == 0 || n >= 50, n)
		got += n
	}
	require.InDelta(t, 200, got, 50, "5 each second, 40 seconds")
}
