package protocol

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// The cost of finding out who was removed is no square of the pool's size: each row is looked for among few others. A row that stands where
// it doesn't belong is found only if that place is looked at.
func TestWhoWasRemovedIsFoundInFewLooks(t *testing.T) {
	const pods = 1000
	was, now := &driver.Answer{}, &driver.Answer{Time: time.Minute.Microseconds()}
	was.Roster, now.Roster = []driver.RosterRow{{ID: "pod-500+"}}, make([]driver.RosterRow, pods)
	for i := range now.Roster {
		now.Roster[i].ID = fmt.Sprintf("pod-%03d", i)
	}
	looks := 0
	for i := range now.Roster {
		id := now.Roster[i].ID
		now.Roster[i].ID = "pod-500+"
		if len(removedBy(was, now)) == 0 {
			looks++
		}
		now.Roster[i].ID = id
	}
	require.Positive(t, looks)
	require.Less(t, looks, 12)
}
