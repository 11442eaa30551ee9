package permits

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/listen"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A page of another site pauses nothing and draws nothing, whatever name it has given to loopback, and whatever headers it can send.
func TestPagesOfOtherSites(t *testing.T) {
	th := newThrottle(t, throttle.Limit{Max: 1000})
	a := start(t, apiConfig{Limiter: th, HostNames: listen.Names{"named.example"}})
	call := func(path, host string, header ...string) int {
		req, err := http.NewRequest(http.MethodPost, a.url+path, strings.NewReader(`{}`))
		require.NoError(t, err)
		req.Host = host
		req.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		res, err := a.http.Do(req)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		return res.StatusCode
	}
	for _, path := range []string{"/v1/acquire", "/v1/pause", "/v1/openapi.yaml", "/v2"} {
		require.Equal(t, 403, call(path, "evil.example:7070"))
		require.Equal(t, 403, call(path, "evil.example", "Sec-Fetch-Site", "same-origin", "Origin", "http://evil.example"))
		require.Equal(t, 403, call(path, "", "Sec-Fetch-Site", "cross-site"))
		require.Equal(t, 403, call(path, "", "Sec-Fetch-Site", "same-site"))
		require.Equal(t, 403, call(path, "", "Origin", "http://localhost:1"))
	}
	require.Zero(t, th.Status().Granted)
	require.Nil(t, th.Status().Paused)
	require.Equal(t, 200, call("/v1/acquire", "named.example:80"))
	require.Equal(t, 200, call("/v1/acquire", "localhost"))
}

func TestATokenThatWasWithdrawn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("canary-of-before"), 0o600))
	a := start(t, apiConfig{Limiter: newThrottle(t, throttle.Limit{Max: 1000}), Token: "canary-of-before", TokenFile: file})
	a.ok("/v1/acquire", `{}`)
	require.NoError(t, os.WriteFile(file, []byte("canary-of-after"), 0o600))
	require.Equal(t, "unauthorized", a.fails(401, "/v1/acquire", `{}`)["reason"])
	a.token = "canary-of-after"
	a.ok("/v1/acquire", `{}`)
}

// The token of pauses is read anew, too, and is as long as others where strangers can reach the API.
func TestATokenOfPausesThatWasWithdrawn(t *testing.T) {
	th := newThrottle(t, throttle.Limit{Max: 1000})
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("canary-of-before"), 0o600))
	a := start(t, apiConfig{Limiter: th, PauseToken: "canary-of-before", PauseTokenFile: file})
	operator := *a
	operator.token = "canary-of-before"
	operator.ok("/v1/pause", `{"seconds":10}`)
	require.NoError(t, os.WriteFile(file, []byte("canary-of-after"), 0o600))
	operator.fails(401, "/v1/pause", `{"resume":true}`)
	operator.token = "canary-of-after"
	operator.ok("/v1/pause", `{"resume":true}`)
	require.NoError(t, os.Remove(file))
	operator.fails(401, "/v1/pause", `{"seconds":10}`)
	a.fails(401, "/v1/pause", `{"seconds":10}`)
	a.ok("/v1/acquire", `{"timeout_seconds":5}`)

	err := runAPI(t.Context(), apiConfig{
		Limiter: th, Listen: []listen.Addr{{Network: "tcp", Address: "0.0.0.0:0"}}, Token: "0123456789abcdef", PauseToken: "0123456789abcde",
	})
	require.ErrorContains(t, err, "the token of pauses has 15 bytes, allowed at an address that can be reached from elsewhere: at least 16")
}
