package protocol

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A pod is silent when it should have synced by now even if it lost a sync: not before, and not much later.
func TestFromWhenAPodIsSilent(t *testing.T) {
	const lease = 10 * time.Second
	after := wire.Clamp(lease) + SyncTimeout(lease)
	require.Equal(t, 3500*time.Millisecond, after)
	for silent, want := range map[time.Duration]bool{0: false, 2600 * time.Millisecond: false, after: false, after + 2*time.Microsecond: true, lease: true} {
		row := driver.RosterRow{Silent: silent, Left: lease*3/2 - silent}
		require.Equal(t, want, overdue(&row, 2), silent)
		require.Equal(t, silent > lease/2+SyncTimeout(lease), overdue(&row, crowd), "%v: a crowd syncs less often", silent)
	}
}
