package open

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// TestStoresIssueTokens has three processors in one strict pool on each store: every one
// of them calls, and all together no more often than the slots come.
func TestStoresIssueTokens(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T) string{
		"memory": func(*testing.T) string { return "memory://strict" },
		"redis":  func(t *testing.T) string { return "redis://" + testenv.Redis(t).Addr() },
		"nats":   func(t *testing.T) string { return testenv.NATS(t).URL() },
	} {
		for _, reserved := range []int{0, 6} {
			t.Run(fmt.Sprintf("%s with %d reserved", name, reserved), func(t *testing.T) {
				t.Parallel()
				store := start(t)
				var mu sync.Mutex
				var at []time.Time
				calls := map[string]int{}
				ctx, stop := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				const spacing = 50 * time.Millisecond
				for _, id := range []string{"a", "b", "c"} {
					c := short(store, id)
					c.Pool = fmt.Sprint("strict", reserved)
					c.Limit = throttle.Limit{Max: 1, Per: spacing, Strict: true, MaxReserved: reserved}
					call := throttle.Func0Err(mustOpen(t, c), func(context.Context) error {
						mu.Lock()
						defer mu.Unlock()
						at = append(at, time.Now())
						calls[id]++
						return nil
					})
					for range 2 {
						wg.Go(func() {
							for call(ctx) == nil { //nolint:revive // the call is all there is to do
							}
						})
					}
				}
				eventually(t, func() bool {
					mu.Lock()
					defer mu.Unlock()
					return len(at) >= 60 && min(calls["a"], calls["b"], calls["c"]) >= 8
				}, "sixty calls, some of each")
				stop()
				wg.Wait()
				// A call may be late by a validity, and by what the machine is busy.
				const late = 250*time.Millisecond + 250*time.Millisecond
				slices.SortFunc(at, time.Time.Compare)
				for i := range at {
					for j := i + 1; j < len(at); j++ {
						require.GreaterOrEqual(t, at[j].Sub(at[i])+late, time.Duration(j-i)*spacing, "calls %d to %d", i, j)
					}
				}
			})
		}
	}
}
