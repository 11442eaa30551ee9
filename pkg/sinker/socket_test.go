package sinker_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/pkg/sinker"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

const testTimeout = 20 * time.Second

func testContext(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	tb.Cleanup(cancel)
	return ctx
}

// serve starts a real server for the handler and opens a stream to it.
func serve(tb testing.TB, s sinksdk.Sinker) (*dataplane.Server, *dataplane.Sink) {
	tb.Helper()
	server := dataplane.Serve(tb, s)
	k, err := dataplane.DialSink(testContext(tb), server.Socket)
	require.NoError(tb, err)
	tb.Cleanup(k.Abort)
	return server, k
}

func eventually(tb testing.TB, condition func() bool, what string) {
	tb.Helper()
	require.Eventually(tb, condition, testTimeout, time.Millisecond, what)
}

func messages(values ...string) []dataplane.Message {
	out := make([]dataplane.Message, len(values))
	for i, v := range values {
		out[i] = dataplane.Message{Value: []byte(v), Headers: map[string]string{"tag": strings.SplitN(v, ":", 2)[0]}}
	}
	return out
}

// router does what the payload says.
func router(_ context.Context, data <-chan sinksdk.Datum) sinksdk.Responses {
	responses := sinksdk.ResponsesBuilder()
	for d := range data {
		switch strings.SplitN(string(d.Value()), ":", 2)[0] {
		case "fallback":
			responses = responses.Append(sinksdk.ResponseFallback(d.ID()))
		case "notify":
			responses = responses.Append(sinksdk.ResponseOnSuccess(d.ID(), sinksdk.NewMessage([]byte("stored"))))
		case "panic":
			panic("the handler's own")
		default:
			responses = responses.Append(sinksdk.ResponseOK(d.ID()))
		}
	}
	return responses
}

// The same handler, wrapped alike, behind each of the three sockets of one vertex,
// with one limit for all.
func TestSocketMainFallbackAndOnSuccessSink(t *testing.T) {
	l, plain := throttletest.New(), &handler{}
	_, main := serve(t, sinker.Wrap(sinksdk.SinkerFunc(router), l))
	_, fallback := serve(t, sinker.Wrap(plain, l))
	_, onSuccess := serve(t, sinker.Wrap(plain, l))
	w := &dataplane.SinkWriter{Main: main, Fallback: fallback, OnSuccess: onSuccess}
	for range 3 {
		written, err := w.Write(testContext(t), messages("store", "fallback", "notify", "store"))
		require.NoError(t, err)
		require.Len(t, written, 4)
		for i, routed := range []dataplane.SinkStatus{"", dataplane.SinkSuccess, dataplane.SinkSuccess, ""} {
			require.False(t, written[i].Nack)
			require.Zero(t, written[i].Retries)
			require.Equal(t, routed, written[i].Routed.Status)
		}
	}
	require.Equal(t, 3*(4+2), l.Used())
	require.Len(t, plain.Taken(), 3*2)
}

// forgetful leaves out every third response, gives the first twice, and one that
// nobody asked for, until it has done so once.
type forgetful struct{ done atomic.Bool }

func (f *forgetful) Sink(ctx context.Context, data <-chan sinksdk.Datum) sinksdk.Responses {
	all := (&handler{}).Sink(ctx, data)
	if f.done.Swap(true) {
		return all
	}
	out := append(sinksdk.Responses{}, all[0], sinksdk.ResponseOK("unknown"))
	for i, r := range all {
		if i%3 != 2 {
			out = append(out, r)
		}
	}
	return out
}

func TestSocketResponsesThatDoNotMatchTheBatch(t *testing.T) {
	t.Run("control", func(t *testing.T) { // the handler alone breaks the stream
		_, main := serve(t, &forgetful{})
		_, err := (&dataplane.SinkWriter{Main: main}).Write(testContext(t), messages(numbered(9)...))
		require.ErrorIs(t, err, dataplane.ErrBroken)
	})
	t.Run("wrapped", func(t *testing.T) {
		_, main := serve(t, sinker.Wrap(&forgetful{}, throttletest.New()))
		written, err := (&dataplane.SinkWriter{Main: main}).Write(testContext(t), messages(numbered(9)...))
		require.NoError(t, err)
		for i, w := range written {
			require.Equal(t, dataplane.SinkSuccess, w.Main.Status)
			require.Equal(t, i%3 == 2, w.Retries == 1, "message %d was tried %d times again", i, w.Retries)
		}
		require.NoError(t, main.Close())
	})
}

// earlyOnce returns after two messages, the first time.
type earlyOnce struct{ done atomic.Bool }

func (e *earlyOnce) Sink(ctx context.Context, data <-chan sinksdk.Datum) sinksdk.Responses {
	if e.done.Swap(true) {
		return (&handler{}).Sink(ctx, data)
	}
	return quitter(2, nil).Sink(ctx, data)
}

func TestSocketAHandlerThatReturnsEarly(t *testing.T) {
	t.Run("control", func(t *testing.T) { // the handler alone wedges the stream
		_, k := serve(t, &earlyOnce{})
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err := k.Do(ctx, messages(numbered(50)...))
		require.Error(t, err)
	})
	for name, opts := range map[string][]sinker.Option{"": nil, "tags": {sinker.WithTag(sinker.TagFromHeader("tag"))}} {
		t.Run("wrapped"+name, func(t *testing.T) {
			l := throttletest.New()
			_, k := serve(t, sinker.Wrap(&earlyOnce{}, l, opts...))
			written, err := (&dataplane.SinkWriter{Main: k}).Write(testContext(t), messages(numbered(50)...))
			require.NoError(t, err)
			retried := 0
			for _, w := range written {
				retried += w.Retries
			}
			require.Equal(t, 48, retried)
			require.Equal(t, 50, l.Used())
			require.NoError(t, k.Close())
		})
	}
}
