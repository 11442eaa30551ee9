package httpproxy

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

func TestForwardProxy(t *testing.T) {
	u := serve(t, hello)
	host := strings.TrimPrefix(u.URL, "http://")
	l := throttletest.New()
	p := start(t, Config{Forward: host, Limiter: l})
	through, err := url.Parse(p.url)
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(through)}}
	res, err := client.Get(u.URL + "/path?q")
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, 200, res.StatusCode)
	require.Equal(t, "/path?q", u.requests()[0].uri)
	require.Equal(t, host, u.requests()[0].host)
	require.Len(t, l.Draws(), 1)

	res, err = client.Get("http://example.com/")
	require.NoError(t, err)
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, 403, res.StatusCode)
	require.Equal(t, "forbidden", reason(t, string(body)))
	require.Len(t, l.Draws(), 1, "what is not sent draws nothing")

	res, text := send(t, "GET", p.url+"/x", "")
	require.Equal(t, 404, res.StatusCode)
	require.Contains(t, text, "forward proxy only")
}

// A CONNECT draws once, whatever is sent inside, and gives its slot back at its end.
func TestConnect(t *testing.T) {
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { hello(w, r, 0) }))
	defer secure.Close()
	slots, err := throttle.NewInFlight(1)
	require.NoError(t, err)
	p := start(t, Config{Forward: strings.TrimPrefix(secure.URL, "https://"), Limiter: slots, MaxWait: 50 * time.Millisecond, AllowConnect: true})
	require.Contains(t, p.log.String(), "a CONNECT draws once for its connection")
	through, err := url.Parse(p.url)
	require.NoError(t, err)
	transport := &http.Transport{Proxy: http.ProxyURL(through), TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	client := &http.Client{Transport: transport}
	for range 3 {
		res, err := client.Get(secure.URL)
		require.NoError(t, err)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, "hello", string(body))
	}
	require.Equal(t, 1, slots.Status().InUse)
	require.EqualValues(t, 1, slots.Status().Granted)

	_, err = (&http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(through)}}).Get(secure.URL)
	require.ErrorContains(t, err, "Too Many Requests")
	transport.CloseIdleConnections()
	require.Eventually(t, func() bool { return slots.Status().InUse == 0 }, 5*time.Second, time.Millisecond)
	_, err = client.Get("https://example.com/")
	require.ErrorContains(t, err, "Forbidden")
}

func TestConnectToNobody(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	l := throttletest.New()
	p := start(t, Config{Forward: strings.TrimPrefix(closed.URL, "http://"), Limiter: l, AllowConnect: true})
	through, err := url.Parse(p.url)
	require.NoError(t, err)
	_, err = (&http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(through)}}).Get("https://" + strings.TrimPrefix(closed.URL, "http://"))
	require.ErrorContains(t, err, "Bad Gateway")
	require.Eventually(t, func() bool { return l.Draws()[0].Settled }, 5*time.Second, time.Millisecond)
	require.Zero(t, l.Draws()[0].Used, "nobody was called")
}

// A switch of protocols goes through, in both directions.
func TestUpgrade(t *testing.T) {
	u := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		line, _ := rw.ReadString('\n')
		_, _ = io.WriteString(conn, "echo "+line)
	}))
	defer u.Close()
	p := start(t, Config{Upstream: u.URL, Limiter: throttletest.New()})
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	require.NoError(t, err)
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	require.Equal(t, 101, res.StatusCode)
	_, err = io.WriteString(conn, "hi\n")
	require.NoError(t, err)
	line, err := in.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "echo hi\n", line)
}
