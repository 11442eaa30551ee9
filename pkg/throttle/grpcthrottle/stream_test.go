package grpcthrottle_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/grpcthrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

var costs = grpcthrottle.WithCost(costOf)

// drained reads a stream to its end, and returns its error.
func drained(recv func() (*pb.StreamingOutputCallResponse, error)) error {
	for {
		if _, err := recv(); err != nil {
			return err
		}
	}
}

func TestAStreamDrawsWhenItOpens(t *testing.T) {
	_, addr, _ := serve(t)
	l := throttletest.New()
	client := dial(t, addr, l)
	stream, err := client.FullDuplexCall(t.Context())
	require.NoError(t, err)
	for range 3 {
		require.NoError(t, stream.Send(message(9)))
		_, err := stream.Recv()
		require.NoError(t, err)
	}
	require.False(t, l.Draws()[0].Settled)
	require.NoError(t, stream.CloseSend())
	require.ErrorIs(t, drained(stream.Recv), io.EOF)
	require.Equal(t, []throttletest.Draw{{Method: throttletest.Acquire, Cost: 1, Granted: 1, Settled: true, Used: 1}}, l.Draws())
}

func TestEachMessageDrawsItsCost(t *testing.T) {
	_, addr, _ := serve(t)
	l := throttletest.New()
	client := dial(t, addr, l, costs)
	stream, err := client.FullDuplexCall(t.Context())
	require.NoError(t, err)
	require.Empty(t, l.Draws())
	for _, cost := range []int{3, 0, 4} {
		require.NoError(t, stream.Send(message(cost)))
		_, err := stream.Recv()
		require.NoError(t, err)
	}
	require.NoError(t, stream.CloseSend())
	require.ErrorIs(t, drained(stream.Recv), io.EOF)
	draws := l.Draws()
	require.Len(t, draws, 3)
	for i, cost := range []int{3, 0, 4} {
		require.Equal(t, throttletest.Draw{Method: throttletest.Acquire, Cost: cost, Granted: cost, Settled: true, Used: cost}, draws[i])
	}
}

// The stream isn't at the server before its message may be sent, and its permit is held until its end.
func TestAStreamWithOneMessageOpensWithIt(t *testing.T) {
	s, addr, _ := serve(t)
	grant := make(chan struct{})
	l := throttletest.New(throttletest.GrantOn(grant))
	throttled, err := grpcthrottle.New(l, costs)
	require.NoError(t, err)
	opened := make(chan struct{}, 1)
	client := connect(t, addr, throttled, grpc.WithChainStreamInterceptor(
		func(ctx context.Context, desc *grpc.StreamDesc, c *grpc.ClientConn, m string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			opened <- struct{}{}
			return open(ctx, desc, c, m, opts...)
		}))
	streams := make(chan grpc.ServerStreamingClient[pb.StreamingOutputCallResponse], 1)
	go func() {
		stream, err := client.StreamingOutputCall(t.Context(), message(5))
		if err == nil {
			streams <- stream
		}
		close(streams)
	}()
	require.Eventually(t, func() bool { return l.Waiting() == 1 }, time.Minute, time.Millisecond)
	require.Empty(t, opened)
	close(grant)
	stream, ok := <-streams
	require.True(t, ok)
	require.Len(t, opened, 1)
	require.NotNil(t, stream.Context())
	_, err = stream.Header()
	require.NoError(t, err)
	require.False(t, l.Draws()[0].Settled)
	require.ErrorIs(t, drained(stream.Recv), io.EOF)
	require.Empty(t, stream.Trailer())
	require.Equal(t, []throttletest.Draw{{Method: throttletest.Acquire, Cost: 5, Granted: 5, Settled: true, Used: 5}}, l.Draws())
	_, messages := s.seen()
	require.Equal(t, 1, messages)
}

// Code that isn't generated may use a stream before it has sent anything.
func TestAStreamBeforeItsMessage(t *testing.T) {
	_, addr, _ := serve(t)
	throttled, err := grpcthrottle.New(throttletest.New(), costs)
	require.NoError(t, err)
	var stream grpc.ClientStream
	client := connect(t, addr, throttled, grpc.WithStreamInterceptor(
		func(ctx context.Context, desc *grpc.StreamDesc, c *grpc.ClientConn, m string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			var err error
			stream, err = open(ctx, desc, c, m, opts...)
			require.NoError(t, err)
			require.Error(t, stream.RecvMsg(&pb.StreamingOutputCallResponse{}))
			_, err = stream.Header()
			require.Equal(t, codes.FailedPrecondition, status.Code(err))
			require.Nil(t, stream.Trailer())
			require.NoError(t, stream.CloseSend())
			require.Equal(t, ctx, stream.Context())
			return stream, nil
		}))
	got, err := client.StreamingOutputCall(t.Context(), message(1))
	require.NoError(t, err)
	require.Error(t, stream.SendMsg(message(1)), "the second message")
	require.Error(t, drained(got.Recv))
}

// As after any error of SendMsg the stream has ended: nobody has to look after it.
func TestAMessageWithoutTokensEndsItsStream(t *testing.T) {
	s, addr, _ := serve(t)
	refused := &throttle.Error{Reason: throttle.ReasonLimit, RetryAfter: time.Minute}
	l := throttletest.New(throttletest.Grant(), throttletest.Deny(refused))
	stream, err := dial(t, addr, l, costs).FullDuplexCall(t.Context())
	require.NoError(t, err)
	require.NoError(t, stream.Send(message(1)))
	_, err = stream.Recv()
	require.NoError(t, err)
	err = stream.Send(message(2))
	require.ErrorIs(t, err, throttle.ErrThrottled)
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.Equal(t, time.Minute, retryIn(err))
	<-s.ended
	_, messages := s.seen()
	require.Equal(t, 1, messages)
}

// The server ends the stream while a message waits: RecvMsg has the reason, as always.
func TestAStreamThatEndsWhileAMessageWaits(t *testing.T) {
	_, addr, _ := serve(t, status.Error(codes.NotFound, "no such queue"))
	l := throttletest.New(throttletest.Block())
	stream, err := dial(t, addr, l, costs).FullDuplexCall(t.Context())
	require.NoError(t, err)
	sent := make(chan error, 1)
	go func() { sent <- stream.Send(message(2)) }()
	require.Eventually(t, func() bool { return l.Waiting() == 1 }, time.Minute, time.Millisecond)
	_, err = stream.Recv()
	require.Equal(t, codes.NotFound, status.Code(err))
	require.ErrorIs(t, <-sent, io.EOF)
	require.Zero(t, l.Used())
}

// A stream may end before its opening has returned.
func TestAStreamThatEndsWhileItOpens(t *testing.T) {
	l := throttletest.New()
	throttled, err := grpcthrottle.New(l)
	require.NoError(t, err)
	var ended func() error
	open := func(c context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		ended = c.Err
		for _, opt := range opts {
			if end, ok := opt.(grpc.OnFinishCallOption); ok {
				require.NoError(t, c.Err())
				end.OnFinish(nil)
				require.False(t, l.Draws()[0].Settled)
			}
		}
		return nil, nil //nolint:nilnil // nobody uses it
	}
	_, err = throttled.Stream(t.Context(), &grpc.StreamDesc{}, nil, "/s/m", open)
	require.NoError(t, err)
	require.True(t, l.Draws()[0].Settled)
	require.Equal(t, 1, l.Used())
	require.Error(t, ended())
}

// A message for a stream that has ended isn't sent.
func TestAMessageThatIsNotSentGivesItsTokensBack(t *testing.T) {
	_, addr, _ := serve(t)
	l := throttletest.New()
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := dial(t, addr, l, costs).FullDuplexCall(ctx)
	require.NoError(t, err)
	require.NoError(t, stream.Send(message(3)))
	cancel()
	require.Error(t, drained(stream.Recv))
	require.Error(t, stream.Send(message(4)))
	require.Equal(t, 3, l.Used())
}

// A message that can't be encoded was not sent either.
func TestAMessageThatCannotBeEncoded(t *testing.T) {
	_, addr, _ := serve(t)
	l := throttletest.New()
	stream, err := dial(t, addr, l, grpcthrottle.WithCost(func(context.Context, string, any) int { return 4 })).FullDuplexCall(t.Context())
	require.NoError(t, err)
	err = stream.SendMsg("no message")
	require.Error(t, err)
	require.NotErrorIs(t, err, io.EOF)
	require.Zero(t, l.Used())
}
