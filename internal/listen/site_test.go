package listen_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/listen"
)

func TestNames(t *testing.T) {
	for text, want := range map[string]string{
		"a.example": "a.example", "A.example. , b": "a.example b", "fd00::1": "fd00::1",
		"": "", "a,": "", "http://a": "", "*": "", "*.a": "", "a b": "", "a@b": "",
	} {
		names, ok := listen.ParseNames(text)
		require.Equal(t, want != "", ok, text)
		require.Equal(t, want, strings.Join(names, " "), text)
	}
}

// Which hosts a loopback address may be called by: no name that a site can have.
func TestWhichHostsLoopbackIsCalledBy(t *testing.T) {
	names := listen.Names{"proxy.local"}
	for _, host := range []string{
		"localhost", "localhost:7080", "LOCALHOST.:1", "127.0.0.1", "127.8.0.1:80", "[::1]:80", "[::1]", "[::ffff:127.0.0.1]:1",
		"proxy.local:80", "Proxy.Local.",
	} {
		require.True(t, names.Takes(host), host)
	}
	for _, host := range []string{
		"", "evil.example", "evil.example:7080", "localhost.evil.example", "127.0.0.1.evil.example", "127.0.0.1.nip.io:80", "10.0.0.1", "0.0.0.0", "[::]",
		"evil.example:localhost", "x.proxy.local", "2130706433", "127.1", "localhost:80:80", "localhost@evil.example", "::1:x",
	} {
		require.False(t, names.Takes(host), host)
	}
}

// A page of another site can send a request to loopback in many ways; a program, and the server's own page, send none of these.
func TestRequestsOfOtherSites(t *testing.T) {
	entered := make(chan string, 1)
	s := &listen.Server{Grace: time.Second, Quiet: time.Millisecond, HTTP: &http.Server{Handler: http.HandlerFunc(
		func(_ http.ResponseWriter, r *http.Request) { entered <- listen.Names{"named.example"}.Problem(r) })}}
	url, stop, ended := serve(t, s)
	own := strings.TrimPrefix(url, "http://")
	for _, c := range []struct {
		host, site, origin string
		ok                 bool
	}{
		{"", "", "", true},
		{"localhost:1", "", "", true},
		{"named.example", "", "", true},
		{"", "same-origin", "http://" + own, true},
		{"", "none", "", true},
		{"", "", "http://" + own, true},
		{"evil.example", "", "", false},
		{"evil.example", "same-origin", "http://evil.example", false},
		{"", "cross-site", "", false},
		{"", "same-site", "", false},
		{"", "nonsense", "", false},
		{"", "", "http://evil.example", false},
		{"", "", "http://127.0.0.1:1", false},
		{"", "", "null", false},
		{"", "", "file://", false},
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPost, http.MethodDelete} {
			req, err := http.NewRequestWithContext(context.Background(), method, url, nil)
			require.NoError(t, err)
			req.Host = c.host
			for key, value := range map[string]string{"Sec-Fetch-Site": c.site, "Origin": c.origin} {
				if value != "" {
					req.Header.Set(key, value)
				}
			}
			res, err := http.DefaultClient.Do(req)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			require.Equal(t, c.ok, <-entered == "", "%s %+v", method, c)
		}
	}
	stop()
	require.NoError(t, <-ended)
}
