package account_test

import (
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
)

// After a refusal because calls grow too fast none is sent for as long as the service says, then at most 0.7 of the rate before, and more and
// more from then on. With any other refusal the rate is as before.
func TestSlowDown(t *testing.T) {
	for code, slows := range map[string]bool{"slow_down": true, "rate_limit_exceeded": false} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var at []time.Duration
			began := time.Now()
			refused := false
			l := open(t, account.Config{Provider: profile.OpenAI, RequestsPerMinute: 600})
			tr := l.Transport(scripted(func(*http.Request) (int, string, string) {
				mu.Lock()
				defer mu.Unlock()
				since := time.Since(began)
				at = append(at, since)
				if since > time.Minute && !refused {
					refused = true
					return 429, "Retry-After: 20", `{"error":{"code":"` + code + `","message":"Slow down"}}`
				}
				return 200, "", openAIAnswer
			}))
			var sending sync.WaitGroup
			for range 8 {
				sending.Go(func() {
					for time.Since(began) < 4*time.Minute {
						post(t, tr, "http://service.test/v1/chat/completions", chat(10, 10))
					}
				})
			}
			sending.Wait()
			rate := func(from, to time.Duration) float64 {
				n := 0
				for _, d := range at {
					if d >= from && d < to {
						n++
					}
				}
				return float64(n) / (to - from).Minutes()
			}
			before := rate(40*time.Second, 60*time.Second)
			require.InDelta(t, 600, before, 10)
			require.LessOrEqual(t, rate(61*time.Second, 80*time.Second), 0.0, "as long as the service says")
			begin, later, end := rate(82*time.Second, 90*time.Second), rate(110*time.Second, 120*time.Second), rate(160*time.Second, 230*time.Second)
			t.Log(code, before, begin, later, end)
			require.InDelta(t, 600, end, 10)
			if slows {
				require.LessOrEqual(t, begin, 0.7*before)
				require.Greater(t, begin, 0.5*before)
				require.Greater(t, later, begin)
				require.Less(t, later, 0.9*before)
			} else {
				require.InDelta(t, 600, begin, 20)
			}
		})
	}
}

// A further refusal soon after calls went on, when few were sent, lowers the rate that was in force, and not that of the pause.
func TestSlowDownTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, refused := time.Now(), 0
		var late int
		l := open(t, account.Config{Provider: profile.OpenAI, RequestsPerMinute: 600})
		tr := l.Transport(scripted(func(*http.Request) (int, string, string) {
			since := time.Since(began)
			if refused == 0 && since > time.Minute || refused == 1 && since > 82*time.Second {
				refused++
				return 429, "Retry-After: 20", `{"error":{"code":"slow_down","message":"Slow down"}}`
			}
			if since > 105*time.Second && since < 120*time.Second {
				late++
			}
			return 200, "", openAIAnswer
		}))
		for time.Since(began) < 2*time.Minute {
			post(t, tr, "http://service.test/v1/chat/completions", chat(10, 10))
		}
		require.Equal(t, 2, refused)
		require.InDelta(t, 0.36*600/4, late, 20, "0.6 of 0.6, and growing")
	})
}
