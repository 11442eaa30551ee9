package main

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// The time of calls counts, without their waits for the limit: 5 calls a second that take 2 s need a tenth of a pod that makes 100.
func TestPodsWantedOfAPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metered := hook.WithMeter(100).(throttle.Option) //nolint:errcheck,forcetypeassert // as documented
		th, err := throttle.New(throttle.Limit{Max: 5}, metered)
		require.NoError(t, err)
		h := mustHandler(t, testSettings(func(*settings) {}), throttle.PerCall(th), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(2 * time.Second)
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprint(w, `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}`)
		}), nil)
		require.Nil(t, ask(t.Context(), t, h, "x").Error)
		until := time.Now().Add(3 * time.Minute)
		for range 100 { // as many as the vertex has in flight
			go func() {
				for time.Now().Before(until) {
					assert.Nil(t, ask(t.Context(), t, h, "x").Error)
					time.Sleep(time.Millisecond)
				}
			}()
		}
		time.Sleep(3 * time.Minute)
		pods, ok := hook.PodsWanted(th)
		require.True(t, ok)
		require.InDelta(t, 0.1, pods, 0.01)
		time.Sleep(time.Minute)
	})
}
