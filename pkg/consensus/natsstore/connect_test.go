package natsstore

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
)

// A connection comes back by itself, and keeps nothing back that was to be
// written while it was away.
func TestConnectionComesBack(t *testing.T) {
	srv := testenv.NATSBinary(t)
	s := open(t, target{urls: srv.URL(), bucket: DefaultBucket}, WithLongestLease(quick))
	next := syncUntil(t, s, request("p", "a", 1), isWhole)
	require.NoError(t, srv.Kill())
	require.Eventually(t, func() bool { return !s.nc.IsConnected() }, patience, time.Millisecond)
	begun := time.Now()
	_, err := trySync(s, next)
	require.ErrorContains(t, err, "not connected to NATS")
	require.NotContains(t, err.Error(), "buffer", "which is how the client says it")
	require.ErrorIs(t, err, nats.ErrReconnectBufExceeded)
	require.Less(t, time.Since(begun), callTimeout, "no need to wait for an answer")
	require.ErrorIs(t, s.nc.Publish("$KV.numathrottle.p", []byte("late")), nats.ErrReconnectBufExceeded)

	require.NoError(t, srv.Restart(t.Context()))
	require.Eventually(t, s.nc.IsConnected, patience, time.Millisecond)
	require.True(t, isWhole(mustSync(t, s, next)), "the record is as it was")
}

func TestErrorHandlerLogsMissingPermissions(t *testing.T) {
	srv := testenv.NATS(t, func(o *server.Options) {
		o.Users = []*server.User{{Username: "u", Password: "hunter2", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Deny: []string{"secret.>"}},
		}}}
	})
	var log lockedBuilder
	nc := connect(t, srv.URL(), nats.UserInfo("u", "hunter2"), errorHandler(slog.New(slog.NewTextHandler(&log, nil))))
	require.NoError(t, nc.Publish("secret.plan", nil))
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "secret.plan") }, patience, time.Millisecond)
	require.Contains(t, log.String(), "level=WARN")
	require.NotContains(t, log.String(), "hunter2")
}

type lockedBuilder struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuilder) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuilder) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
