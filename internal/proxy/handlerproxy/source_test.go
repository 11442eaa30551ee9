package handlerproxy_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/proxy/handlerproxy"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

func TestSource(t *testing.T) {
	src := dataplane.NewQueue(1000)
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
	require.Equal(t, []int32{3, 4}, active)
	require.Equal(t, 7, total)
	pending, err := s.Pending(within(t))
	require.NoError(t, err)
	require.Equal(t, int64(200), pending, "what the limit lets through in 20 s")
	require.Equal(t, map[string]int{"0": 1, "1": 1}, src.Acked)
	require.Equal(t, "2", string(src.Refused[0].Offset.Value()))
}

func TestASourceWithoutTokensReadsNothing(t *testing.T) {
	src := dataplane.NewQueue(1000)
	c := configured(t, handlerproxy.Source, throttletest.New(throttletest.Block()))
	s, err := dataplane.DialSource(within(t), serve(t, c, src).waitSocket(t))
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	began := time.Now()
	msgs, err := s.Read(within(t), 100, 200*time.Millisecond)
	require.NoError(t, err)
	require.Empty(t, msgs)
	require.GreaterOrEqual(t, time.Since(began), 150*time.Millisecond, "an empty read lasts its timeout")
	require.Empty(t, src.Asked)
}

func TestTheCostOfAReadIsSettled(t *testing.T) {
	l := grantAll()
	c := configured(t, handlerproxy.Source, l)
	c.Cost = "header tokens"
	src := dataplane.NewQueue(1000)
	src.Headers = map[string]string{"tokens": "2"}
	s, err := dataplane.DialSource(within(t), serve(t, c, src).waitSocket(t))
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
