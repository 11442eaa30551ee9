package opening

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// redisLog is what the Redis client logs for the whole process.
var redisLog testkit.Book

// closing are the Throttles that nobody waits for: where the store does not
// answer, Close takes five seconds. What it returns goes to closed.
var (
	closing sync.WaitGroup
	closed  testkit.Book
)

func closeLater(th *throttle.Throttle) {
	closing.Go(func() {
		if err := th.Close(); err != nil {
			closed.Printf(context.Background(), "%v", err)
		}
	})
}

func TestMain(m *testing.M) {
	if file := os.Getenv(canaryVariable); file != "" {
		canaryProcess(file)
	}
	redis.SetLogger(&redisLog)
	longestLease = func(lease time.Duration) time.Duration { return lease }
	code := m.Run()
	closing.Wait()
	for what, text := range map[string]string{"the Redis client's log": redisLog.String(), "what Close returned": closed.String()} {
		if strings.Contains(text, canary) {
			fmt.Fprintln(os.Stderr, "a secret in", what)
			code = 1
		}
	}
	os.Exit(code)
}

// eventually polls until ok, for as long as something takes on a busy machine.
func eventually(t *testing.T, ok func() bool, message string) {
	t.Helper()
	require.Eventually(t, ok, 30*time.Second, 10*time.Millisecond, message)
}

// grants tells whether a token is at hand.
func grants(th *throttle.Throttle) func() bool {
	return func() bool {
		_, ok := th.TryAcquire(1)
		return ok
	}
}

// reason is why the Throttle holds callers back; empty when it does not.
func reason(th *throttle.Throttle) throttle.Reason {
	throttling, _ := th.Throttled()
	return throttling.Reason
}

// mustOpen opens a Throttle that is closed when the test ends.
func mustOpen(t *testing.T, c Config) *throttle.Throttle {
	t.Helper()
	th, err := Open(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { _ = th.Close() })
	return th
}
