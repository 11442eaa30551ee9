package consensus

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A machine that was suspended uses no permit that it had reserved: its monotonic clock
// does not tell that the slot has gone by.
func TestVoidEndsIssuing(t *testing.T) {
	p := NewProcessor(ProcessorConfig{Pool: "pool", ID: "a", OnStoreLoss: Stop}, "1")
	p.Issue(time.Second, true)
	var rec Record
	sync := func(now time.Duration) {
		req := p.Request(now, uint64(now)+1, Whole)
		ans, _ := rec.Sync(&req, At{Now: 1_700_000_000_000_000 + now.Microseconds()})
		require.NoError(t, p.Take(now, ans, "2"))
	}
	sync(0)
	require.True(t, p.Issuing(0))
	p.Void(time.Second)
	require.False(t, p.Issuing(time.Second))
	require.Equal(t, time.Second, p.Next(time.Second, 0), "it asks at once")
	sync(time.Second)
	require.True(t, p.Issuing(time.Second))
}
