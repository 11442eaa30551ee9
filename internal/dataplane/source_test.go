package dataplane

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	sourcepb "github.com/numaproj/numaflow-go/pkg/apis/proto/source/v1"
	sourcesdk "github.com/numaproj/numaflow-go/pkg/sourcer"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane/sdkserver"
)

func dialSource(t *testing.T, socket string, opts ...Option) *Source {
	t.Helper()
	return dialled[*Source](t)(DialSource(testContext(t), socket, opts...))
}

// queue is a source of numbered messages that keeps what is neither acknowledged nor
// refused, and delivers again what was refused.
type queue struct {
	mu      sync.Mutex
	ready   []string
	open    map[string]bool
	refused []sourcesdk.NackOffset
	// before is called by each Read, if it is not nil.
	before func()
	broken string // "ack" or "pending": this method panics
}

func newQueue(n int) *queue {
	q := &queue{open: map[string]bool{}}
	for i := range n {
		q.ready = append(q.ready, fmt.Sprint("m", i))
	}
	return q
}

func (q *queue) Read(ctx context.Context, r sourcesdk.ReadRequest, out chan<- sourcesdk.Message) {
	if q.before != nil {
		q.before()
	}
	timeout := time.NewTimer(r.TimeOut())
	defer timeout.Stop()
	for range r.Count() {
		q.mu.Lock()
		if len(q.ready) == 0 {
			q.mu.Unlock()
			select {
			case <-timeout.C:
			case <-ctx.Done():
			}
			return
		}
		id := q.ready[0]
		q.ready, q.open[id] = q.ready[1:], true
		q.mu.Unlock()
		out <- sourcesdk.NewMessage([]byte("value "+id), sourcesdk.NewOffset([]byte(id), 3), time.Unix(1000, 0)).
			WithKeys([]string{"k"}).WithHeaders(map[string]string{"h": id})
	}
}

func (q *queue) Ack(_ context.Context, r sourcesdk.AckRequest) {
	if q.broken == "ack" {
		panic("boom 21")
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, o := range r.Offsets() {
		delete(q.open, string(o.Value()))
	}
}

func (q *queue) Nack(_ context.Context, r sourcesdk.NackRequest) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, o := range r.Offsets() {
		id := string(o.Offset.Value())
		delete(q.open, id)
		q.ready = append(q.ready, id)
		q.refused = append(q.refused, o)
	}
}

func (q *queue) Pending(context.Context) int64 {
	if q.broken == "pending" {
		panic("boom 22")
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return int64(len(q.ready))
}

func (q *queue) ActivePartitions(context.Context) []int32 { return []int32{3, 4} }

func (q *queue) TotalPartitions(context.Context) *int32 {
	n := int32(9)
	return &n
}

func TestSourceReadsAcksAndNacks(t *testing.T) {
	ctx, q := testContext(t), newQueue(5)
	s := dialSource(t, sdkserver.Start(t, q).Socket)
	pending, err := s.Pending(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 5, pending)
	active, total, err := s.Partitions(ctx)
	require.NoError(t, err)
	require.Equal(t, []int32{3, 4}, active)
	require.Equal(t, 9, total)

	got, err := s.Read(ctx, 3, time.Second)
	require.NoError(t, err)
	require.Len(t, got, 3)
	require.Equal(t, SourceMessage{
		Message: Message{
			Keys: []string{"k"}, Value: []byte("value m0"), Headers: map[string]string{"h": "m0"}, EventTime: time.Unix(1000, 0).UTC(),
		},
		Offset: Offset{Value: []byte("m0"), Partition: 3},
	}, got[0])
	require.Equal(t, []string{"bTA=-3", "bTE=-3", "bTI=-3"}, s.Outstanding())
	require.NoError(t, s.Ack(ctx, []Offset{got[0].Offset, got[2].Offset}))
	require.NoError(t, s.Nack(ctx, []Nacked{
		{got[1].Offset, &NackOptions{Delay: 1500 * time.Millisecond, MaxDeliveries: 2, Reason: "later"}},
	}))
	require.Len(t, q.refused, 1)
	require.EqualValues(t, 1500, *q.refused[0].NackOptions.Delay)
	require.EqualValues(t, 2, *q.refused[0].NackOptions.MaxDeliveries)
	require.Equal(t, "later", *q.refused[0].NackOptions.Reason)
	require.Empty(t, q.open)

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
	require.Nil(t, q.refused[1].NackOptions)
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
	s := dialSource(t, sdkserver.Start(t, newQueue(1)).Socket)
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
			ctx, q := testContext(t), newQueue(1)
			entered, gate := make(chan struct{}), make(chan struct{})
			q.before = func() { close(entered); <-gate }
			s := dialSource(t, sdkserver.Start(t, q).Socket, c.opts...)
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
	q, gate := newQueue(2), make(chan struct{})
	var once sync.Once
	q.before = func() { once.Do(func() { <-gate }) }
	s := dialSource(t, sdkserver.Start(t, q).Socket)
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
	require.Equal(t, "value m1", string(got[0].Value))
	require.Len(t, s.Outstanding(), 2)
	require.NoError(t, s.Close())
}

func TestSourcePanicsAreSeen(t *testing.T) {
	t.Run("read", func(t *testing.T) {
		q := newQueue(1)
		q.before = func() { panic("boom 23") }
		s := dialSource(t, sdkserver.Start(t, q).Socket)
		_, err := s.Read(testContext(t), 1, 0)
		require.ErrorIs(t, err, ErrBroken)
		require.ErrorContains(t, err, "boom 23")
		require.NoError(t, s.Ack(testContext(t), []Offset{{Value: []byte("x")}}), "the other stream goes on")
		s.Abort()
		require.ErrorIs(t, s.Close(), ErrBroken)
	})
	t.Run("ack", func(t *testing.T) {
		q := newQueue(1)
		q.broken = "ack"
		s := dialSource(t, sdkserver.Start(t, q).Socket)
		got, err := s.Read(testContext(t), 1, 0)
		require.NoError(t, err)
		err = s.Ack(testContext(t), []Offset{got[0].Offset})
		require.ErrorIs(t, err, ErrBroken)
		require.ErrorContains(t, err, "boom 21")
		require.Equal(t, 1, s.Stats().Outstanding, "not acknowledged")
		s.Abort()
	})
	t.Run("pending", func(t *testing.T) {
		q := newQueue(1)
		q.broken = "pending"
		s := dialSource(t, sdkserver.Start(t, q).Socket)
		_, err := s.Pending(testContext(t))
		require.ErrorIs(t, err, ErrBroken)
		s.Abort()
	})
}

func TestSourceAbortGivesWhatCameBefore(t *testing.T) {
	s := dialSource(t, sdkserver.Start(t, newQueue(2)).Socket)
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

func TestSourceFaultsBreakTheStreamAndNameTheOffset(t *testing.T) {
	message := func(offset string) *sourcepb.ReadResponse {
		return &sourcepb.ReadResponse{Status: &sourcepb.ReadResponse_Status{}, Result: &sourcepb.ReadResponse_Result{
			Offset: &sourcepb.Offset{Offset: []byte(offset)}, EventTime: timestamppb.Now(),
		}}
	}
	eot := &sourcepb.ReadResponse{Status: &sourcepb.ReadResponse_Status{Eot: true}}
	noTime := message("a")
	noTime.Result.EventTime = nil
	failure := &sourcepb.ReadResponse{Status: &sourcepb.ReadResponse_Status{Code: sourcepb.ReadResponse_Status_FAILURE}}
	both := message("a")
	both.Status.Eot = true
	for name, c := range map[string]struct {
		send  []*sourcepb.ReadResponse
		ends  bool
		fault Fault
		ids   []string
	}{
		"too many":             {[]*sourcepb.ReadResponse{message("a"), message("b"), message("c")}, false, FaultTooMany, []string{"Yw==-0"}},
		"same offset twice":    {[]*sourcepb.ReadResponse{message("a"), message("a")}, false, FaultDuplicateID, []string{"YQ==-0"}},
		"empty offset":         {[]*sourcepb.ReadResponse{message("")}, false, FaultOffset, []string{"1"}},
		"no event time":        {[]*sourcepb.ReadResponse{noTime}, false, FaultEventTime, []string{"YQ==-0"}},
		"stream ends":          {[]*sourcepb.ReadResponse{message("a")}, true, FaultMissingEOT, []string{"1"}},
		"after the end":        {[]*sourcepb.ReadResponse{eot, message("a")}, false, FaultAfterEOT, []string{"YQ==-0"}},
		"second end":           {[]*sourcepb.ReadResponse{eot, eot}, false, FaultUnexpectedEOT, nil},
		"failure":              {[]*sourcepb.ReadResponse{failure}, false, FaultStatus, []string{"1"}},
		"a message in the end": {[]*sourcepb.ReadResponse{both}, false, FaultStatus, []string{"YQ==-0"}},
		"nothing":              {[]*sourcepb.ReadResponse{{Status: &sourcepb.ReadResponse_Status{}}}, false, FaultEmpty, []string{"1"}},
		"second handshake":     {[]*sourcepb.ReadResponse{{Handshake: &sourcepb.Handshake{Sot: true}}}, false, FaultHandshake, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeSource{}
			f.reads.answer = func(_ *sourcepb.ReadRequest, send func(*sourcepb.ReadResponse)) bool {
				for _, r := range c.send {
					send(r)
				}
				return !c.ends
			}
			s := dialSource(t, startScripted(t, f))
			_, _ = s.Read(testContext(t), 2, 0)
			awaitBroken(t, s.Broken())
			_, err := s.Read(testContext(t), 2, 0)
			requireFault(t, err, c.fault, c.ids...)
		})
	}
}

func TestSourceFaultsOfAcknowledgements(t *testing.T) {
	success := &sourcepb.AckResponse{Result: &sourcepb.AckResponse_Result{Success: &emptypb.Empty{}}}
	for name, c := range map[string]struct {
		send  []*sourcepb.AckResponse
		fault Fault
		ids   []string
	}{
		"no answer":     {nil, FaultMissingID, []string{"eA==-7"}},
		"two answers":   {[]*sourcepb.AckResponse{success, success}, FaultUnasked, nil},
		"empty answer":  {[]*sourcepb.AckResponse{{}}, FaultEmpty, []string{"eA==-7"}},
		"and handshake": {[]*sourcepb.AckResponse{{Handshake: &sourcepb.Handshake{Sot: true}}}, FaultHandshake, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeSource{}
			f.acks.answer = func(_ *sourcepb.AckRequest, send func(*sourcepb.AckResponse)) bool {
				for _, r := range c.send {
					send(r)
				}
				return len(c.send) > 0
			}
			s := dialSource(t, startScripted(t, f))
			_ = s.Ack(testContext(t), []Offset{{Value: []byte("x"), Partition: 7}})
			awaitBroken(t, s.acks.Broken())
			err := s.Ack(testContext(t), []Offset{{Value: []byte("y")}})
			requireFault(t, err, c.fault, c.ids...)
		})
	}
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

func TestHandshakesOfTheOtherKindsAreChecked(t *testing.T) {
	ctx := testContext(t)
	for name, dial := range map[string]func() error{
		"batch map": func() error {
			f := &fakeMap{}
			f.first = eotOf("")
			_, err := DialBatchMap(ctx, startScripted(t, f))
			return err
		},
		"map stream": func() error {
			f := &fakeMap{}
			f.first = reply("0-1")
			_, err := DialMapStream(ctx, startScripted(t, f))
			return err
		},
		"reads": func() error {
			f := &fakeSource{}
			f.reads.first = &sourcepb.ReadResponse{Status: &sourcepb.ReadResponse_Status{}}
			_, err := DialSource(ctx, startScripted(t, f))
			return err
		},
		"acknowledgements": func() error {
			f := &fakeSource{}
			f.acks.first = &sourcepb.AckResponse{Result: &sourcepb.AckResponse_Result{Success: &emptypb.Empty{}}}
			_, err := DialSource(ctx, startScripted(t, f))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := dial()
			var p *ProtocolError
			require.ErrorAs(t, err, &p)
			require.Equal(t, FaultHandshake, p.Fault)
		})
	}
}
