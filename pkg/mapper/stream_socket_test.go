package mapper_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	mapstreamsdk "github.com/numaproj/numaflow-go/pkg/mapstreamer"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/dataplane/sdkserver"
	"github.com/numaproj-contrib/numathrottle/pkg/mapper"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

func dialStream(tb testing.TB, server *sdkserver.Server) *dataplane.MapStream {
	tb.Helper()
	m, err := dataplane.DialMapStream(testContext(tb), server.Socket)
	require.NoError(tb, err)
	tb.Cleanup(m.Abort)
	return m
}

// goStream sends n messages at once and returns a channel that gets one error for
// each.
func goStream(tb testing.TB, m *dataplane.MapStream, n int, value string) <-chan error {
	tb.Helper()
	ctx, errs := testContext(tb), make(chan error, n)
	for range n {
		go func() {
			_, err := m.Do(ctx, dataplane.Message{Value: []byte(value)})
			errs <- err
		}()
	}
	return errs
}

// echoStream writes as many outputs as the payload says, panics on "panic", and on
// "wait" writes one output and waits for the context.
var echoStream = mapstreamsdk.MapStreamerFunc(
	func(ctx context.Context, _ []string, d mapstreamsdk.Datum, to chan<- mapstreamsdk.Message) {
		defer close(to)
		switch value := string(d.Value()); value {
		case "panic":
			panic("mine")
		case "wait":
			select { // numaflow-go does not read any more when the context has ended
			case to <- mapstreamsdk.NewMessage(nil):
			case <-ctx.Done():
			}
			<-ctx.Done()
		default:
			n, _ := strconv.Atoi(value)
			for i := range n {
				to <- mapstreamsdk.NewMessage([]byte(strconv.Itoa(i)))
			}
		}
	})

func TestSocketStreamOneMessagePassesForEachToken(t *testing.T) {
	tokens := make(chan struct{})
	l := throttletest.New(throttletest.GrantOn(tokens))
	m := dialStream(t, sdkserver.Start(t, mapper.WrapStream(echoStream, l)))
	const n = 20
	errs := goStream(t, m, n, "3")
	for passed := range n {
		eventually(t, func() bool { return l.Waiting() == n-passed }, "the others wait")
		tokens <- struct{}{}
		require.NoError(t, <-errs)
	}
	require.NoError(t, m.Close())
	require.Equal(t, dataplane.Stats{Sent: n, Answered: n}, m.Stats())
}

func TestSocketStreamPerOutput(t *testing.T) {
	tokens := make(chan struct{})
	l := throttletest.New(throttletest.GrantOn(tokens))
	m := dialStream(t, sdkserver.Start(t, mapper.WrapStream(echoStream, l, mapper.PerOutput())))
	came := make(chan string)
	done := make(chan error, 1)
	go func() {
		_, err := m.DoEach(testContext(t), dataplane.Message{Value: []byte("4")}, func(r dataplane.Result) { came <- string(r.Value) })
		done <- err
	}()
	for i := range 4 {
		eventually(t, func() bool { return l.Waiting() == 1 }, "the next output waits")
		require.Empty(t, done)
		tokens <- struct{}{}
		require.Equal(t, strconv.Itoa(i), <-came)
	}
	require.NoError(t, <-done)
	require.NoError(t, m.Close())
}

func TestSocketStreamDenied(t *testing.T) {
	l := throttletest.New(throttletest.Deny(throttled()), throttletest.Grant())
	m := dialStream(t, sdkserver.Start(t, mapper.WrapStream(echoStream, l, mapper.WithMaxWait(time.Second), mapper.OnDenied(mapper.Nack()))))
	got, err := m.Do(testContext(t), dataplane.Message{Value: []byte("2")})
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.True(t, got[0].Nack)
	got, err = m.Do(testContext(t), dataplane.Message{Value: []byte("2")})
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.NoError(t, m.Close())
}

func TestSocketStreamALostConnectionEndsTheWaitAndTheServerGoesOn(t *testing.T) {
	const n = 50
	tokens := make(chan struct{})
	l := throttletest.New(throttletest.GrantOn(tokens))
	server := sdkserver.Start(t, mapper.WrapStream(echoStream, l))
	m := dialStream(t, server)
	lost := goStream(t, m, n, "1")
	eventually(t, func() bool { return l.Waiting() == n }, "all wait")
	m.Abort()
	for range n {
		require.ErrorIs(t, <-lost, dataplane.ErrBroken)
	}
	eventually(t, func() bool { return l.Waiting() == 0 }, "no wait outlives its stream")
	again := dialStream(t, server)
	redelivered := goStream(t, again, n, "1")
	close(tokens)
	for range n {
		require.NoError(t, <-redelivered)
	}
	require.NoError(t, again.Close())
}

// streamFails has a handler panic while others wait for their context, all of which
// close their channels in a deferred function, and returns how many were answered
// nevertheless.
func streamFails(t *testing.T, wrap func(mapstreamsdk.MapStreamer, throttle.Limiter) mapstreamsdk.MapStreamer) (answered int) {
	t.Helper()
	l := throttletest.New()
	server := sdkserver.Start(t, wrap(echoStream, l))
	m := dialStream(t, server)
	const waiters = 20
	errs := goStream(t, m, waiters, "wait")
	eventually(t, func() bool { return m.Stats().Sent == waiters }, "all sent")
	_, err := m.Do(testContext(t), dataplane.Message{Value: []byte("panic")})
	if err == nil {
		answered++
	}
	for range waiters {
		if <-errs == nil {
			answered++
		}
	}
	m.Abort()
	return answered
}

func TestSocketStreamNoAnswerEndsByAPanic(t *testing.T) {
	rounds := 50
	if testing.Short() {
		rounds = 10
	}
	for name, opts := range map[string][]mapper.StreamOption{"per message": nil, "per output": {mapper.PerOutput()}} {
		t.Run(name, func(t *testing.T) {
			for round := range rounds {
				t.Run(fmt.Sprint(round), func(t *testing.T) {
					require.Zero(t, streamFails(t, func(next mapstreamsdk.MapStreamer, l throttle.Limiter) mapstreamsdk.MapStreamer {
						return mapper.WrapStream(next, l, opts...)
					}))
				})
			}
		})
	}
	// The same without the wrapper: it shows that the rounds above can fail.
	t.Run("control", func(t *testing.T) {
		for round, made := 0, 0; made == 0; round++ {
			require.Less(t, round, 10*rounds, "the bare handler never ended an answer by its panic")
			t.Run(fmt.Sprint(round), func(t *testing.T) {
				made = streamFails(t, func(next mapstreamsdk.MapStreamer, _ throttle.Limiter) mapstreamsdk.MapStreamer { return next })
			})
		}
	})
}
