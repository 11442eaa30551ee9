package consensus

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// News of a pause may be written by the clock of a store that has begun anew, of which the processor has heard nothing
// yet: the pause counts from when it is heard, whatever the clocks say. Heard once more, it does not last longer.
func TestNewsByAnotherClock(t *testing.T) {
	for name, at := range map[string]int64{"far behind": 1, "far ahead": 1 << 50, "its own": 5_000_000_000, "none": 0} {
		t.Run(name, func(t *testing.T) {
			p := &pausing{}
			heard := moment{now: 10 * time.Second, logical: 5_000_000_000, clamp: time.Second}
			news := &notice{entries: []entry{{at: at, left: 5 * time.Second, reason: "told"}}}
			p.hear(heard, 7, news)
			require.Len(t, p.inForce(heard.now+4*time.Second), 1)
			again := heard
			again.now += 4 * time.Second
			p.hear(again, 7, news)
			require.Empty(t, p.inForce(heard.now+5*time.Second))
		})
	}
}
