package opening

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/stopnotice"
)

// StopContext is open.StopContext.
func StopContext(parent context.Context) (context.Context, context.CancelFunc) {
	return stopContext(parent, cmp.Or(os.Getenv(config.Prefix+"STATE_DIR"), defaultStateDir()))
}

func stopContext(parent context.Context, folder string) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
	if folder == noStateDir {
		return ctx, stop
	}
	go func() {
		if stopnotice.Seen(ctx, folder) && ctx.Err() == nil {
			slog.Info( //nolint:sloglint // a process has one end, and no logger is given here
				"the pod is being stopped: this process ends as after SIGTERM", "notice", stopnotice.Path(folder))
			stop()
		}
	}()
	return ctx, stop
}
