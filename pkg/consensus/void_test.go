package consensus

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/limit"
	"github.com/numaproj-contrib/numathrottle/internal/quota"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A machine that was suspended uses no permit that it had reserved: its monotonic clock
// does not tell that the slot has gone by.
func TestVoidEndsIssuing(t *testing.T) {
	p := NewProcessor(ProcessorConfig{Pool: "pool", ID: "a", OnStoreLoss: Stop}, "1")
	p.SetSpacing(time.Second, true)
	var rec driver.Record
	sync := func(now time.Duration) {
		req := p.Request(now, uint64(now)+1, Whole)
		ans, _ := rec.Sync(&req, driver.At{Now: 1_700_000_000_000_000 + now.Microseconds()})
		require.NoError(t, p.Take(now, ans, "2"))
	}
	sync(0)
	require.True(t, p.Issuing(0))
	const at = 500 * time.Millisecond // half an interval
	p.Void(at)
	require.False(t, p.Issuing(at))
	require.LessOrEqual(t, p.Next(at, 0), at, "it asks at once")
	sync(at)
	require.True(t, p.Issuing(at))
}

// What is set aside for a tag is dropped when the store has forgotten it, and nothing is set aside meanwhile.
func TestAReservationThatTheStoreForgotIsDropped(t *testing.T) {
	k := keep(t, one(10))
	want := limit.TagReport{Tag: "a", Waiting: 50, Head: 50}
	require.EqualValues(t, 50, k.asks(10*sec, want).Ask)
	g := k.gives(10*sec, 10*sec, driver.Drawn{Key: quota.Key("a"), Tokens: 50, From: 4 * sec})
	require.Zero(t, g.Lot.Tokens, "not before they are there")
	k.take(11*sec, 11*sec, sec, &driver.Answer{Frozen: 9 * sec, Wall: wallZero})
	require.Zero(t, k.grants(tagBase, 15*sec)[0].Lot.Tokens, "nor ever, once the store has forgotten them")
	k.report(16*sec, sec, false, []limit.TagReport{want})
	require.Empty(t, k.draws(16*sec, sec, 1, true), "the next answer would end it")
	require.EqualValues(t, 50, k.asks(16*sec, want).Ask, "after the freeze")
}
