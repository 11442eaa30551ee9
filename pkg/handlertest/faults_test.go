package handlertest

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"

	mappb "github.com/numaproj/numaflow-go/pkg/apis/proto/map/v1"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
)

// A faulty is a unary map with faults, which the value of a message asks for.
type faulty struct {
	mappb.UnimplementedMapServer
}

func (faulty) IsReady(context.Context, *emptypb.Empty) (*mappb.ReadyResponse, error) {
	return &mappb.ReadyResponse{Ready: true}, nil
}

func (faulty) MapFn(stream mappb.Map_MapFnServer) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	if err := stream.Send(&mappb.MapResponse{Handshake: &mappb.Handshake{Sot: true}}); err != nil {
		return err
	}
	for {
		req, err := stream.Recv()
		if err != nil {
			return nil //nolint:nilerr // the other side has ended the stream
		}
		answer := &mappb.MapResponse{Id: req.GetId(), Results: []*mappb.MapResponse_Result{{Value: []byte("ok")}}}
		switch string(req.GetRequest().GetValue()) {
		case "ok":
		case "twice":
			_ = stream.Send(answer)
		case "never":
			continue
		case "unknown":
			answer.Id = "somebody else"
		case "end":
			return nil
		}
		_ = stream.Send(answer)
	}
}

// dialFaulty serves a faulty, and connects to it.
func dialFaulty(t *testing.T) *Handler {
	t.Helper()
	dir := dataplane.Dir(t)
	path := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", path)
	require.NoError(t, err)
	server := grpc.NewServer()
	mappb.RegisterMapServer(server, faulty{})
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		require.NoError(t, <-served)
	})
	h, err := Dial(within(t), path)
	require.NoError(t, err)
	return h
}

// What one who has written a faulty handler is told.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		msgs  []string
		wants string // of the call, or of Close when it comes after the call
	}{
		{
			[]string{"unknown"},
			`the handler broke the protocol: message 0-1: stream broke: unknown ID: an answer to "somebody else", which was never sent`,
		},
		{[]string{"twice"}, `the handler broke the protocol: close stream: stream broke: duplicate ID: a second answer to "0-1"`},
		{[]string{"end"}, `the handler broke the protocol: message 0-1: stream broke: missing ID: ended without an answer to "0-1"`},
	} {
		t.Run(fmt.Sprint(c.msgs), func(t *testing.T) {
			h := dialFaulty(t)
			_, err := h.Map(within(t), values(c.msgs...)...)
			if err == nil {
				err = h.Close()
				require.EqualError(t, err, c.wants)
			} else {
				require.EqualError(t, err, "msgs[0] of 1: "+c.wants)
				_, again := h.Map(within(t), values("ok")...)
				require.ErrorIs(t, again, ErrProtocol, "the stream is over")
				require.ErrorIs(t, h.Close(), ErrProtocol)
			}
			require.ErrorIs(t, err, ErrProtocol)
			require.ErrorIs(t, err, ErrBroken)
		})
	}
}

// A call is not held for ever, says which message has no answer, and returns those of the others.
func TestNeverAnswered(t *testing.T) {
	h := dialFaulty(t)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	results, err := h.Map(ctx, values("ok", "never", "ok", "never")...)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, ErrProtocol)
	require.Regexp(t, `^msgs\[1\] of 4, and 1 more: message \d-1: no answer yet: context deadline exceeded$`, err.Error())
	require.Equal(t, "[[ok] [] [ok] []]", texts(results))
	require.ErrorContains(t, h.Close(), "close stream: no answer within 1s to ")
}

// Without a deadline a call has one of its own.
func TestCallsAreBounded(t *testing.T) {
	ctx, cancel := bounded(context.Background())
	defer cancel()
	deadline, ok := ctx.Deadline()
	require.True(t, ok)
	require.LessOrEqual(t, time.Until(deadline), callTimeout)
	short, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	same, done := bounded(short)
	done()
	require.Equal(t, short, same)
	require.NoError(t, same.Err(), "it is the caller's")
}

// A recorder is a test that may fail.
type recorder struct {
	testing.TB

	cleanups []func()
	errors   []string
}

func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func (r *recorder) end() {
	for _, cleanup := range slices.Backward(r.cleanups) {
		cleanup()
	}
}

// A test that did not look at the error fails at its end.
func TestStartFailsTheTest(t *testing.T) {
	r := &recorder{TB: t}
	h := Start(r, upper)
	_, err := h.Map(within(t), values("panic")...)
	require.ErrorIs(t, err, ErrBroken)
	require.NotErrorIs(t, err, ErrProtocol)
	require.ErrorContains(t, err, "no such thing")
	r.end()
	require.Len(t, r.errors, 1)
	require.Contains(t, r.errors[0], "handler mapper.MapperFunc: close stream: stream broke: ")
	require.Contains(t, r.errors[0], "no such thing")

	quiet := &recorder{TB: t}
	_, err = Start(quiet, upper).Map(within(t), values("a")...)
	require.NoError(t, err)
	quiet.end()
	require.Empty(t, quiet.errors)
}
