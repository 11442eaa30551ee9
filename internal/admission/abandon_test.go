package admission_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// An outcome is how a call ended that is not to return: both zero is Goexit.
type outcome struct {
	returned bool
	panicked any
}

// abandon runs the call in a goroutine of its own, which it ends.
func abandon(ctx context.Context, a *admission.Abandoner, err error) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			o.panicked = recover()
			done <- o
		}()
		a.Abandon(ctx, err)
		o.returned = true
	}()
	return done
}

func newAbandoner() (*admission.Abandoner, *bytes.Buffer) {
	var log bytes.Buffer
	return &admission.Abandoner{Log: slog.New(slog.NewTextHandler(&log, nil))}, &log
}

func TestACancelledCallEndsItsGoroutine(t *testing.T) {
	a, log := newAbandoner()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("cause"))
	require.Equal(t, outcome{}, <-abandon(ctx, a, errors.New("refused")))
	require.Zero(t, log.Len(), "the end of a stream is nothing to report for each message")
}

func TestAnythingElsePanicsAndIsLogged(t *testing.T) {
	refused := errors.New("refused")
	passed, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	for name, ctx := range map[string]context.Context{"goes on": t.Context(), "past its deadline": passed} {
		a, log := newAbandoner()
		require.Equal(t, outcome{panicked: refused}, <-abandon(ctx, a, refused), name)
		require.Contains(t, log.String(), "error=refused", name)
	}
}

func TestAClosedLimiterHoldsTheCallUntilItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, log := newAbandoner()
		ctx, cancel := context.WithCancel(t.Context())
		closed := &throttle.Error{Reason: throttle.ReasonClosed}
		first, second := abandon(ctx, a, closed), abandon(ctx, a, closed)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Empty(t, first)
		require.Empty(t, second)
		require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("limiter closed")), "said once")
		cancel()
		require.Equal(t, outcome{}, <-first)
		require.Equal(t, outcome{}, <-second)

		require.Equal(t, outcome{panicked: closed}, <-abandon(context.Background(), a, closed), "a context that cannot end")
	})
}

func TestHoldReturnsAtOnceForAnythingButAClosedLimiter(t *testing.T) {
	a, _ := newAbandoner()
	a.Hold(t.Context(), errors.New("refused"))
	a.Hold(t.Context(), &throttle.Error{Reason: throttle.ReasonLimit})
	a.Hold(context.Background(), throttle.ErrClosed)
}
