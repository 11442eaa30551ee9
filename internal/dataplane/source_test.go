package dataplane

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	sourcesdk "github.com/numaproj/numaflow-go/pkg/sourcer"
)

func dialSource(t *testing.T, socket string, opts ...Option) *Source {
	t.Helper()
	return dialled[*Source](t)(DialSource(testContext(t), socket, opts...))
}

func TestSourceReadsAcksAndNacks(t *testing.T) {
	ctx, q := testContext(t), NewQueue(5)
	q.Headers = map[string]string{"h": "1"}
	s := dialSource(t, Serve(t, q).Socket)
	pending, err := s.Pending(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 5, pending)
	active, total, err := s.Partitions(ctx)
	require.NoError(t, err)
	require.Equal(t, []int32{3, 4}, active)
	require.Equal(t, 7, total)

	got, err := s.Read(ctx, 3, time.Second)
	require.NoError(t, err)
	require.Len(t, got, 3)
	require.Equal(t, SourceMessage{
		Message: Message{
			Keys: []string{"k"}, Value: []byte("0"), Headers: map[string]string{"h": "1"}, EventTime: time.Unix(1000, 0).UTC(),
		},
		Offset: Offset{Value: []byte("0"), Partition: 3},
	}, got[0])
	require.Equal(t, []string{"MA==-3", "MQ==-3", "Mg==-3"}, s.Outstanding())
	require.NoError(t, s.Ack(ctx, []Offset{got[0].Offset, got[2].Offset}))
	require.NoError(t, s.Nack(ctx, []Nacked{
		{got[1].Offset, &NackOptions{Delay: 1500 * time.Millisecond, MaxDeliveries: 2, Reason: "later"}},
	}))
	require.Len(t, q.Refused, 1)
	require.EqualValues(t, 1500, *q.Refused[0].NackOptions.Delay)
	require.EqualValues(t, 2, *q.Refused[0].NackOptions.MaxDeliveries)
	require.Equal(t, "later", *q.Refused[0].NackOptions.Reason)
	require.Equal(t, map[string]int{"0": 1, "2": 1}, q.Acked)

	got, err = s.Read(ctx, 10, 20*time.Millisecond)
	require.NoError(t, err)
	require.Len(t, got, 3, "two new ones, and the refused one again")
	require.NoError(t, s.Ack(ctx, []Offset{got[0].Offset, got[1].Offset}))
	empty, err := s.Read(ctx, 1, 20*time.Millisecond)
	require.NoError(t, err)
	require.Empty(t, empty)
	require.NoError(t, s.Ack(ctx, []Offset{{Value: []byte("of another connection")}}))
	require.NoError(t, s.Ack(ctx, nil), "nothing to send")
	require.NoError(t, s.Nack(ctx, []Nacked{{Offset: got[2].Offset}}))
	require.Nil(t, q.Refused[1].NackOptions)
	require.NoError(t, s.Close())
	stats := s.Stats()
	require.GreaterOrEqual(t, stats.LongestRead, 20*time.Millisecond)
	stats.LongestRead = 0
	require.Equal(t, SourceStats{Reads: 3, EmptyReads: 1, Messages: 6, Acked: 4, Nacked: 2, Adopted: 1}, stats)
	_, err = s.Read(ctx, 1, 0)
	require.ErrorIs(t, err, ErrClosed)
	_, err = s.Pending(ctx)
	require.ErrorIs(t, err, ErrClosed)
}

func TestSourceChecksWhatIsAskedFor(t *testing.T) {
	s := dialSource(t, Serve(t, NewQueue(1)).Socket)
	for _, c := range []struct {
		count   int
		timeout time.Duration
	}{{0, 0}, {-1, time.Second}, {1, -time.Second}, {1, time.Microsecond}, {1, 100 * 24 * time.Hour}} {
		_, err := s.Read(testContext(t), c.count, c.timeout)
		require.ErrorContains(t, err, "whole milliseconds", "%+v", c)
	}
	require.NoError(t, s.Close())
}

func TestSourceCallsGoOneAfterTheOther(t *testing.T) {
	for name, c := range map[string]struct {
		opts   []Option
		serial bool
	}{"as the platform": {nil, true}, "in parallel": {[]Option{WithParallelCalls()}, false}} {
		t.Run(name, func(t *testing.T) {
			ctx, q := testContext(t), NewQueue(1)
			entered, gate := make(chan struct{}), make(chan struct{})
			q.Before = func() { close(entered); <-gate }
			s := dialSource(t, Serve(t, q).Socket, c.opts...)
			read := make(chan error, 1)
			go func() {
				_, err := s.Read(ctx, 1, 0)
				read <- err
			}()
			<-entered
			asked := make(chan error, 4)
			go func() {
				_, err := s.Pending(ctx)
				asked <- err
			}()
			go func() { asked <- s.Ack(ctx, []Offset{{Value: []byte("x")}}) }()
			go func() { asked <- s.Nack(ctx, []Nacked{{Offset: Offset{Value: []byte("y")}}}) }()
			go func() {
				_, _, err := s.Partitions(ctx)
				asked <- err
			}()
			if c.serial {
				time.Sleep(50 * time.Millisecond)
				require.Empty(t, asked, "answered beside a read")
				close(gate)
			}
			for range 4 {
				require.NoError(t, <-asked)
			}
			if !c.serial {
				close(gate)
			}
			require.NoError(t, <-read)
			require.NoError(t, s.Close())
		})
	}
}

func TestSourceCallerMayLeaveAndTheReadGoesOn(t *testing.T) {
	q, gate := NewQueue(2), make(chan struct{})
	var once sync.Once
	q.Before = func() { once.Do(func() { <-gate }) }
	s := dialSource(t, Serve(t, q).Socket)
	ctx, cancel := context.WithTimeout(testContext(t), 30*time.Millisecond)
	defer cancel()
	_, err := s.Read(ctx, 1, 0)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "read 1")
	_, err = s.Pending(ctx)
	require.ErrorContains(t, err, "not sent")
	close(gate)
	got, err := s.Read(testContext(t), 1, 0)
	require.NoError(t, err)
	require.Equal(t, "1", string(got[0].Value))
	require.Len(t, s.Outstanding(), 2)
	require.NoError(t, s.Close())
}

func TestSourcePanicsAreSeen(t *testing.T) {
	t.Run("read", func(t *testing.T) {
		q := NewQueue(1)
		q.Before = func() { panic("boom 23") }
		s := dialSource(t, Serve(t, q).Socket)
		_, err := s.Read(testContext(t), 1, 0)
		require.ErrorIs(t, err, ErrBroken)
		require.ErrorContains(t, err, "boom 23")
		require.NoError(t, s.Ack(testContext(t), []Offset{{Value: []byte("x")}}), "the other stream goes on")
		s.Abort()
		require.ErrorIs(t, s.Close(), ErrBroken)
	})
	t.Run("ack", func(t *testing.T) {
		s := dialSource(t, Serve(t, panicking{NewQueue(1)}).Socket)
		got, err := s.Read(testContext(t), 1, 0)
		require.NoError(t, err)
		err = s.Ack(testContext(t), []Offset{got[0].Offset})
		require.ErrorIs(t, err, ErrBroken)
		require.ErrorContains(t, err, "boom 21")
		require.Equal(t, 1, s.Stats().Outstanding, "not acknowledged")
		s.Abort()
	})
	t.Run("pending", func(t *testing.T) {
		s := dialSource(t, Serve(t, panicking{NewQueue(1)}).Socket)
		_, err := s.Pending(testContext(t))
		require.ErrorIs(t, err, ErrBroken)
		s.Abort()
	})
}

// A panicking source can be read, and that is all.
type panicking struct{ *Queue }

func (panicking) Ack(context.Context, sourcesdk.AckRequest) { panic("boom 21") }
func (panicking) Pending(context.Context) int64             { panic("boom 22") }

func TestSourceAbortGivesWhatCameBefore(t *testing.T) {
	s := dialSource(t, Serve(t, NewQueue(2)).Socket)
	got := make(chan []SourceMessage, 1)
	failed := make(chan error, 1)
	go func() {
		m, err := s.Read(testContext(t), 3, 10*time.Second)
		got <- m
		failed <- err
	}()
	eventually(t, func() bool { return s.Stats().Messages == 2 }, "both there")
	s.Abort()
	require.Len(t, <-got, 2)
	require.ErrorIs(t, <-failed, ErrBroken)
	require.Len(t, s.Outstanding(), 2)
}

func TestSourceAnswersThatSayNothing(t *testing.T) {
	ctx, s := testContext(t), dialSource(t, startScripted(t, &fakeSource{}))
	_, err := s.Pending(ctx)
	requireFault(t, err, FaultEmpty, "pending")
	_, _, err = s.Partitions(ctx)
	requireFault(t, err, FaultEmpty, "partitions")
	err = s.Nack(ctx, []Nacked{{Offset: Offset{Value: []byte("x")}}})
	requireFault(t, err, FaultEmpty, "eA==-0")
}
