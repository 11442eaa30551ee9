package grpcthrottle_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/grpcthrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// The server's refusal pauses the limiter and the calls after it, whatever kind of call it refused.
func TestARefusalPausesTheLimit(t *testing.T) {
	bound := grpcthrottle.WithMaxPause(2 * time.Minute)
	for name, tc := range map[string]struct {
		refusal error
		opts    []grpcthrottle.Option
		limiter bool          // the limiter is paused
		held    time.Duration // the next call is held back
	}{
		"exhausted, with a time":    {refusal(codes.ResourceExhausted, time.Hour), nil, true, 5 * time.Minute},
		"another bound":             {refusal(codes.ResourceExhausted, time.Hour), []grpcthrottle.Option{bound}, true, 2 * time.Minute},
		"overloaded, with a time":   {refusal(codes.Unavailable, 2*time.Minute), nil, false, 2 * time.Minute},
		"unavailable":               {refusal(codes.Unavailable, 0), nil, false, 0},
		"another code, with a time": {refusal(codes.Aborted, time.Hour), nil, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			for _, kind := range []string{"unary", "stream", "stream, by cost", "bidirectional", "bidirectional, by cost"} {
				_, addr, _ := serve(t, tc.refusal, nil)
				l, err := throttle.New(throttle.Limit{Max: 1000})
				require.NoError(t, err)
				opts := tc.opts
				if kind == "stream, by cost" || kind == "bidirectional, by cost" {
					opts = append([]grpcthrottle.Option{costs}, opts...)
				}
				client := dial(t, addr, l, opts...)
				switch kind {
				case "unary":
					_, err = client.UnaryCall(t.Context(), sized(1))
				case "stream", "stream, by cost":
					stream, opened := client.StreamingOutputCall(t.Context(), message(1))
					require.NoError(t, opened)
					err = drained(stream.Recv)
				default:
					stream, opened := client.FullDuplexCall(t.Context())
					require.NoError(t, opened)
					err = drained(stream.Recv)
				}
				require.Equal(t, status.Code(tc.refusal), status.Code(err), "the call has the server's status: %v", err)
				require.NotErrorIs(t, err, throttle.ErrThrottled)

				paused := l.Status().Paused
				require.Equal(t, tc.limiter, paused != nil, kind)
				if paused != nil {
					require.Less(t, time.Until(paused.Until), tc.held+time.Second)
				}
				_, err = client.UnaryCall(t.Context(), sized(1))
				if tc.held == 0 {
					require.NoError(t, err, kind)
					continue
				}
				refused, ok := errors.AsType[*throttle.Error](err)
				require.True(t, ok, "%s: %v", kind, err)
				require.Equal(t, throttle.ReasonPause, refused.Reason)
				require.Equal(t, codes.ResourceExhausted, status.Code(err))
				require.Greater(t, retryIn(err), tc.held-time.Minute)
				require.LessOrEqual(t, retryIn(err), tc.held)
				require.NoError(t, l.Close())
			}
		})
	}
}

// A refusal of one tag holds back no other.
func TestTagsArePausedApart(t *testing.T) {
	s, addr, _ := serve(t, refusal(codes.ResourceExhausted, 2*time.Minute), nil)
	l, err := throttle.New(throttle.Limit{Max: 1000}, throttle.WithQuotas(throttle.Quotas{Tags: map[string]throttle.Quota{"acme": {Total: 500}}}))
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	type key struct{}
	client := dial(t, addr, l, grpcthrottle.WithTag(func(ctx context.Context, _ string, _ any) string {
		tag, _ := ctx.Value(key{}).(string)
		return tag
	}))
	acme, other := context.WithValue(t.Context(), key{}, "acme"), context.WithValue(t.Context(), key{}, "other")
	_, err = client.UnaryCall(acme, sized(1))
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	_, err = client.UnaryCall(acme, sized(1))
	refused, ok := errors.AsType[*throttle.Error](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, "acme", refused.Tag)
	_, err = client.UnaryCall(other, sized(1))
	require.NoError(t, err)
	require.Nil(t, l.Status().Paused)
	calls, _ := s.seen()
	require.Equal(t, 2, calls)
}

// Without quotas a tag is only a name: whether one of them was refused says nothing of the limit.
func TestTagsWithoutQuotas(t *testing.T) {
	_, addr, _ := serve(t, refusal(codes.ResourceExhausted, 2*time.Minute))
	l, err := throttle.New(throttle.Limit{Max: 1000})
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	client := dial(t, addr, l, grpcthrottle.WithTag(func(context.Context, string, any) string { return "acme" }))
	_, err = client.UnaryCall(t.Context(), sized(1))
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.Nil(t, l.Status().Paused)
}

// With an adaptive limit a refusal without a time, or with a short one, stops nobody.
func TestAnAdaptiveLimitTakesThePlaceOfTheGuess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := throttle.New(throttle.Limit{Max: 1000, Adaptive: true})
		require.NoError(t, err)
		defer func() { require.NoError(t, l.Close()) }()
		time.Sleep(time.Second)
		throttled, err := grpcthrottle.New(l)
		require.NoError(t, err)
		f := &fake{answers: []error{refusal(codes.ResourceExhausted, 0), refusal(codes.ResourceExhausted, 2*time.Second), nil}}
		began := time.Now()
		for range 3 {
			_ = throttled.Unary(t.Context(), "/s/m", nil, nil, nil, f.invoke)
		}
		require.Less(t, time.Since(began), 100*time.Millisecond)
	})
}

// The outcome of a stream with many messages counts for the last of them.
func TestAStreamOfMessagesIsReported(t *testing.T) {
	_, addr, _ := serve(t)
	l, err := throttle.New(throttle.Limit{Max: 1000, Adaptive: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	stream, err := dial(t, addr, l, costs).FullDuplexCall(t.Context())
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, stream.Send(message(1)))
	}
	require.NoError(t, stream.CloseSend())
	require.ErrorIs(t, drained(stream.Recv), io.EOF)
	require.EqualValues(t, 1, l.Status().Backoff.Accepted)
}

// Each outcome is reported to an adaptive limit.
func TestCallsAreReported(t *testing.T) {
	for name, tc := range map[string]struct {
		answer error
		want   throttle.Backoff
	}{
		"served":                   {nil, throttle.Backoff{Accepted: 1}},
		"not found":                {status.Error(codes.NotFound, ""), throttle.Backoff{Accepted: 1}},
		"refused":                  {refusal(codes.ResourceExhausted, 0), throttle.Backoff{Refused: 1}},
		"refused for a short time": {refusal(codes.ResourceExhausted, 2*time.Second), throttle.Backoff{Refused: 1}},
		"overloaded":               {refusal(codes.Unavailable, time.Second), throttle.Backoff{Overloaded: 1}},
		"failed":                   {status.Error(codes.Internal, ""), throttle.Backoff{}},
		"not known":                {errors.New("failed"), throttle.Backoff{}},
		"the connection is lost":   {status.Error(codes.Unavailable, ""), throttle.Backoff{}},
		"a message is too long":    {status.Error(codes.ResourceExhausted, "grpc: received message larger than max (5000000 vs. 4194304)"), throttle.Backoff{}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, opts := range [][]grpcthrottle.Option{nil, {costs}} {
				_, addr, _ := serve(t, tc.answer)
				l, err := throttle.New(throttle.Limit{Max: 1000, Adaptive: true})
				require.NoError(t, err)
				client := dial(t, addr, l, opts...)
				_, _ = client.UnaryCall(t.Context(), sized(1))
				got := l.Status().Backoff
				got.Part, got.Cuts = 0, 0
				require.Equal(t, tc.want, got)
				require.Nil(t, l.Status().Paused)

				stream, err := client.StreamingOutputCall(t.Context(), message(1))
				if err == nil {
					require.Error(t, drained(stream.Recv))
				}
				got = l.Status().Backoff
				got.Part, got.Cuts = 0, 0
				require.Equal(t, throttle.Backoff{Accepted: 2 * tc.want.Accepted, Refused: 2 * tc.want.Refused, Overloaded: 2 * tc.want.Overloaded}, got)
				require.NoError(t, l.Close())
			}
		})
	}
}

func TestGeneric(t *testing.T) {
	withDelay := func(delays ...*durationpb.Duration) *status.Status {
		s := status.New(codes.ResourceExhausted, "quota exceeded")
		for _, d := range delays {
			s, _ = s.WithDetails(&errdetails.RetryInfo{RetryDelay: d}, &errdetails.QuotaFailure{})
		}
		return s
	}
	wait := func(d time.Duration) httpthrottle.Refusal {
		return httpthrottle.Refusal{Class: httpthrottle.Wait, RetryAfter: d}
	}
	for _, tc := range []struct {
		s       *status.Status
		want    httpthrottle.Refusal
		refused bool
	}{
		{nil, httpthrottle.Refusal{}, false},
		{status.New(codes.OK, ""), httpthrottle.Refusal{}, false},
		{withDelay(), wait(0), true},
		{withDelay(durationpb.New(time.Second)), wait(time.Second), true},
		{withDelay(durationpb.New(time.Second), durationpb.New(time.Minute), durationpb.New(2)), wait(time.Minute), true},
		{withDelay(durationpb.New(0)), wait(0), true},
		{withDelay(durationpb.New(-time.Second)), wait(0), true},
		{withDelay(nil), wait(0), true},
		{withDelay(&durationpb.Duration{Seconds: 1, Nanos: -5}), wait(0), true},
		{status.New(codes.ResourceExhausted, "trying to send message larger than max (9 vs. 4)"), httpthrottle.Refusal{}, false},
		{status.New(codes.ResourceExhausted, "CLIENT: Received message larger than max (9 vs. 4)"), httpthrottle.Refusal{}, false},
		{status.New(codes.ResourceExhausted, "gRPC message exceeds maximum size 4: 9"), httpthrottle.Refusal{}, false},
		{status.New(codes.ResourceExhausted, "Received message exceeds the maximum configured message size."), httpthrottle.Refusal{}, false},
		{status.New(codes.ResourceExhausted, "the message rate is too high"), wait(0), true},
	} {
		r, refused := grpcthrottle.Generic(tc.s)
		require.Equal(t, tc.refused, refused, tc.s)
		require.Equal(t, tc.want, r, tc.s)
	}
}

func TestAClassifierOfTheUser(t *testing.T) {
	_, addr, _ := serve(t, status.Error(codes.Unavailable, "busy"))
	l, err := throttle.New(throttle.Limit{Max: 1000})
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	client := dial(t, addr, l, grpcthrottle.WithMaxWait(time.Second), grpcthrottle.WithClassifier(func(s *status.Status) (httpthrottle.Refusal, bool) {
		if s.Message() == "busy" {
			return httpthrottle.Refusal{Class: httpthrottle.Overload, RetryAfter: time.Minute}, true
		}
		return grpcthrottle.Generic(s)
	}))
	_, err = client.UnaryCall(t.Context(), sized(1))
	require.Equal(t, codes.Unavailable, status.Code(err))
	_, err = client.UnaryCall(t.Context(), sized(1))
	require.ErrorIs(t, err, throttle.ErrThrottled)
}

// A fake takes the place of the connection: the rest is in virtual time.
type fake struct {
	takes   time.Duration
	answers []error
	at      []time.Time
}

func (f *fake) invoke(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
	for _, opt := range opts {
		if server, ok := opt.(grpc.PeerCallOption); ok {
			server.PeerAddr.Addr = addr{}
		}
	}
	f.at = append(f.at, time.Now())
	select {
	case <-time.After(f.takes):
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
	err := f.answers[0]
	if len(f.answers) > 1 {
		f.answers = f.answers[1:]
	}
	return err
}

type addr struct{}

func (addr) Network() string { return "fake" }
func (addr) String() string  { return "fake" }

func TestACallWaitsForTheEndOfAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := throttle.New(throttle.Limit{Max: 1000})
		require.NoError(t, err)
		defer func() { require.NoError(t, l.Close()) }()
		throttled, err := grpcthrottle.New(l)
		require.NoError(t, err)
		f := &fake{answers: []error{refusal(codes.Unavailable, 10*time.Second), nil}}
		began := time.Now()
		call := func(ctx context.Context) error { return throttled.Unary(ctx, "/s/m", nil, nil, nil, f.invoke) }
		require.Error(t, call(t.Context()))

		soon, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		err = call(soon)
		require.ErrorIs(t, err, throttle.ErrThrottled)
		require.Less(t, time.Since(began), time.Second, "it fails at once: the deadline is too near")

		require.NoError(t, call(t.Context()))
		require.GreaterOrEqual(t, f.at[1].Sub(began), 10*time.Second)
		require.LessOrEqual(t, f.at[1].Sub(began), 12*time.Second)
		require.Len(t, f.at, 2)

		// One that is cancelled in a pause is not sent.
		f.answers = []error{refusal(codes.Unavailable, 10*time.Second)}
		require.Error(t, call(t.Context()))
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		require.Equal(t, codes.Canceled, status.Code(call(ctx)))
		require.Len(t, f.at, 3)
	})
}

// A call that waits for its tokens when a pause begins waits for its end too, and draws again afterwards.
func TestAPauseThatBeginsWhileACallWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		grant := make(chan struct{})
		l := throttletest.New(throttletest.Grant(), throttletest.GrantOn(grant), throttletest.Grant())
		throttled, err := grpcthrottle.New(l)
		require.NoError(t, err)
		f := &fake{takes: time.Second, answers: []error{refusal(codes.Unavailable, 10*time.Second), nil}}
		began := time.Now()
		call := func() error { return throttled.Unary(t.Context(), "/s/m", nil, nil, nil, f.invoke) }
		first := make(chan error)
		go func() { first <- call() }()
		synctest.Wait()
		time.AfterFunc(5*time.Second, func() { close(grant) })
		second := make(chan error)
		go func() { second <- call() }()
		require.Error(t, <-first)
		require.NoError(t, <-second)
		require.GreaterOrEqual(t, f.at[1].Sub(began), 11*time.Second)
		require.Len(t, l.Draws(), 3)
		require.Equal(t, 2, l.Used())
	})
}

// A refusal without a time is followed by longer and longer waits, until a call is served.
func TestABackoffEndsWithAServedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := throttle.New(throttle.Limit{Max: 1000})
		require.NoError(t, err)
		defer func() { require.NoError(t, l.Close()) }()
		time.Sleep(time.Second)
		throttled, err := grpcthrottle.New(l)
		require.NoError(t, err)
		refused := refusal(codes.ResourceExhausted, 0)
		f := &fake{answers: []error{refused, refused, refused, nil, refused, nil}}
		for range 6 {
			_ = throttled.Unary(t.Context(), "/s/m", nil, nil, nil, f.invoke)
		}
		for i, want := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 0, 500 * time.Millisecond} {
			gap := f.at[i+1].Sub(f.at[i])
			require.GreaterOrEqual(t, gap, want)
			require.LessOrEqual(t, gap, want+want/5+10*time.Millisecond)
		}
	})
}

// A call whose time was spent waiting for tokens says so, with the status of its deadline.
func TestADeadlineThatWaitingUsedUp(t *testing.T) {
	for waits, throttled := range map[time.Duration]bool{9 * time.Second: true, 5 * time.Second: false} {
		synctest.Test(t, func(t *testing.T) {
			l, err := throttle.New(throttle.Limit{Max: 1, Per: 10 * time.Second, Burst: 1})
			require.NoError(t, err)
			defer func() { require.NoError(t, l.Close()) }()
			interceptor, err := grpcthrottle.New(l)
			require.NoError(t, err)
			time.Sleep(10*time.Second - waits)
			f := &fake{takes: time.Hour, answers: []error{nil}}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			err = interceptor.Unary(ctx, "/s/m", nil, nil, nil, f.invoke)
			require.Equal(t, codes.DeadlineExceeded, status.Code(err), "%v", err)
			require.Equal(t, throttled, errors.Is(err, throttle.ErrThrottled), "%v", err)
			require.Len(t, f.at, 1)
		})
	}
}

// Several limits, one after the other: the refusal of the inner one isn't the server's.
func TestLimitsInAChain(t *testing.T) {
	_, addr, _ := serve(t)
	outer, err := throttle.New(throttle.Limit{Max: 1000})
	require.NoError(t, err)
	defer func() { require.NoError(t, outer.Close()) }()
	first, err := grpcthrottle.New(outer)
	require.NoError(t, err)
	second, err := grpcthrottle.New(deny(&throttle.Error{Reason: throttle.ReasonLimit, RetryAfter: time.Minute}))
	require.NoError(t, err)
	client := connect(t, addr, first, second.DialOptions()...)
	_, err = client.UnaryCall(t.Context(), sized(1))
	require.ErrorIs(t, err, throttle.ErrThrottled)
	require.Nil(t, outer.Status().Paused)
	stream, err := client.StreamingOutputCall(t.Context(), message(1))
	require.ErrorIs(t, err, throttle.ErrThrottled)
	require.Nil(t, stream)
	require.Nil(t, outer.Status().Paused)
	require.Zero(t, outer.Status().Waiting)
}

// The options of a call reach gRPC.
func TestOptionsOfTheCallArePassedOn(t *testing.T) {
	_, addr, _ := serve(t)
	client := dial(t, addr, nil)
	var server peer.Peer
	_, err := client.UnaryCall(t.Context(), sized(1), grpc.Peer(&server))
	require.NoError(t, err)
	require.Equal(t, addr, server.Addr.String())
	server = peer.Peer{}
	ended := make(chan error, 1)
	stream, err := client.StreamingOutputCall(t.Context(), message(1), grpc.Peer(&server), grpc.OnFinish(func(err error) { ended <- err }))
	require.NoError(t, err)
	require.ErrorIs(t, drained(stream.Recv), io.EOF)
	require.NoError(t, <-ended)
	require.Equal(t, addr, server.Addr.String())
}
