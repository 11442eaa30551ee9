package protocol

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A machine that was suspended uses no permit that it had reserved: its monotonic clock
// does not tell that the slot has gone by.
func TestVoidEndsIssuing(t *testing.T) {
	p := NewProcessor(ProcessorConfig{Pool: "pool", ID: "a", OnStoreLoss: Stop}, "1")
	p.Configure(sharing.Terms{Spacing: time.Second, Strict: true})
	var rec driver.Record
	sync := func(now time.Duration) {
		req := p.Request(now, uint64(now)+1, Observation{Demand: driver.Whole})
		ans, _ := rec.Sync(&req, driver.At{Now: 1_700_000_000_000_000 + now.Microseconds()})
		require.NoError(t, p.Take(now, ans, "2"))
	}
	sync(0)
	require.True(t, p.isIssuing(0))
	const at = 500 * time.Millisecond // half an interval
	p.Void(at)
	require.False(t, p.isIssuing(at))
	require.LessOrEqual(t, p.Next(at, 0), at, "it asks at once")
	sync(at)
	require.True(t, p.isIssuing(at))
}

// What is set aside for a tag is dropped when the store has forgotten it, once: what is set aside later, in the same freeze, is not.
func TestAReservationThatTheStoreForgotIsDropped(t *testing.T) {
	k := keep(t, one(10))
	want := sharing.TagReport{Tag: "a", Waiting: 50, Head: 50}
	require.EqualValues(t, 50, k.asks(10*sec, want).Ask)
	g := k.gives(10*sec, 10*sec, driver.Drawn{Key: tagname.Key("a"), Tokens: 50, From: 4 * sec})
	require.Zero(t, g.Batch.Tokens, "not before they are there")
	k.take(11*sec, 11*sec, sec, &driver.Answer{Frozen: 9 * sec, Wall: wallZero})
	require.Zero(t, k.grants(tagBase, 15*sec)[0].Batch.Tokens, "nor ever, once the store has forgotten them")
	frozen := func(now, left time.Duration, d ...driver.Drawn) sharing.Batch {
		k.take(now, now, sec, &driver.Answer{Time: now.Microseconds(), Frozen: left, Wall: wallZero, Draws: d})
		return k.grants(tagBase, now+3*sec/2)[0].Batch
	}
	k.report(16*sec, sec, false, []sharing.TagReport{want})
	draws := k.draws(16*sec, sec, 1, true)
	require.Len(t, draws, 1, "tag buckets are held for a part of the freeze alone")
	require.Zero(t, frozen(16*sec, 4*sec, driver.Drawn{Key: draws[0].Key, Tokens: 50, From: 2 * sec}))
	require.EqualValues(t, 50, frozen(17*sec, 3*sec).Tokens)
	require.EqualValues(t, 50, k.asks(19*sec, want).Ask)
	k.gives(19*sec, 19*sec, driver.Drawn{Key: draws[0].Key, Tokens: 50, From: 2 * sec})
	require.Zero(t, frozen(20*sec, 15*sec), "another freeze")
}
