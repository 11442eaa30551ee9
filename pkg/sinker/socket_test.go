package sinker_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/dataplane/sdkserver"
	"github.com/numaproj-contrib/numathrottle/internal/short"
	"github.com/numaproj-contrib/numathrottle/pkg/sinker"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
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
func serve(tb testing.TB, s sinksdk.Sinker) (*sdkserver.Server, *dataplane.Sink) {
	tb.Helper()
	server := sdkserver.Start(tb, s)
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

func statuses(results []dataplane.SinkResult) []dataplane.SinkStatus {
	out := make([]dataplane.SinkStatus, len(results))
	for i, r := range results {
		out[i] = r.Status
	}
	return out
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

func TestSocketOneMessagePassesForEachToken(t *testing.T) {
	const n = 30
	tokens := make(chan struct{})
	l, h := throttletest.New(throttletest.GrantOn(tokens)), &handler{}
	_, k := serve(t, sinker.Wrap(h, l))
	done := make(chan error, 1)
	go func() {
		_, err := k.Do(testContext(t), messages(numbered(n)...))
		done <- err
	}()
	for passed := range n {
		eventually(t, func() bool { return l.Waiting() == 1 && len(h.Taken()) == passed }, "the next waits")
		tokens <- struct{}{}
	}
	require.NoError(t, <-done)
	require.NoError(t, k.Close())
	require.Equal(t, dataplane.Stats{Sent: n, Answered: n}, k.Stats())
}

func TestSocketRateOfAThrottle(t *testing.T) {
	const rate, n, burst = 200, 60, 1
	l, err := throttle.New(throttle.Limit{Max: rate, Burst: burst})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	for name, opts := range map[string][]sinker.Option{"": nil, "tags": {sinker.WithTag(sinker.TagFromHeader("tag"))}} {
		h := &handler{}
		_, k := serve(t, sinker.Wrap(h, l, opts...))
		began := time.Now()
		for range 2 {
			_, err := k.Do(testContext(t), messages(numbered(n/2)...))
			require.NoError(t, err)
		}
		took := time.Since(began)
		require.GreaterOrEqual(t, took, (n-burst-1)*time.Second/rate, "%d messages %s", n, name)
		require.Less(t, took, 10*n*time.Second/rate, "%d messages %s", n, name)
		require.Len(t, h.Taken(), n)
	}
}

func TestSocketDenied(t *testing.T) {
	for name, c := range map[string]struct {
		action sinker.Action
		check  func(t *testing.T, w dataplane.Written)
	}{
		"nack": {sinker.Nack(), func(t *testing.T, w dataplane.Written) {
			require.True(t, w.Nack)
			require.GreaterOrEqual(t, w.NackOptions.Delay, 100*time.Millisecond)
			require.LessOrEqual(t, w.NackOptions.Delay, 126*time.Millisecond)
			require.Equal(t, "throttled (limit)", w.NackOptions.Reason)
			require.Zero(t, w.Retries)
		}},
		"fallback": {sinker.Fallback(), func(t *testing.T, w dataplane.Written) {
			require.False(t, w.Nack)
			require.Equal(t, dataplane.SinkFallback, w.Main.Status)
			require.Equal(t, dataplane.SinkSuccess, w.Routed.Status)
		}},
		"fail": {sinker.Fail(), func(t *testing.T, w dataplane.Written) {
			require.Equal(t, 1, w.Retries)
			require.Equal(t, dataplane.SinkSuccess, w.Main.Status)
		}},
		"drop": {sinker.Drop(), func(t *testing.T, w dataplane.Written) {
			require.Zero(t, w.Retries)
			require.Equal(t, dataplane.SinkSuccess, w.Main.Status)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			l := throttletest.New(throttletest.Grant(), throttletest.Deny(nil), throttletest.Grant())
			h := &handler{}
			_, main := serve(t, sinker.Wrap(h, l, sinker.WithMaxWait(time.Second), sinker.OnDenied(c.action)))
			_, fallback := serve(t, &handler{})
			written, err := (&dataplane.SinkWriter{Main: main, Fallback: fallback}).Write(testContext(t), messages("a", "b", "c"))
			require.NoError(t, err)
			c.check(t, written[1])
			for _, i := range []int{0, 2} {
				require.Equal(t, dataplane.SinkSuccess, written[i].Main.Status)
				require.Zero(t, written[i].Retries)
			}
		})
	}
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

func TestSocketAPanicFailsTheStreamWithTheCause(t *testing.T) {
	for name, opts := range map[string][]sinker.Option{"": nil, "tags": {sinker.WithTag(sinker.TagFromHeader("tag"))}} {
		t.Run(name, func(t *testing.T) {
			l := throttletest.New(throttletest.Grant(), throttletest.Grant(), throttletest.Block())
			server, k := serve(t, sinker.Wrap(sinksdk.SinkerFunc(router), l, opts...))
			_, err := k.Do(testContext(t), messages("store", "panic", "store", "other", "store"))
			require.ErrorIs(t, err, dataplane.ErrBroken)
			require.ErrorContains(t, err, "the handler's own")
			require.Equal(t, dataplane.Stats{Sent: 5, Failed: 5}, k.Stats())
			eventually(t, func() bool { return l.Waiting() == 0 }, "no wait outlives its stream")
			require.Equal(t, 2, l.Used())
			select {
			case <-server.Ended():
			case <-testContext(t).Done():
				require.Fail(t, "the server goes on")
			}
		})
	}
}

func TestSocketACostFunctionThatPanics(t *testing.T) {
	_, k := serve(t, sinker.Wrap(&handler{}, throttletest.New(), sinker.WithCost(func(sinksdk.Datum) int { panic("the cost's own") })))
	_, err := k.Do(testContext(t), messages("a", "b"))
	require.ErrorIs(t, err, dataplane.ErrBroken)
	require.ErrorContains(t, err, "the cost's own")
}

func TestSocketALostConnectionEndsTheWaitAndNothingIsLost(t *testing.T) {
	const n = 100
	for name, opts := range map[string][]sinker.Option{
		"":     nil,
		"tags": {sinker.WithTag(sinker.TagFromHeader("tag"))},
		"drop": {sinker.WithMaxWait(time.Hour), sinker.OnDenied(sinker.Drop())},
	} {
		t.Run(name, func(t *testing.T) {
			tokens := make(chan struct{}, 1)
			l, h := throttletest.New(throttletest.GrantOn(tokens)), &handler{}
			s := sinker.Wrap(h, l, opts...)
			_, k := serve(t, s)
			tokens <- struct{}{}
			lost := make(chan error, 1)
			go func() {
				_, err := k.Do(testContext(t), messages(numbered(n)...))
				lost <- err
			}()
			eventually(t, func() bool { return len(h.Taken()) == 1 && l.Waiting() > 0 }, "the rest waits")
			k.Abort()
			require.ErrorIs(t, <-lost, dataplane.ErrBroken)
			require.Equal(t, dataplane.Stats{Sent: n, Failed: n}, k.Stats())
			eventually(t, func() bool { return l.Waiting() == 0 }, "no wait outlives its stream")

			// numaflow-go ends a server that cannot send the answers to a batch.
			_, again := serve(t, s)
			close(tokens)
			results, err := again.Do(testContext(t), messages(numbered(n)...))
			require.NoError(t, err)
			require.Len(t, results, n)
			require.NoError(t, again.Close())
			require.Len(t, h.Taken(), n+1, "delivered again, with the one that was handled")
			require.Equal(t, n+1, l.Used())
		})
	}
}

// Batches of every size, one after the other, on one stream.
func TestSocketManyBatches(t *testing.T) {
	short.Skip(t, "thousands of batches")
	for name, opts := range map[string][]sinker.Option{"": nil, "tags": {sinker.WithTag(sinker.TagFromHeader("tag"))}} {
		l, err := throttle.New(throttle.Limit{Max: 20_000, Burst: 1})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, l.Close()) })
		h := &handler{}
		_, k := serve(t, sinker.Wrap(h, l, opts...))
		sent := 0
		for size := range 100 {
			var values []string
			for i := range size {
				values = append(values, fmt.Sprintf("%c:%d", 'a'+rune(i%7), i))
			}
			results, err := k.Do(testContext(t), messages(values...))
			require.NoError(t, err)
			for _, status := range statuses(results) {
				require.Equal(t, dataplane.SinkSuccess, status)
			}
			sent += size
		}
		require.NoError(t, k.Close())
		require.Len(t, h.Taken(), sent, name)
		require.Equal(t, dataplane.Stats{Sent: sent, Answered: sent}, k.Stats(), name)
	}
}
