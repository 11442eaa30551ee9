package consensus_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Who has the quotas of a processor, with defaults or without, comes to the hash that the processor tells.
func TestQuotaHashOf(t *testing.T) {
	q := throttle.Quotas{Tags: map[string]throttle.Quota{"acme": {Reserved: 30}}, Match: []throttle.QuotaPattern{{Tag: "free/*"}}}
	limit := throttle.Limit{Max: 100, Per: time.Minute}
	p := protocol.NewProcessor(protocol.ProcessorConfig{Pool: "p", ID: "a"}, "1")
	full := q.WithDefaults(limit.Per)
	p.Configure(sharing.Terms{Ceiling: hook.Ceiling(limit), Quotas: &full})
	reported := protocol.QuotaHash(driver.RosterRow{Busy: p.Request(0, 1, protocol.Observation{}).Busy})
	require.NotEmpty(t, reported)
	require.Equal(t, reported, protocol.QuotaHashOf(q, limit.Per))
	require.Equal(t, reported, protocol.QuotaHashOf(full, limit.Per))
	require.NotEqual(t, reported, protocol.QuotaHashOf(q, time.Second), "of another period")
	q.Other.Total = 5
	require.NotEqual(t, reported, protocol.QuotaHashOf(q, limit.Per))
}
