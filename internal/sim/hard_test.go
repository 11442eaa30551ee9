package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// TestHardWindowFollowsTheOverride shows that one call too many in a second is seen, by the largest limit
// that was in force in it or may still have been.
func TestHardWindowFollowsTheOverride(t *testing.T) {
	removal := slowest(wire.Removal(driver.MaxLease))
	for _, c := range []struct {
		name    string
		after   time.Duration // how long after it was lowered to 10
		allowed int64
	}{
		{"just lowered", time.Millisecond, 20},
		{"a removal time after", removal, 20},
		{"a second and a removal time after", removal + 2*time.Second, 10},
	} {
		for over := range int64(2) {
			p := calmPlan(1)
			p.noted, p.limit = true, throttle.Limit{Max: 20, Burst: 5, Hard: true}
			w := newWorld(1, p, nil)
			w.now = time.Minute
			w.note(10)
			w.now += c.after
			w.use(c.allowed + over)
			require.Equal(t, over == 1, w.violation != nil, "%s, %d calls", c.name, c.allowed+over)
		}
	}
}

// TestOverridesOfHardLimitsAreCapped shows that an override above a hard limit is no more than that to the checks.
func TestOverridesOfHardLimitsAreCapped(t *testing.T) {
	for hard, want := range map[bool]float64{true: 20, false: 40} {
		p := calmPlan(1)
		p.noted, p.limit.Hard = true, hard
		w := newWorld(1, p, nil)
		w.join("a")
		w.run(5 * time.Second)
		_, err := console{w}.put(driver.DocumentReport{Name: limitDocument, Body: []byte(`{"max":40,"per":"1s"}`)},
			protocol.Override{Max: 40, Per: time.Second})
		require.NoError(t, err)
		require.InDelta(t, want, w.recorded(), 0)
		w.noteLimit()
		w.run(10 * time.Second)
		require.Nil(t, w.violation)
		require.InDelta(t, want, w.procs[0].ceiling, 0)
	}
}
