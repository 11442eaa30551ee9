package consensus

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
