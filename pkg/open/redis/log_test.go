package redis

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

func TestWhatTheRedisClientLogsIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logs testkit.Book
		before := slog.Default()
		slog.SetDefault(logs.Logger())
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
