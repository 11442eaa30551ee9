package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/proxy"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

func TestAnswers(t *testing.T) {
	denied := &throttle.Error{Reason: throttle.ReasonLimit, Limit: "p", Tag: "a", Cost: 3, RetryAfter: 1250 * time.Millisecond}
	for _, c := range []struct {
		err    error
		status int
		retry  string
		body   string
	}{
		{
			fmt.Errorf("call: %w", denied), 429, "2",
			`{"error":{"reason":"limit","message":` + fmt.Sprintf("%q", denied.Error()) + `,"limit":"p","tag":"a","tokens":3,"retry_after_seconds":1.25}}`,
		},
		{
			proxy.FieldError("tokens", "-1", "1 to 5"), 400, "",
			`{"error":{"reason":"bad_request","message":"tokens is -1, allowed: 1 to 5","field":"tokens"}}`,
		},
		{throttle.ErrClosed, 503, "", `{"error":{"reason":"closed","message":"the limiter is closed"}}`},
		{context.DeadlineExceeded, 429, "", `{"error":{"reason":"limit","message":"the time for waiting is over"}}`},
		{
			errors.New("canary"), 500, "",
			`{"error":{"reason":"internal","message":"the call failed within the proxy; its log says why"}}`,
		},
	} {
		w := httptest.NewRecorder()
		proxy.ErrorOf(c.err).Write(w)
		require.Equal(t, c.status, w.Code)
		require.Equal(t, c.retry, w.Header().Get("Retry-After"))
		require.JSONEq(t, c.body, w.Body.String())
	}
	require.Equal(t, 422, proxy.ErrorOf(&throttle.Error{Reason: throttle.ReasonTooLarge}).Status)
	require.Equal(t, 503, proxy.ErrorOf(&throttle.Error{Reason: throttle.ReasonClosed}).Status)
}
