package bucket

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A shut bucket has the segment that is in force behind it, and the pause of the last Shut. Shutting it again as it is takes no memory.
func TestShutAgain(t *testing.T) {
	b := made(Config{Max: 1000})
	shut := func(paused int64) {
		b.Shut(paused)
		require.Same(t, b.Law(), b.Current().Behind)
		require.Equal(t, paused, b.Current().Paused)
		require.Zero(t, testing.AllocsPerRun(10, func() { b.Shut(paused) }))
	}
	shut(0)
	shut(5)
	b.Replace(1, int64(time.Hour), limit.Lease{Share: limit.WholeShare})
	shut(5)
	shut(0)
	b.Open(b.Law())
	shut(0)
}
