package httpproxy

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// What a service asks for reaches the limit, through the bound on waits: so the pool may pause.
func TestARetryAfterReachesTheLimit(t *testing.T) {
	u := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.Header().Set("Retry-After", "100")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	th, err := throttle.New(throttle.Limit{Max: 1000}, throttle.WithName("p"))
	require.NoError(t, err)
	p := start(t, Config{Upstream: u.URL, Limiter: th, MaxWait: time.Second})
	res, _ := send(t, http.MethodPost, p.url, "x")
	require.Equal(t, 429, res.StatusCode)
	require.Eventually(t, func() bool { held, ok := th.Throttled(); return ok && held.Reason == throttle.ReasonPause }, 5*time.Second, time.Millisecond)
	res, body := send(t, http.MethodPost, p.url, "x")
	require.Equal(t, 429, res.StatusCode)
	require.Equal(t, "pause", reason(t, body))
	require.Len(t, u.requests(), 1)
}
