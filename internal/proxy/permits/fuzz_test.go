package permits

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/proxy"
)

// Whatever a body is, a request is within its bounds, or the answer is an error of the caller's with the form of all errors.
func FuzzRequests(f *testing.F) {
	for _, body := range []string{
		`{}`, `{"tokens":3,"tag":"a","timeout_seconds":1.5,"lease_seconds":60,"up_to":true}`, `{"tokens":1e2}`, `{"tokens":2.0}`, `{"tokens":-1}`,
		`{"permit":"x","used":7,"outcome":"refused"}`, `{"permit":"x","outcome":"accepted","retry_after_seconds":1e300}`, `{"seconds":60,"reason":"r"}`,
		`{"resume":true}`, `{"tokens":9999999999999999999}`, `[[[[`, `{"tag":"\u0000"}`, `{"a":{"a":{"a":1}}} {}`, "\xff",
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		read := func(r interface{ check() error }) bool {
			req := httptest.NewRequest(http.MethodPost, "/v1/acquire", strings.NewReader(body))
			req.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			err := decode(w, req, r)
			if err == nil {
				return true
			}
			proxy.ErrorOf(err).Write(w)
			require.GreaterOrEqual(t, w.Code, 400)
			require.Less(t, w.Code, 500, "it is the caller's fault: %v", err)
			require.True(t, json.Valid(w.Body.Bytes()))
			return false
		}
		var a acquireRequest
		if read(&a) {
			require.GreaterOrEqual(t, a.tokens(), 0)
			require.LessOrEqual(t, a.tokens(), maxTokens)
			require.LessOrEqual(t, a.lease(defaultLease), longestLease)
			require.Positive(t, a.lease(defaultLease))
			require.LessOrEqual(t, len(a.Tag), maxTag)
		}
		var s settleRequest
		read(&s)
		var c cancelRequest
		read(&c)
		var r reportRequest
		read(&r)
		var p pauseRequest
		read(&p)
	})
}
