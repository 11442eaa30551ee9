package httpproxy

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/proxy"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// What a name resolves to is judged, and not the name alone; and an address in every spelling.
func TestTheForwardProxyDialsPublicAddresses(t *testing.T) {
	u := serve(t, hello)
	port := u.URL[strings.LastIndex(u.URL, ":"):]
	l := throttletest.New()
	p := start(t, Config{Forward: "*:*", Limiter: l, AllowConnect: true})
	for _, host := range []string{
		"localhost", "127.0.0.1", "[::ffff:127.0.0.1]", "[::1]", "0x7f000001", "[64:ff9b::7f00:1]", "169.254.169.254", "[fd20:ce::254]",
	} {
		res, text := through(t, client(t, p), "http://"+host+port)
		require.Equal(t, 403, res.StatusCode, "%s: %s", host, text)
		require.Contains(t, text, "allowAddresses")
		_, err := client(t, p).Get("https://" + host + port)
		require.ErrorContains(t, err, "Forbidden", host)
	}
	require.Empty(t, u.Requests())
	require.Len(t, l.Draws(), 2, "only what has to be resolved is found out after the draw")
	for _, c := range []Config{{Forward: "*:*", AllowAddresses: "loopback"}, {Forward: "localhost:*", AllowAddresses: "127.0.0.1 ::1"}} {
		c.Limiter = throttletest.New()
		res, _ := through(t, client(t, start(t, c)), "http://localhost"+port)
		require.Equal(t, 200, res.StatusCode)
	}
}

// A tunnel counts a connection, and not what is called inside: nobody has one who has not asked for it.
func TestTunnelsAreAskedFor(t *testing.T) {
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	l := throttletest.New()
	host := strings.TrimPrefix(secure.URL, "https://")
	res, text := raw(t, start(t, Config{Forward: host, Limiter: l}), "CONNECT "+host+" HTTP/1.1\r\nHost: "+host+"\r\n\r\n")
	require.Equal(t, 403, res.StatusCode)
	require.Contains(t, text, "counts connections, and not the calls inside; the setting allowConnect")
	require.Empty(t, l.Draws())
}

// A token that was withdrawn lets nobody in, and one that is wrong keeps no connection.
func TestATokenThatWasWithdrawn(t *testing.T) {
	u := serve(t, hello)
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte(canary+"\n"), 0o600))
	p := start(t, Config{Upstream: u.URL, Limiter: throttletest.New(), Serving: proxy.Serving{TokenFile: file}})
	res, _ := send(t, "GET", p.url, "", tokenHeader, canary)
	require.Equal(t, 200, res.StatusCode)
	require.NoError(t, os.WriteFile(file, []byte("another-"+canary), 0o600))
	res, _ = send(t, "GET", p.url, "", tokenHeader, canary)
	require.Equal(t, 401, res.StatusCode)
	require.True(t, res.Close, "its connection ends")
	res, _ = send(t, "GET", p.url, "", tokenHeader, "another-"+canary)
	require.Equal(t, 200, res.StatusCode)
}

// A byte now and then does not keep a place for ever; a body that comes fast enough may take as long as it is.
func TestThePaceOfABody(t *testing.T) {
	const idle = 5 * time.Minute
	for _, c := range []struct {
		every time.Duration
		bytes int
		most  time.Duration // 0: it may go on
	}{
		{time.Second, 1, idle + time.Minute},
		{4 * time.Minute, 1, 2 * idle},
		{time.Second, leastRate / 2, 2*idle + time.Minute},
		{time.Second, leastRate, 0},
		{4 * time.Minute, 4 << 20, 0},
	} {
		p, took := newPace(idle), time.Duration(0)
		for p.left > 0 && took < 24*time.Hour {
			wait := min(c.every, p.left)
			took += wait
			if p.took(wait, 0); wait == c.every {
				p.took(0, c.bytes)
			}
		}
		require.Equal(t, c.most == 0, took >= 24*time.Hour, "%+v: %v", c, took)
		if c.most > 0 {
			require.LessOrEqual(t, took, c.most, "%+v", c)
		}
	}
}
