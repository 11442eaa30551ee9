package grpcthrottle_test

import (
	"context"
	"errors"
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

func TestACallDrawsOneTokenOrTheCostOfItsMessage(t *testing.T) {
	s, addr, _ := serve(t, nil, status.Error(codes.Internal, "failed"), nil)
	for _, tc := range []struct {
		opts []grpcthrottle.Option
		cost int
		want int
	}{
		{nil, 7, 1},
		{[]grpcthrottle.Option{grpcthrottle.WithCost(nil), nil}, 7, 1},
		{[]grpcthrottle.Option{grpcthrottle.WithCost(costOf)}, 7, 7},
		{[]grpcthrottle.Option{grpcthrottle.WithCost(costOf)}, 0, 0},
		{[]grpcthrottle.Option{grpcthrottle.WithCost(costOf)}, -3, 0},
	} {
		l := throttletest.New()
		_, _ = dial(t, addr, l, tc.opts...).UnaryCall(t.Context(), sized(tc.cost))
		draw := throttletest.Draw{Method: throttletest.Acquire, Cost: tc.want, Granted: tc.want, Settled: true, Used: tc.want}
		require.Equal(t, []throttletest.Draw{draw}, l.Draws())
	}
	calls, _ := s.seen()
	require.Equal(t, 5, calls)
}

func TestTheMethodAndTheMessageAreKnown(t *testing.T) {
	_, addr, _ := serve(t)
	var methods []string
	client := dial(t, addr, throttletest.New(), grpcthrottle.WithCost(func(_ context.Context, method string, msg any) int {
		require.IsType(t, &pb.SimpleRequest{}, msg)
		methods = append(methods, method)
		return 1
	}))
	_, err := client.UnaryCall(t.Context(), sized(1))
	require.NoError(t, err)
	require.Equal(t, []string{"/grpc.testing.TestService/UnaryCall"}, methods)
}

func TestATagDrawsFromItsQuota(t *testing.T) {
	_, addr, _ := serve(t)
	l, err := throttle.New(throttle.Limit{Max: 100, Per: time.Hour}, throttle.WithQuotas(throttle.Quotas{
		Tags: map[string]throttle.Quota{"acme": {Total: 1}},
	}))
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	client := dial(t, addr, l, grpcthrottle.WithCost(costOf), grpcthrottle.WithTag(func(context.Context, string, any) string { return "acme" }))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = client.UnaryCall(ctx, sized(50))
	refused, ok := errors.AsType[*throttle.Error](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, "acme", refused.Tag)
}

// A call that can't get its tokens is not sent, and fails with a status of gRPC.
func TestRefusedDraws(t *testing.T) {
	cause := errors.New("the batch is full")
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	past, stop := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer stop()
	closed, err := throttle.New(throttle.Limit{Max: 1})
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	hour, err := throttle.New(throttle.Limit{Max: 1, Per: time.Hour})
	require.NoError(t, err)
	defer func() { require.NoError(t, hour.Close()) }()
	soon, stopSoon := context.WithTimeout(t.Context(), time.Minute)
	defer stopSoon()
	granted := throttletest.New()
	frozen := deny(&throttle.Error{Reason: throttle.ReasonFrozen})
	late := &throttle.Error{Reason: throttle.ReasonLimit, Cost: 1, Cause: context.DeadlineExceeded}

	for name, tc := range map[string]struct {
		ctx   context.Context //nolint:containedctx // the table's
		l     throttle.Limiter
		cost  int
		code  codes.Code
		is    error
		retry bool
	}{
		"the deadline is too near":    {soon, hour, 1, codes.ResourceExhausted, throttle.ErrThrottled, true},
		"the wait is not known":       {t.Context(), frozen, 1, codes.ResourceExhausted, throttle.ErrThrottled, false},
		"the cost is too large":       {t.Context(), hour, 1000, codes.FailedPrecondition, throttle.ErrThrottled, false},
		"the limiter is closed":       {t.Context(), closed, 1, codes.Unavailable, throttle.ErrClosed, false},
		"the deadline passed":         {past, hour, 1, codes.DeadlineExceeded, context.DeadlineExceeded, false},
		"it passed in the queue":      {t.Context(), deny(late), 1, codes.DeadlineExceeded, throttle.ErrThrottled, false},
		"the call was cancelled":      {cancelled, hour, 1, codes.Canceled, cause, false},
		"it was while it waited":      {cancelled, granted, 1, codes.Canceled, cause, false},
		"a limiter with other errors": {t.Context(), deny(cause), 1, codes.Unknown, cause, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, addr, _ := serve(t)
			client := dial(t, addr, tc.l, grpcthrottle.WithCost(costOf))
			_, err := client.UnaryCall(tc.ctx, sized(tc.cost))
			require.Equal(t, tc.code, status.Code(err), "%v", err)
			require.ErrorIs(t, err, tc.is)
			require.Equal(t, tc.retry, retryIn(err) > 0, "%v", err)
			require.Equal(t, status.Convert(err).Message(), err.Error())
			stream, err := client.StreamingOutputCall(tc.ctx, message(tc.cost))
			require.Nil(t, stream)
			require.Equal(t, tc.code, status.Code(err), "%v", err)
			calls, _ := s.seen()
			require.Zero(t, calls)
		})
	}
	require.NotEmpty(t, granted.Draws())
	require.Zero(t, granted.Used())
}

func deny(err error) throttle.Limiter { return throttletest.New(throttletest.Deny(err)) }

// No connection takes the call: nothing has left.
func TestTokensComeBackWhenTheServerIsGone(t *testing.T) {
	_, addr, stop := serve(t)
	stop()
	for name, opts := range map[string][]grpcthrottle.Option{"one token": nil, "cost of the message": {grpcthrottle.WithCost(costOf)}} {
		t.Run(name, func(t *testing.T) {
			l := throttletest.New()
			client := dial(t, addr, l, opts...)
			_, err := client.UnaryCall(t.Context(), sized(5))
			require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
			_, err = client.StreamingOutputCall(t.Context(), message(5))
			require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
			_, err = client.FullDuplexCall(t.Context())
			require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
			require.Zero(t, l.Used())
			for _, d := range l.Draws() {
				require.True(t, d.Settled)
			}
		})
	}
}

// A call that a connection took counts, even if the server ends before it answers.
func TestACallThatWasSentCounts(t *testing.T) {
	l := throttletest.New()
	s, addr, stop := serve(t)
	client := dial(t, addr, l)
	stream, err := client.FullDuplexCall(t.Context())
	require.NoError(t, err)
	require.NoError(t, stream.Send(message(1)))
	_, err = stream.Recv()
	require.NoError(t, err)
	stop()
	_, err = stream.Recv()
	require.Error(t, err)
	require.Equal(t, 1, l.Used())
	_, messages := s.seen()
	require.Equal(t, 1, messages)
}

// gRPC's own retries would be attempts without tokens.
func TestOneAttemptForEachDraw(t *testing.T) {
	s, addr, _ := serve(t, status.Error(codes.Unavailable, "try again"))
	throttled, err := grpcthrottle.New(throttletest.New())
	require.NoError(t, err)
	client := connect(t, addr, throttled, grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{}], "retryPolicy": {
		"maxAttempts": 4, "initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`))
	_, err = client.UnaryCall(t.Context(), sized(1))
	require.Equal(t, codes.Unavailable, status.Code(err))
	calls, _ := s.seen()
	require.Equal(t, 1, calls)
}

// The permit of a call holds its slot until the call has ended.
func TestCallsInFlight(t *testing.T) {
	_, addr, _ := serve(t)
	slots, err := throttle.NewInFlight(1)
	require.NoError(t, err)
	client := dial(t, addr, slots)
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := client.FullDuplexCall(ctx)
	require.NoError(t, err)
	_, free := slots.TryAcquire(1)
	require.False(t, free)
	require.NoError(t, stream.CloseSend())
	_, err = stream.Recv()
	require.Error(t, err)
	_, err = client.UnaryCall(t.Context(), sized(1))
	require.NoError(t, err)

	_, err = client.FullDuplexCall(ctx)
	require.NoError(t, err)
	cancel() // nobody looks at the stream any more
	permit, err := slots.Acquire(t.Context(), 1)
	require.NoError(t, err)
	permit.Settle(1)
}

func TestAFunctionThatPanicsDrawsNothing(t *testing.T) {
	_, addr, _ := serve(t)
	l := throttletest.New()
	client := dial(t, addr, l, grpcthrottle.WithCost(costOf))
	require.Panics(t, func() { _, _ = client.EmptyCall(t.Context(), &pb.Empty{}) })
	require.Empty(t, l.Draws())
}

func TestWithoutALimitNothingIsDrawn(t *testing.T) {
	s, addr, _ := serve(t)
	unlimited, err := throttle.New(throttle.Limit{})
	require.NoError(t, err)
	for _, l := range []throttle.Limiter{nil, unlimited} {
		client := dial(t, addr, l, grpcthrottle.WithTag(func(context.Context, string, any) string { return "acme" }))
		_, err = client.UnaryCall(t.Context(), sized(1))
		require.NoError(t, err)
	}
	calls, _ := s.seen()
	require.Equal(t, 2, calls)
}

func TestWrongOptions(t *testing.T) {
	_, err := grpcthrottle.New(nil, grpcthrottle.WithMaxWait(0), grpcthrottle.WithMaxPause(-time.Second), nil)
	require.EqualError(t, err, "grpcthrottle: WithMaxWait is 0s, allowed: more than 0\ngrpcthrottle: WithMaxPause is -1s, allowed: more than 0")
}
