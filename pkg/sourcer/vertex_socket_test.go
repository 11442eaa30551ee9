package sourcer_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	sourcesdk "github.com/numaproj/numaflow-go/pkg/sourcer"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/dataplane/sdkserver"
	"github.com/numaproj-contrib/numathrottle/pkg/sourcer"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// endless is a source that never runs dry.
type endless struct {
	source
	n atomic.Int64
}

func (e *endless) Read(_ context.Context, r sourcesdk.ReadRequest, out chan<- sourcesdk.Message) {
	for range r.Count() {
		out <- message(strconv.FormatInt(e.n.Add(1), 10))
	}
}

func (*endless) Ack(context.Context, sourcesdk.AckRequest)   {}
func (*endless) Nack(context.Context, sourcesdk.NackRequest) {}

// Through the server of numaflow-go and in the rhythm of a MonoVertex, in which a bucket of the
// default burst would let a tenth through.
func TestASourceDeliversItsLimitInAMonoVertex(t *testing.T) {
	l, err := throttle.New(throttle.Limit{Max: 100})
	require.NoError(t, err)
	defer l.Close()
	e := &endless{}
	server := sdkserver.Start(t, sourcer.Wrap(e, l))
	v := &dataplane.Vertex{Cadence: dataplane.Cadence{ReadBatchSize: 200}, Source: dialSource(t, server.Socket)}
	const length = 5 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	require.NoError(t, v.Run(ctx))
	require.GreaterOrEqual(t, e.n.Load(), int64(0.7*100*length.Seconds()))
	require.LessOrEqual(t, e.n.Load(), int64(100*(length+time.Second).Seconds())+10+1+200)
}
