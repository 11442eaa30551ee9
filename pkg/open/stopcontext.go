package open

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

// StopContext returns a copy of parent that ends when this process should stop: with SIGINT, SIGTERM, or when the pod is being stopped. For
// the latter, `numathrottle stop-notice` must run in a container of the pod's spec.sidecars. Pass the copy to the Start of a numaflow-go
// server.
//
// Without that container, Kubernetes 1.29 and later signals a handler only after Numaflow's own container has ended, which waits for the
// handler. A message that waits for tokens without an end is then killed with the pod after 30 s.
//
// StopContext looks for the notice five times a second, in the folder named by NUMATHROTTLE_STATE_DIR, by default /var/run/numaflow in a
// Numaflow pod. Without such a folder it does not look. The returned function stops looking and ends the context.
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
