package redelivery

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

const (
	rate = 20 // messages per second
	wait = time.Second
)

// A setting is how the vertex is set up.
type setting struct {
	name string
	set  func(v *vertex)
}

var (
	kinds = []string{unaryMap, streamMap, batchMap, sink, transform}

	pipeline   = setting{"pipeline", func(*vertex) {}}
	monoVertex = setting{"MonoVertex", func(v *vertex) { v.mono = true }}
	readAhead  = setting{"MonoVertex, read-ahead", func(v *vertex) { v.mono, v.readAhead = true, true }}

	asItIs    = setting{"as it is", func(*vertex) {}}
	shortRead = setting{"readTimeout 100ms", func(v *vertex) { v.readTimeout = 100 * time.Millisecond }}
	among     = setting{"among others", func(v *vertex) { v.beside = true }}
	second    = setting{"burst of a second", func(v *vertex) { v.limit.Burst = rate }}
)

// loads are what is offered: at once, and at nearly the rate of the limit beside a backlog of 15 s.
var loads = []setting{
	{"600 at once", func(v *vertex) { v.messages, v.offered = 600, 600 }},
	{"300 at once, then 18 per second", func(v *vertex) { v.messages, v.offered, v.perSecond = 900, 300, 18 }},
}

func newVertex(kind string, batch int, settings ...setting) (vertex, string) {
	v := vertex{
		kind: kind, batch: batch, concurrency: 4 * batch, readTimeout: time.Second,
		limit: throttle.Limit{Max: rate}, maxWait: wait, pods: 1,
	}
	name := kind
	for _, s := range settings {
		s.set(&v)
		name += ", " + s.name
	}
	return v, name
}

// A limit of 20 per second, and a longest wait of a second: 0.95 of the limit is used, with two deliveries of a message on
// average (up to one in fifty is denied twice), wherever the platform has a message at hand when there is a token for it.
// See TestNackUsesTheLimitOfAPool for several pods.
func TestNackUsesTheLimitWithTwoDeliveries(t *testing.T) {
	testkit.SkipRace(t, "it measures; TestNackUsesTheScarcestOfSeveralLimits runs with it")
	for _, kind := range kinds {
		for _, batch := range []int{40, 500} {
			for _, where := range []setting{pipeline, monoVertex, readAhead} {
				for _, how := range []setting{asItIs, shortRead, second} {
					if how.name == asItIs.name && !atHand(kind, where.name) {
						continue // see TestNackWhereThePlatformHoldsMessagesBack
					}
					for i, load := range loads {
						if i > 0 && (kind == streamMap || kind == transform || testing.Short()) {
							continue // as the map
						}
						v, name := newVertex(kind, batch, where, how, load)
						out := measure(t, v)
						t.Logf("batch %3d, %-80s use %.2f, deliveries %.2f, most %d", batch, name, out.use, out.deliveries, out.most)
						require.GreaterOrEqual(t, out.use, 0.95, "batch %d, %s", batch, name)
						require.LessOrEqual(t, out.deliveries, 2.02, "batch %d, %s", batch, name)
					}
				}
			}
		}
	}
}

// The same goes for a limit that is drawn from together with others: the messages have their turns with the one that denies
// them.
func TestNackUsesTheScarcestOfSeveralLimits(t *testing.T) {
	for _, kind := range []string{unaryMap, streamMap} {
		for _, batch := range []int{40, 500} {
			v, name := newVertex(kind, batch, pipeline, asItIs, among, loads[0])
			out := measure(t, v)
			t.Logf("batch %3d, %-60s use %.2f, deliveries %.2f, most %d", batch, name, out.use, out.deliveries, out.most)
			require.GreaterOrEqual(t, out.use, 0.95, "batch %d, %s", batch, name)
			require.LessOrEqual(t, out.deliveries, 2.02, "batch %d, %s", batch, name)
		}
	}
	for _, kind := range []string{batchMap, sink} {
		v, name := newVertex(kind, 40, pipeline, second, among, loads[0])
		out := measure(t, v)
		t.Logf("batch  40, %-60s use %.2f, deliveries %.2f, most %d", name, out.use, out.deliveries, out.most)
		require.GreaterOrEqual(t, out.use, 0.95, name)
		require.LessOrEqual(t, out.deliveries, 2.02, name)
	}
}

// atHand tells whether the platform hands a message on as soon as it has one, whatever the settings are.
func atHand(kind, where string) bool {
	return where == readAhead.name || where == pipeline.name && kind != batchMap && kind != sink
}

// Where the platform collects a batch for readTimeout, nothing waits for tokens meanwhile, and what the bucket cannot hold
// is lost: no delay of a nack changes that. A shorter readTimeout does, or a burst of as many tokens as it earns.
func TestNackWhereThePlatformHoldsMessagesBack(t *testing.T) {
	for _, c := range []struct {
		kind  string
		where setting
	}{{batchMap, pipeline}, {sink, pipeline}, {unaryMap, monoVertex}, {sink, monoVertex}} {
		v, name := newVertex(c.kind, 500, c.where, asItIs, loads[0])
		out := measure(t, v)
		t.Logf("batch 500, %-60s use %.2f, deliveries %.2f", name, out.use, out.deliveries)
		require.InDelta(t, 0.55, out.use, 0.05, "%s: the page says how much", name)
	}
}
