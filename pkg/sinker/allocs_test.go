package sinker_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/sinker"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Garbage costs throughput: a server with a small heap collects it once for less than a thousand messages. Lists of IDs and
// permits of its own for each batch make it 46 bytes a message.
func TestAMessageMakesLittleGarbage(t *testing.T) {
	testkit.SkipRace(t, "it makes garbage of its own")
	l, err := throttle.New(throttle.Limit{Max: 1_000_000_000, Burst: 1_000_000_000})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	bare := sinksdk.SinkerFunc(post)
	of := func(s sinksdk.Sinker) float64 {
		return testkit.Allocated(200, func() {
			in := make(chan sinksdk.Datum, size)
			for range size {
				in <- datum{"1"}
			}
			close(in)
			s.Sink(t.Context(), in)
		}) / size
	}
	without := of(bare)
	require.Less(t, of(sinker.Wrap(bare, l))-without, 20.0)
}
