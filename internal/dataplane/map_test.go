package dataplane

import (
	"context"
	"errors"
	"io"
	"log"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
)

const testTimeout = 20 * time.Second

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // numaflow-go logs every panic with its stack
	os.Exit(m.Run())
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

func dialMap(t *testing.T, socket string, opts ...Option) *Map {
	t.Helper()
	m, err := Dial(testContext(t), socket, opts...)
	require.NoError(t, err)
	t.Cleanup(m.Abort)
	return m
}

func serve(t *testing.T, h mapsdk.MapperFunc, opts ...Option) *Map {
	t.Helper()
	return dialMap(t, Serve(t, h).Socket, opts...)
}

func eventually(t *testing.T, condition func() bool, what string) {
	t.Helper()
	require.Eventually(t, condition, testTimeout, time.Millisecond, what)
}

func echo(_ context.Context, keys []string, d mapsdk.Datum) mapsdk.Messages {
	return mapsdk.MessagesBuilder().Append(mapsdk.NewMessage(d.Value()).WithKeys(keys))
}

// gated returns a handler that answers with its input once the gate is closed,
// or never when its context ends before.
func gated(gate <-chan struct{}) mapsdk.MapperFunc {
	return func(ctx context.Context, keys []string, d mapsdk.Datum) mapsdk.Messages {
		select {
		case <-gate:
			return echo(ctx, keys, d)
		case <-ctx.Done():
			panic("context ended")
		}
	}
}

func TestAnswersMayComeInAnyOrder(t *testing.T) {
	const n = 20
	var gates [n]chan struct{}
	for i := range gates {
		gates[i] = make(chan struct{})
	}
	m := serve(t, func(ctx context.Context, keys []string, d mapsdk.Datum) mapsdk.Messages {
		i, _ := strconv.Atoi(string(d.Value()))
		return gated(gates[i])(ctx, keys, d)
	})
	answered := make(chan string, n)
	for i := range n {
		go func() {
			got, err := m.Do(testContext(t), Message{Value: []byte(strconv.Itoa(i))})
			if err != nil {
				answered <- err.Error()
				return
			}
			answered <- string(got[0].Value)
		}()
	}
	for i := n - 1; i >= 0; i-- {
		close(gates[i])
		require.Equal(t, strconv.Itoa(i), <-answered)
	}
}

func TestConcurrencyBoundsWhatIsInFlight(t *testing.T) {
	gate := make(chan struct{})
	m := serve(t, gated(gate), WithConcurrency(3))
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() { _, _ = m.Do(testContext(t), Message{}) })
	}
	eventually(t, func() bool { return len(m.Outstanding()) == 3 }, "three in flight")

	ctx, cancel := context.WithTimeout(testContext(t), 20*time.Millisecond)
	defer cancel()
	_, err := m.Do(ctx, Message{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, ErrNotSent)
	require.Equal(t, Stats{Sent: 3, Outstanding: 3}, m.Stats())

	close(gate)
	wg.Wait()
	require.Equal(t, Stats{Sent: 3, Answered: 3}, m.Stats())
	require.Empty(t, m.Outstanding())
}

func TestDefaultConcurrencyIsThePlatforms(t *testing.T) {
	gate := make(chan struct{})
	defer close(gate)
	m := serve(t, gated(gate))
	for range 510 {
		go func() { _, _ = m.Do(context.Background(), Message{}) }()
	}
	eventually(t, func() bool { return m.Stats().Sent == 500 }, "500 in flight")
	require.Never(t, func() bool { return m.Stats().Sent > 500 }, 20*time.Millisecond, time.Millisecond)
}

func TestCallerMayLeaveAndTheMessageStaysInFlight(t *testing.T) {
	gate := make(chan struct{})
	m := serve(t, gated(gate), WithConcurrency(1))
	cause := errors.New("caller left")
	ctx, cancel := context.WithCancelCause(testContext(t))
	left := make(chan error, 1)
	go func() {
		_, err := m.Do(ctx, Message{})
		left <- err
	}()
	eventually(t, func() bool { return m.Stats().Sent == 1 }, "sent")
	cancel(cause)
	err := <-left
	require.ErrorIs(t, err, cause)
	require.Equal(t, []string{"0-1"}, m.Outstanding())
	require.ErrorContains(t, err, "message 0-1")

	close(gate)
	eventually(t, func() bool { return m.Stats() == Stats{Sent: 1, Answered: 1, Late: 1} }, "late answer")
	got, err := m.Do(testContext(t), Message{Value: []byte("next")})
	require.NoError(t, err, "the place is free again")
	require.Equal(t, "next", string(got[0].Value))
	require.NoError(t, m.Close())
}

func TestContextEndedBeforeDoSendsNothing(t *testing.T) {
	m := serve(t, echo)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := m.Do(ctx, Message{})
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, m.Stats())
}

func TestPanicInAHandlerFailsEverythingInFlight(t *testing.T) {
	const n = 50
	never := make(chan struct{})
	m := serve(t, func(ctx context.Context, keys []string, d mapsdk.Datum) mapsdk.Messages {
		if string(d.Value()) == "panic" {
			panic("boom 17")
		}
		return gated(never)(ctx, keys, d)
	})
	errs := make(chan error, n)
	for range n {
		go func() {
			_, err := m.Do(testContext(t), Message{})
			errs <- err
		}()
	}
	eventually(t, func() bool { return m.Stats().Sent == n }, "all in flight")
	_, err := m.Do(testContext(t), Message{Value: []byte("panic")})
	require.ErrorIs(t, err, ErrBroken)
	for range n {
		err := <-errs
		require.ErrorIs(t, err, ErrBroken)
		require.ErrorContains(t, err, "boom 17", "the cause")
		require.Regexp(t, `message \d+-1: `, err.Error(), "the ID")
	}
	require.Equal(t, Stats{Sent: n + 1, Failed: n + 1}, m.Stats())
	require.Empty(t, m.Outstanding())

	_, err = m.Do(testContext(t), Message{})
	require.ErrorIs(t, err, ErrBroken)
	require.ErrorContains(t, err, "not sent")
	require.ErrorIs(t, m.Close(), ErrBroken)
}
