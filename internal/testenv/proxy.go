package testenv

import (
	"context"
	"testing"

	"github.com/numaproj-contrib/numathrottle/internal/testenv/proxy"
)

// Proxy starts a proxy to target, a host and port, that can delay, swallow and cut connections.
func Proxy(tb testing.TB, target string) *proxy.Proxy {
	tb.Helper()
	return start(tb, func(ctx context.Context, _ string) (*proxy.Proxy, error) {
		return proxy.Start(ctx, target)
	})
}
