package admission

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// An Abandoner ends the calls of one wrapper whose messages cannot be handled, without an answer. The platform acknowledges any message
// with an answer, even an empty one, and so would lose it. Its methods may be called from any number of goroutines at once.
type Abandoner struct {
	// Log takes the reason; neither keys nor values are logged. nil: slog.Default().
	Log *slog.Logger

	closedOnce sync.Once // the log entry about a closed limiter
}

// Abandon ends a call because of err. It never returns, and is called in the goroutine in which numaflow-go called the wrapper:
//
//   - The limiter was closed: it waits for ctx to end; see Hold.
//   - ctx was cancelled: the goroutine ends by runtime.Goexit. numaflow-go takes a panic for a failure of the handler and shuts the server
//     down; with Goexit the process survives the loss of a connection.
//   - Anything else: it logs err and panics with it. numaflow-go recovers the panic, fails the stream with the text of err and shuts the
//     server down.
func (a *Abandoner) Abandon(ctx context.Context, err error) {
	a.Hold(ctx, err)
	if errors.Is(ctx.Err(), context.Canceled) {
		runtime.Goexit()
	}
	a.Logger().Error("message not handled, failing the stream", "error", err)
	panic(err) //nolint:forbidigo // the only way to tell numaflow-go that there is no answer
}

// Hold blocks until ctx ends if err says that the limiter was closed. That happens while the process shuts down: messages that arrive later
// belong to the next process. Otherwise, or if ctx can never end, it returns at once. It is for wrappers that draw in a goroutine in which
// they cannot abandon the call.
func (a *Abandoner) Hold(ctx context.Context, err error) {
	if !errors.Is(err, throttle.ErrClosed) || ctx.Done() == nil {
		return
	}
	a.closedOnce.Do(func() {
		a.Logger().Warn("limiter closed: messages wait for the end of the stream, unanswered")
	})
	<-ctx.Done()
}

// Logger returns Log or its default.
func (a *Abandoner) Logger() *slog.Logger { return cmp.Or(a.Log, slog.Default()) }
