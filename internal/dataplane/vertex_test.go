package dataplane_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	sourcesdk "github.com/numaproj/numaflow-go/pkg/sourcer"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/dataplane/sdkserver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A message that the map drops or nacks is settled as such, and with its batch; nothing is read before all of a batch is.
func TestAVertexSettlesWhatItReads(t *testing.T) {
	s := &numbered{n: 100}
	server := sdkserver.Start(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	src, err := dataplane.DialSource(ctx, server.Socket)
	require.NoError(t, err)
	defer src.Abort()
	var seen atomic.Int64
	v := &dataplane.Vertex{
		Cadence: dataplane.Cadence{ReadBatchSize: 10, ReadTimeout: 50 * time.Millisecond}, Source: src,
		Map: func(_ context.Context, m dataplane.Message) ([]dataplane.Result, error) {
			switch seen.Add(1) % 10 {
			case 0:
				return []dataplane.Result{{Nack: true}}, nil
			case 1:
				return []dataplane.Result{{Drop: true}}, nil
			case 2:
				return []dataplane.Result{{Value: m.Value}, {Value: m.Value}}, nil
			}
			return []dataplane.Result{{Value: m.Value}}, nil
		},
	}
	ended := make(chan error, 1)
	go func() { ended <- v.Run(ctx) }()
	require.Eventually(t, func() bool { return src.Stats().Acked+src.Stats().Nacked == 100 }, 10*time.Second, time.Millisecond)
	cancel()
	require.NoError(t, <-ended)
	require.Equal(t, 10, src.Stats().Nacked)
	require.LessOrEqual(t, s.most.Load(), int64(10), "a batch in flight")
}

// numbered is a source of n messages, which notes how many were not settled at most.
type numbered struct {
	n          int
	sent, most atomic.Int64
	settled    atomic.Int64
}

func (s *numbered) Read(_ context.Context, r sourcesdk.ReadRequest, out chan<- sourcesdk.Message) {
	for range r.Count() {
		if s.sent.Load() == int64(s.n) {
			time.Sleep(time.Millisecond)
			return
		}
		id := []byte(strconv.FormatInt(s.sent.Add(1), 10))
		s.most.Store(max(s.most.Load(), s.sent.Load()-s.settled.Load()))
		out <- sourcesdk.NewMessage(id, sourcesdk.NewOffset(id, 0), time.Now())
	}
}

func (s *numbered) Ack(_ context.Context, r sourcesdk.AckRequest) {
	s.settled.Add(int64(len(r.Offsets())))
}

func (s *numbered) Nack(_ context.Context, r sourcesdk.NackRequest) {
	s.settled.Add(int64(len(r.Offsets())))
}
func (s *numbered) Pending(context.Context) int64            { return -1 }
func (s *numbered) ActivePartitions(context.Context) []int32 { return []int32{0} }
func (s *numbered) TotalPartitions(context.Context) *int32   { return nil }

// useOf is which part of a limit of 50 a second the maps of two pods use in a cadence.
func useOf(t *testing.T, c dataplane.Cadence) float64 {
	t.Helper()
	const length = 5 * time.Minute
	store := memstore.New()
	ctx, cancel := context.WithCancel(t.Context()) // a deadline would be told to those who wait
	defer cancel()
	var mapped atomic.Int64
	var pods sync.WaitGroup
	for i := range 2 {
		m, err := consensus.Join(t.Context(), store, "maps", consensus.WithID(fmt.Sprintf("pod-%d", i)))
		require.NoError(t, err)
		l, err := throttle.New(throttle.Limit{Max: 50}, throttle.WithSharer(m), throttle.OnClose(m.Leave))
		require.NoError(t, err)
		defer l.Close() //nolint:revive // two pods, until the end of the test
		v := &dataplane.Vertex{Cadence: c, Map: func(ctx context.Context, m dataplane.Message) ([]dataplane.Result, error) {
			if _, err := l.Acquire(ctx, 1); err != nil {
				return nil, err
			}
			mapped.Add(1)
			return []dataplane.Result{{Value: m.Value}}, nil
		}}
		pods.Go(func() {
			if err := v.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	time.Sleep(30 * time.Second) // virtual: the pool's beginning
	before := mapped.Load()
	time.Sleep(length) // virtual
	use := float64(mapped.Load()-before) / (50 * length.Seconds())
	cancel()
	pods.Wait()
	return use
}

// The cadence is that of the real core: the figures were measured on v1.8.3, and those with
// Streaming on the version after it, with a map of 50/s and two pods. Between two of its batches the real
// core idled two to four tenths of a second more, so that the driver is better by up to 0.07. With a burst of 50
// and batches of 40 it is not the same: 0.81 there, and all of the limit here, since a chunk is full at once.
func TestACadenceCostsWhatItCostsOnTheRealCore(t *testing.T) {
	for name, c := range map[string]struct {
		cadence dataplane.Cadence
		real    float64
	}{
		"batch 40, concurrency 40":  {dataplane.Cadence{ReadBatchSize: 40, Concurrency: 40}, 0.72},
		"batch 40, concurrency 160": {dataplane.Cadence{ReadBatchSize: 40, Concurrency: 160}, 0.72},
		"batch 250":                 {dataplane.Cadence{ReadBatchSize: 250}, 0.93},
		"batch 500":                 {dataplane.Cadence{}, 0.975},
		"read-ahead":                {dataplane.Cadence{ReadBatchSize: 40, Concurrency: 160, ReadAhead: true}, 1},
		"readTimeout 100 ms":        {dataplane.Cadence{ReadBatchSize: 40, ReadTimeout: 100 * time.Millisecond}, 0.999},
		"streaming":                 {dataplane.Cadence{ReadBatchSize: 40, Concurrency: 160, Streaming: true}, 1},
		"pipeline":                  {dataplane.Cadence{ReadBatchSize: 40, Pipeline: true}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				use := useOf(t, c.cadence)
				t.Logf("%.3f, on the real core %.3f", use, c.real)
				require.InDelta(t, c.real, use, 0.08)
			})
		})
	}
}
