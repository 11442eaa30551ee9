package httpproxy

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// Of two tags a service may go by either one.
func TestTwoTags(t *testing.T) {
	u := serve(t, hello)
	for rule, headers := range map[string][]string{
		"header X-Tenant": {"X-Tenant: a\r\nX-Tenant: b\r\n"},
		"key": {
			"Authorization: Bearer " + canary + "\r\nX-Api-Key: other\r\n", "Authorization: Bearer " + canary + "\r\nAuthorization: Bearer b\r\n",
			"Api-Key: a\r\nX-Goog-Api-Key: b\r\n",
		},
	} {
		p := start(t, Config{Upstream: u.URL, Limiter: throttletest.New(), Tag: rule})
		for _, header := range headers {
			res, body := raw(t, p, "GET / HTTP/1.1\r\nHost: localhost\r\n"+header+"\r\n")
			require.Equal(t, 400, res.StatusCode)
			require.NotContains(t, body, canary)
		}
		require.Empty(t, u.Requests())
		for i, header := range []string{"X-Tenant: a\r\nX-Tenant: a\r\n", "Authorization: bearer a\r\nX-Api-Key: a\r\nApi-Key:\r\n", ""} {
			res, _ := raw(t, p, "GET / HTTP/1.1\r\nHost: localhost\r\n"+header+"\r\n")
			require.Equal(t, 200, res.StatusCode, i)
		}
		u.Forget()
	}
}
