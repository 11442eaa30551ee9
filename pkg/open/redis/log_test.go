package redis

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWhatTheRedisClientLogsIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logs logBook
		before := slog.Default()
		slog.SetDefault(logs.logger())
		defer slog.SetDefault(before)
		var l redisLogger
		for range 600 { // three times a second, as where a command is denied
			l.Printf(t.Context(), "getting command info: %s", "NOPERM")
			l.Printf(t.Context(), "another: %s", strings.Repeat("x", 10_000))
			time.Sleep(time.Second / 3)
		}
		require.Equal(t, 4, strings.Count(logs.String(), "getting command info: NOPERM"))
		require.Equal(t, 4, strings.Count(logs.String(), "another"))
		require.Less(t, len(logs.String()), 5000)
	})
}

// A logBook keeps what is logged.
type logBook struct{ bytes.Buffer }

func (b *logBook) logger() *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }
