package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// Somebody whose row is about to go is told "cloned", which takes no time, or "replaced" a moment later, which does and stamps
// whatever the step before has left without a time. The reference has to know the time before and after.
func TestAStepThatMayTakeTimeIsFramed(t *testing.T) {
	const clock, lease = 10_000_000, 200 * time.Millisecond
	removal, clamp := driver.Removal(lease).Microseconds(), driver.Clamp(lease).Microseconds()
	req := driver.Request{
		Pool: "pool", ID: "a", Incarnation: "1", Seq: 4, LastSeq: 2, LastTime: clock - 2*removal, Revision: 4, Lease: lease,
	}
	for left, want := range map[int64]bool{1: true, clamp - 1: true, clamp + 1000: false, removal: false} {
		r := newReference(&Harness{Deferred: true})
		r.rec = driver.Record{
			Clock: clock, Wall: clock, Revision: 5, Lease: lease, Store: r.at.Identity,
			Rows: []driver.Row{
				{RowKey: driver.RowKey{ID: "a", Incarnation: "1"}, State: driver.RowCloned, Seq: 3, LastSeen: clock - removal + left},
				{RowKey: driver.RowKey{ID: "a", Incarnation: "2"}, Seq: 1, LastSeen: clock},
			},
		}
		require.Equal(t, want, r.timeless(req), "%d us are left", left)
	}
}
