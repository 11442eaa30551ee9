package redis

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// init takes over the Redis client's own logs, which otherwise go to standard error at every failure. It runs before main, so that a
// program's own redis.SetLogger wins.
func init() { //nolint:gochecknoinits // the client has one logger for the whole process
	redis.SetLogger(&redisLogger{})
}

// A redisLogger passes logs of the Redis client to slog.Default, at most once a minute for each kind of line.
type redisLogger struct {
	mu     sync.Mutex
	logged map[string]time.Time // by format
}

const (
	redisLogEvery = time.Minute
	redisLogKinds = 100 // formats are constants of the client, and fewer
)

// Printf implements the client's interface. It is safe for concurrent use.
func (l *redisLogger) Printf(ctx context.Context, format string, args ...any) {
	if l.due(format, time.Now()) {
		slog.WarnContext(ctx, //nolint:sloglint // of no Throttle of its own, for the client has one logger for all
			"the Redis client reports", "message", fmt.Sprintf("%.500s", fmt.Sprintf(format, args...)))
	}
}

func (l *redisLogger) due(format string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last, ok := l.logged[format]; ok && now.Sub(last) < redisLogEvery || !ok && len(l.logged) >= redisLogKinds {
		return false
	}
	if l.logged == nil {
		l.logged = map[string]time.Time{}
	}
	l.logged[format] = now
	return true
}
