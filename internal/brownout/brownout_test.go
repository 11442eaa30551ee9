package brownout

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// fall is the run that the documentation shows: a minute as configured, a minute at a
// quarter, two minutes as configured again.
func fall(way Way, seed uint64) Plan {
	return Plan{Way: way, Processors: 20, Limit: 200, Service: Falls(200, 50, 60, 120), Seconds: 240, Seed: seed}
}

// What is promised of the pool's law: 0.95 of what the service can do is used, less than one
// call in a hundred is refused, and 80 % is used again within ten seconds.
func TestFallAndReturn(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := Run(fall(Shared, seed))
			require.GreaterOrEqual(t, r.Used(), 0.95)
			require.Less(t, r.RefusedPart(), 0.01)
			require.LessOrEqual(t, r.Back(120, 0.8), 10)
		})
	}
}
