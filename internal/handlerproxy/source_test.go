package handlerproxy_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	sourcesdk "github.com/numaproj/numaflow-go/pkg/sourcer"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/handlerproxy"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// A counter is a source of numbered messages, without an end.
type counter struct {
	mu     sync.Mutex
	next   int
	asked  []uint64
	acked  []string
	nacked []string
}

func (s *counter) Read(_ context.Context, r sourcesdk.ReadRequest, out chan<- sourcesdk.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.Count())
	for range r.Count() {
		v := []byte(strconv.Itoa(s.next))
		out <- sourcesdk.NewMessage(v, sourcesdk.NewOffset(v, 3), time.Unix(100, 0)).WithKeys([]string{"k"}).WithHeaders(map[string]string{"tokens": "2"})
		s.next++
	}
}

func (s *counter) Ack(_ context.Context, r sourcesdk.AckRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range r.Offsets() {
		s.acked = append(s.acked, string(o.Value()))
	}
}

func (s *counter) Nack(_ context.Context, r sourcesdk.NackRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range r.Offsets() {
		s.nacked = append(s.nacked, string(o.Offset.Value()))
	}
}

func (*counter) Pending(context.Context) int64            { return 1_000_000 }
func (*counter) ActivePartitions(context.Context) []int32 { return []int32{3} }
func (*counter) TotalPartitions(context.Context) *int32   { n := int32(5); return &n }

func TestSource(t *testing.T) {
	src := &counter{}
	th, err := throttle.New(throttle.Limit{Max: 10, Burst: 5})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, th.Close()) })
	c := configured(t, handlerproxy.Source, th)
	s, err := dataplane.DialSource(within(t), serve(t, c, src).waitSocket(t))
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	began := time.Now()
	var got []dataplane.SourceMessage
	for len(got) < 15 {
		msgs, err := s.Read(within(t), 100, 300*time.Millisecond)
		require.NoError(t, err)
		got = append(got, msgs...)
	}
	require.LessOrEqual(t, float64(len(got)), 10*time.Since(began).Seconds()+5+1, "never more than the limit has tokens for")
	for i, m := range got {
		require.Equal(t, strconv.Itoa(i), string(m.Value))
		require.Equal(t, []string{"k"}, m.Keys)
		require.Equal(t, int32(3), m.Offset.Partition)
	}
	require.NoError(t, s.Ack(within(t), []dataplane.Offset{got[0].Offset, got[1].Offset}))
	require.NoError(t, s.Nack(within(t), []dataplane.Nacked{{Offset: got[2].Offset}}))
	active, total, err := s.Partitions(within(t))
	require.NoError(t, err)
	require.Equal(t, []int32{3}, active)
	require.Equal(t, 5, total)
	pending, err := s.Pending(within(t))
	require.NoError(t, err)
	require.Equal(t, int64(200), pending, "what the limit lets through in 20 s")
	src.mu.Lock()
	defer src.mu.Unlock()
	require.Equal(t, []string{"0", "1"}, src.acked)
	require.Equal(t, []string{"2"}, src.nacked)
}

func TestASourceWithoutTokensReadsNothing(t *testing.T) {
	src := &counter{}
	c := configured(t, handlerproxy.Source, throttletest.New(throttletest.Block()))
	s, err := dataplane.DialSource(within(t), serve(t, c, src).waitSocket(t))
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	began := time.Now()
	msgs, err := s.Read(within(t), 100, 200*time.Millisecond)
	require.NoError(t, err)
	require.Empty(t, msgs)
	require.GreaterOrEqual(t, time.Since(began), 150*time.Millisecond, "an empty read lasts its timeout")
	src.mu.Lock()
	defer src.mu.Unlock()
	require.Empty(t, src.asked)
}

func TestTheCostOfAReadIsSettled(t *testing.T) {
	l := grantAll()
	c := configured(t, handlerproxy.Source, l)
	c.Cost = "header tokens"
	s, err := dataplane.DialSource(within(t), serve(t, c, &counter{}).waitSocket(t))
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	read := 0
	for range 5 {
		msgs, err := s.Read(within(t), 10, 200*time.Millisecond)
		require.NoError(t, err)
		read += len(msgs)
	}
	require.Positive(t, read)
	require.Equal(t, 2*read, l.Used())
}
