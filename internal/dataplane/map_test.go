package dataplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane/sdkserver"
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
	return dialMap(t, sdkserver.Start(t, h).Socket, opts...)
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

func TestResultsCarryWhatTheHandlerReturned(t *testing.T) {
	m := serve(t, func(_ context.Context, _ []string, d mapsdk.Datum) mapsdk.Messages {
		switch string(d.Value()) {
		case "drop":
			return mapsdk.MessagesBuilder().Append(mapsdk.MessageToDrop())
		case "nack":
			return mapsdk.MessagesBuilder().Append(mapsdk.MessageToNack(nil))
		case "two":
			return mapsdk.MessagesBuilder().
				Append(mapsdk.NewMessage([]byte("a")).WithKeys([]string{"k1", "k2"})).
				Append(mapsdk.NewMessage([]byte("b")).WithTags([]string{"t1", "t2"}))
		default:
			return mapsdk.MessagesBuilder()
		}
	})
	for value, want := range map[string][]Result{
		"drop": {{Tags: []string{mapsdk.DROP}, Drop: true}},
		"nack": {{Tags: []string{mapsdk.NACK}, Nack: true}},
		"two": {
			{Value: []byte("a"), Keys: []string{"k1", "k2"}},
			{Value: []byte("b"), Tags: []string{"t1", "t2"}},
		},
		"empty": nil,
	} {
		got, err := m.Do(testContext(t), Message{Value: []byte(value)})
		require.NoError(t, err, value)
		require.Equal(t, want, got, value)
	}
	require.NoError(t, m.Close())
}

func TestMessageReachesTheHandlerWhole(t *testing.T) {
	event := time.Date(2026, 2, 3, 4, 5, 6, 789, time.UTC)
	seen := make(chan mapsdk.Datum, 1)
	m := serve(t, func(ctx context.Context, keys []string, d mapsdk.Datum) mapsdk.Messages {
		seen <- d
		return echo(ctx, keys, d)
	})
	got, err := m.Do(testContext(t), Message{
		Keys: []string{"k"}, Value: []byte("v"), EventTime: event, Watermark: event.Add(-time.Second),
		Headers: map[string]string{"h": "1"},
	})
	require.NoError(t, err)
	require.Equal(t, []Result{{Keys: []string{"k"}, Value: []byte("v")}}, got)
	d := <-seen
	require.Equal(t, event, d.EventTime())
	require.Equal(t, event.Add(-time.Second), d.Watermark())
	require.Equal(t, map[string]string{"h": "1"}, d.Headers())

	_, err = m.Do(testContext(t), Message{})
	require.NoError(t, err)
	require.Equal(t, time.Unix(0, 0).UTC(), (<-seen).EventTime(), "a zero time")
}

func TestEveryAnswerGoesToItsCaller(t *testing.T) {
	const senders, each = 64, 50
	m := serve(t, echo, WithConcurrency(16))
	errs := make(chan error, senders)
	for s := range senders {
		go func() {
			for i := range each {
				value := fmt.Sprintf("%d/%d", s, i)
				got, err := m.Do(testContext(t), Message{Value: []byte(value)})
				if err == nil && (len(got) != 1 || string(got[0].Value) != value) {
					err = fmt.Errorf("sent %s, got %v", value, got)
				}
				if err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range senders {
		require.NoError(t, <-errs)
	}
	require.Equal(t, Stats{Sent: senders * each, Answered: senders * each}, m.Stats())
	require.NoError(t, m.Close())
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
