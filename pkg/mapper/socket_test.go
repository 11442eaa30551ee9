package mapper_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/dataplane/sdkserver"
	"github.com/numaproj-contrib/numathrottle/pkg/mapper"
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

func dial(tb testing.TB, server *sdkserver.Server) *dataplane.Map {
	tb.Helper()
	m, err := dataplane.Dial(testContext(tb), server.Socket)
	require.NoError(tb, err)
	tb.Cleanup(m.Abort)
	return m
}

func eventually(tb testing.TB, condition func() bool, what string) {
	tb.Helper()
	require.Eventually(tb, condition, testTimeout, time.Millisecond, what)
}

// echo forwards its input; it drops "drop" and panics on "panic".
func echo(_ context.Context, _ []string, d mapsdk.Datum) mapsdk.Messages {
	switch value := string(d.Value()); value {
	case "drop":
		return mapsdk.MessagesBuilder().Append(mapsdk.MessageToDrop())
	case "panic":
		panic("sibling")
	default:
		return mapsdk.MessagesBuilder().Append(forward(value))
	}
}

func do(tb testing.TB, m *dataplane.Map, value string) ([]dataplane.Result, error) {
	tb.Helper()
	return m.Do(testContext(tb), dataplane.Message{Value: []byte(value)})
}

// doAll sends n messages at once and returns a channel that gets one error for each.
func doAll(tb testing.TB, m *dataplane.Map, n int) <-chan error {
	tb.Helper()
	ctx, errs := testContext(tb), make(chan error, n)
	for i := range n {
		go func() {
			_, err := m.Do(ctx, dataplane.Message{Value: []byte(strconv.Itoa(i))})
			errs <- err
		}()
	}
	return errs
}

func TestSocketOneMessagePassesForEachToken(t *testing.T) {
	tokens := make(chan struct{})
	l := throttletest.New(throttletest.GrantOn(tokens))
	m := dial(t, sdkserver.Start(t, mapper.Wrap(mapsdk.MapperFunc(echo), l)))
	const n = 30
	errs := doAll(t, m, n)
	for passed := range n {
		eventually(t, func() bool { return l.Waiting() == n-passed }, "the others wait")
		require.Equal(t, passed, m.Stats().Answered)
		tokens <- struct{}{}
		require.NoError(t, <-errs)
	}
	require.NoError(t, m.Close())
	require.Equal(t, dataplane.Stats{Sent: n, Answered: n}, m.Stats())
}

func TestSocketRateOfAThrottle(t *testing.T) {
	const rate, n, burst = 200, 60, 1
	l, err := throttle.New(throttle.Limit{Max: rate, Burst: burst})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	var mu sync.Mutex
	var at []time.Time
	m := dial(t, sdkserver.Start(t, mapper.Wrap(mapsdk.MapperFunc(
		func(ctx context.Context, keys []string, d mapsdk.Datum) mapsdk.Messages {
			mu.Lock()
			defer mu.Unlock()
			at = append(at, time.Now())
			return echo(ctx, keys, d)
		}), l)))
	began := time.Now()
	errs := doAll(t, m, n)
	for range n {
		require.NoError(t, <-errs)
	}
	took := time.Since(began)
	require.GreaterOrEqual(t, took, (n-burst)*time.Second/rate, "%d messages", n)
	require.Less(t, took, 10*n*time.Second/rate, "%d messages", n)
	require.Len(t, at, n)
}

func TestSocketCostAndExemptDropped(t *testing.T) {
	l := throttletest.New()
	m := dial(t, sdkserver.Start(t, mapper.Wrap(mapsdk.MapperFunc(echo), l, mapper.ExemptDropped(),
		mapper.WithCost(func(_ []string, d mapsdk.Datum) int { return len(d.Value()) }))))
	for _, c := range []struct {
		value string
		used  int
	}{{"abc", 3}, {"drop", 3}, {"", 3}, {"abcdef", 9}} {
		got, err := do(t, m, c.value)
		require.NoError(t, err)
		require.Len(t, got, 1)
		require.Equal(t, c.value == "drop", got[0].Drop)
		require.Equal(t, c.used, l.Used(), "after %q", c.value)
	}
	require.NoError(t, m.Close())
}

func TestSocketALostConnectionEndsTheWaitAndTheServerGoesOn(t *testing.T) {
	const n = 100
	tokens := make(chan struct{}, 1)
	l := throttletest.New(throttletest.GrantOn(tokens))
	server := sdkserver.Start(t, mapper.Wrap(mapsdk.MapperFunc(echo), l))
	m := dial(t, server)
	tokens <- struct{}{}
	_, err := do(t, m, "first")
	require.NoError(t, err)
	lost := doAll(t, m, n)
	eventually(t, func() bool { return l.Waiting() == n }, "all wait")
	m.Abort()
	for range n {
		require.ErrorIs(t, <-lost, dataplane.ErrBroken)
	}
	require.Equal(t, dataplane.Stats{Sent: n + 1, Answered: 1, Failed: n}, m.Stats())
	eventually(t, func() bool { return l.Waiting() == 0 }, "no wait outlives its stream")
	require.Equal(t, 1, l.Used())

	again := dial(t, server)
	redelivered := doAll(t, again, n)
	eventually(t, func() bool { return l.Waiting() == n }, "delivered again")
	close(tokens)
	for range n {
		require.NoError(t, <-redelivered)
	}
	require.NoError(t, again.Close())
	select {
	case <-server.Ended():
		require.Fail(t, "the server ended")
	default:
	}
}

// A wrapper outside that cancels the context of one message.
func TestSocketACancelledMessageIsNeverAnsweredAndOthersAre(t *testing.T) {
	l := throttletest.New(throttletest.Block(), throttletest.Grant())
	wrapped := mapper.Wrap(mapsdk.MapperFunc(echo), l)
	cancelled := make(chan struct{})
	exited := make(chan struct{})
	m := dial(t, sdkserver.Start(t, mapsdk.MapperFunc(
		func(ctx context.Context, keys []string, d mapsdk.Datum) mapsdk.Messages {
			if string(d.Value()) != "0" {
				return wrapped.Map(ctx, keys, d)
			}
			defer close(exited)
			ctx, cancel := context.WithCancel(ctx)
			go func() {
				<-cancelled
				cancel()
			}()
			return wrapped.Map(ctx, keys, d)
		})))
	left := doAll(t, m, 1)
	eventually(t, func() bool { return l.Waiting() == 1 }, "it waits")
	id := m.Outstanding()
	require.Len(t, id, 1)
	close(cancelled)
	<-exited
	for range 200 {
		_, err := do(t, m, "other")
		require.NoError(t, err)
	}
	require.Equal(t, id, m.Outstanding(), "no answer to this one, ever")
	m.Abort()
	require.ErrorIs(t, <-left, dataplane.ErrBroken)
}

func TestSocketACostThatCanNeverBeGrantedIsNacked(t *testing.T) {
	l, err := throttle.New(throttle.Limit{Max: 10})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	server := sdkserver.Start(t, mapper.Wrap(mapsdk.MapperFunc(echo), l, mapper.WithCost(func(_ []string, d mapsdk.Datum) int {
		if string(d.Value()) == "large" {
			return 1e12
		}
		return 1
	})))
	m := dial(t, server)
	out, err := do(t, m, "large")
	require.NoError(t, err)
	require.Len(t, out, 1)
	require.True(t, out[0].Nack)
	require.Contains(t, out[0].NackOptions.Reason, "can never be granted")
	out, err = do(t, m, "small")
	require.NoError(t, err, "the stream goes on")
	require.False(t, out[0].Nack)
	require.Equal(t, dataplane.Stats{Sent: 2, Answered: 2}, m.Stats())
}

// slowAnswers keeps numaflow-go's sender busy while a sibling panics: only then
// does it have a chance to send what the waiting handlers return.
const (
	slowAnswers = 4
	slowSize    = 1 << 20
	waiters     = 20
)

// siblingPanics lets a handler panic while others wait for tokens and answers are
// being sent, and returns how many of those that waited were answered.
func siblingPanics(t *testing.T, wrap func(mapsdk.Mapper, throttle.Limiter) mapsdk.Mapper) (answered int) {
	t.Helper()
	gate, arrived := make(chan struct{}), make(chan struct{}, slowAnswers)
	slow := strings.Repeat("x", slowSize)
	l := throttletest.New(throttletest.Block())
	throttled := wrap(mapsdk.MapperFunc(echo), l)
	server := sdkserver.Start(t, mapsdk.MapperFunc(
		func(ctx context.Context, keys []string, d mapsdk.Datum) mapsdk.Messages {
			switch string(d.Value()) {
			case "slow":
				arrived <- struct{}{}
				<-gate
				return mapsdk.MessagesBuilder().Append(forward(slow))
			case "panic":
				return echo(ctx, keys, d)
			default:
				return throttled.Map(ctx, keys, d)
			}
		}))
	m := dial(t, server)
	errs := doAll(t, m, waiters)
	eventually(t, func() bool { return l.Waiting() == waiters }, "all wait")
	ctx, slowErrs := testContext(t), make(chan error, slowAnswers)
	for range slowAnswers {
		go func() {
			_, err := m.Do(ctx, dataplane.Message{Value: []byte("slow")})
			slowErrs <- err
		}()
		<-arrived
	}
	close(gate)
	require.NoError(t, <-slowErrs)
	_, err := do(t, m, "panic")
	require.ErrorIs(t, err, dataplane.ErrBroken)
	for range waiters {
		if <-errs == nil {
			answered++
		}
	}
	m.Abort()
	return answered
}

func TestSocketASiblingsPanicYieldsNoMadeUpAnswers(t *testing.T) {
	rounds := 200
	if testing.Short() {
		rounds = 20
	}
	t.Run("wrapped", func(t *testing.T) {
		for round := range rounds {
			t.Run(fmt.Sprint(round), func(t *testing.T) {
				require.Zero(t, siblingPanics(t, func(next mapsdk.Mapper, l throttle.Limiter) mapsdk.Mapper {
					return mapper.Wrap(next, l)
				}))
			})
		}
	})
	// The same with a wrapper that returns an empty result when its wait ends: it
	// shows that the rounds above can fail.
	t.Run("control", func(t *testing.T) {
		for round, made := 0, 0; made == 0; round++ {
			require.Less(t, round, 10*rounds, "the control never sent a made-up answer")
			t.Run(fmt.Sprint(round), func(t *testing.T) {
				made = siblingPanics(t, func(next mapsdk.Mapper, l throttle.Limiter) mapsdk.Mapper {
					return mapsdk.MapperFunc(func(ctx context.Context, keys []string, d mapsdk.Datum) mapsdk.Messages {
						if _, err := l.Acquire(ctx, 1); err != nil {
							return mapsdk.MessagesBuilder()
						}
						return next.Map(ctx, keys, d)
					})
				})
			})
		}
	})
}
