package testenv

import (
	"context"
	"testing"

	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
)

// NATSProcessCluster starts NATS servers of the version in go.mod as one cluster of processes, behind proxies. The
// size is an odd number, at least 3. The test binary must call servers.BeNATSNode in TestMain.
func NATSProcessCluster(tb testing.TB, size int) *servers.NATSProcessCluster {
	tb.Helper()
	cluster := start(tb, func(ctx context.Context, dir string) (*servers.NATSProcessCluster, error) {
		return servers.StartNATSProcessCluster(ctx, dir, size)
	})
	logOnFailure(tb, cluster)
	return cluster
}
