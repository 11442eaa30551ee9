package dataplane

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
)

// doneProbe tells when somebody first waits for its context.
type doneProbe struct {
	context.Context //nolint:containedctx // it is one, with one method changed
	once            sync.Once
	asked           chan struct{}
}

func (p *doneProbe) Done() <-chan struct{} {
	p.once.Do(func() { close(p.asked) })
	return p.Context.Done()
}

func TestCloseWaitsForWhatIsInFlight(t *testing.T) {
	gate := make(chan struct{})
	m := serve(t, gated(gate), WithConcurrency(2))
	answered := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := m.Do(testContext(t), Message{})
			answered <- err
		}()
	}
	eventually(t, func() bool { return m.Stats().Sent == 2 }, "in flight")
	waits, waiting := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := m.Do(&doneProbe{Context: testContext(t), asked: waits}, Message{})
		waiting <- err
	}()
	<-waits

	closed := make(chan error, 2)
	for range 2 {
		go func() { closed <- m.Close() }()
	}
	require.ErrorIs(t, <-waiting, ErrClosed, "a caller without a place")
	select {
	case err := <-closed:
		require.Fail(t, "closed with messages in flight", "error: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	close(gate)
	require.NoError(t, <-answered)
	require.NoError(t, <-answered)
	require.NoError(t, <-closed)
	require.NoError(t, <-closed)
	require.NoError(t, m.Close(), "once more")
	require.Equal(t, Stats{Sent: 2, Answered: 2}, m.Stats())

	_, err := m.Do(testContext(t), Message{})
	require.ErrorIs(t, err, ErrClosed)
	require.NotErrorIs(t, err, ErrBroken)
}

func TestCloseNamesWhatWasNotAnswered(t *testing.T) {
	never := make(chan struct{})
	m := serve(t, gated(never), WithDrainTimeout(30*time.Millisecond))
	errs := make(chan error, 1)
	go func() {
		_, err := m.Do(testContext(t), Message{})
		errs <- err
	}()
	eventually(t, func() bool { return m.Stats().Sent == 1 }, "in flight")
	id := m.Outstanding()[0]
	err := m.Close()
	require.ErrorContains(t, err, `"`+id+`"`)
	require.ErrorContains(t, err, "30ms")
	require.ErrorIs(t, <-errs, ErrBroken)
	require.Equal(t, Stats{Sent: 1, Failed: 1}, m.Stats())
}

func TestCloseLeavesTheServerRunning(t *testing.T) {
	server := Serve(t, mapsdk.MapperFunc(echo))
	for range 3 {
		m := dialMap(t, server.Socket)
		_, err := m.Do(testContext(t), Message{})
		require.NoError(t, err)
		require.NoError(t, m.Close())
	}
	select {
	case <-server.Ended():
		require.Fail(t, "the server ended")
	default:
	}
}

func TestAbortFailsWhatIsInFlight(t *testing.T) {
	never := make(chan struct{})
	began, ended := make(chan struct{}), make(chan struct{})
	m := serve(t, func(ctx context.Context, _ []string, _ mapsdk.Datum) mapsdk.Messages {
		close(began)
		defer close(ended)
		select {
		case <-never:
		case <-ctx.Done():
		}
		panic("context ended")
	})
	errs := make(chan error, 1)
	go func() {
		_, err := m.Do(testContext(t), Message{})
		errs <- err
	}()
	<-began
	m.Abort()
	require.ErrorIs(t, <-errs, ErrBroken)
	<-ended // the handler's context ended
	require.ErrorIs(t, m.Close(), ErrBroken)
	m.Abort()
}

func TestDialFails(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "nobody.sock")
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	_, err := Dial(ctx, socket)
	require.ErrorContains(t, err, socket)
	require.ErrorContains(t, err, "not ready")

	_, err = Dial(ctx, socket, WithConcurrency(0), WithDrainTimeout(-time.Second), WithMaxMessageSize(-5), nil)
	for _, part := range []string{
		"concurrency is 0", "at least 1", "drain timeout is -1s", "negative", "max message size is -5 bytes",
	} {
		require.ErrorContains(t, err, part)
	}
}
