package httpproxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/proxy"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// A client whose body does not come is told so, and its connection ends.
func TestALateBody(t *testing.T) {
	u := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer u.Close()
	for _, buffer := range []int{1000, 1} { // it is read before the request leaves, and as it is sent
		p := start(t, Config{Upstream: u.URL, Limiter: throttletest.New(), IdleTimeout: time.Second, BodyBuffer: buffer})
		for _, head := range []string{"Content-Length: 500\r\n\r\nhi", "Transfer-Encoding: chunked\r\n\r\n3\r\nhi \r\n"} {
			conn, in, res := connect(t, p, "POST / HTTP/1.1\r\nHost: localhost\r\n"+head)
			body := bodyOf(t, res)
			require.Equal(t, http.StatusRequestTimeout, res.StatusCode, body)
			require.Equal(t, "too_late", reason(t, body))
			require.True(t, res.Close)
			_, err := in.ReadByte()
			require.ErrorIs(t, err, io.EOF)
			require.NoError(t, conn.Close())
		}
	}
}

// What a service sends that cannot be read is in no log.
func TestAnswersThatCannotBeReadAreNotLogged(t *testing.T) {
	for _, answer := range []string{
		canary, "HTTP/1.1 2x0 " + canary + "\r\n\r\n", "HTTP/1.1 200 OK\r\n" + canary + "\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: " + canary + "\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: " + canary + "\r\n\r\n", "HTTP/" + canary + " 200 OK\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2" + canary + "\r\n\r\n", "\"" + canary + "\\\" " + canary + "\"\r\n\r\n",
	} {
		lis, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		go func() {
			for {
				conn, err := lis.Accept()
				if err != nil {
					return
				}
				_, _ = http.ReadRequest(bufio.NewReader(conn))
				_, _ = io.WriteString(conn, answer)
				_ = conn.Close()
			}
		}()
		p := start(t, Config{Upstream: "http://" + lis.Addr().String(), Limiter: throttletest.New()})
		res, _ := send(t, "POST", p.url, "x")
		require.Equal(t, 502, res.StatusCode, answer)
		require.Contains(t, p.log.String(), "a request got no answer")
		require.NotContains(t, p.log.String(), canary, answer)
		require.NoError(t, lis.Close())
	}
}

// A request that is refused before its body was read ends the connection: nobody waits for the rest. After one whose body was read the
// connection goes on.
func TestARefusedRequestHoldsNoConnection(t *testing.T) {
	u := serve(t, hello)
	unread := "Content-Length: 5000000\r\n\r\nhi"
	for name, c := range map[string]struct {
		config Config
		head   string
		status int
	}{
		"no token":     {Config{Serving: proxy.Serving{Token: numathrottle.NewSecret(canary)}}, "POST / HTTP/1.1\r\nHost: localhost\r\n", 401},
		"another site": {Config{}, "POST / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n", 403},
		"no place":     {Config{Forward: "x"}, "POST http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n", 403},
		"no tunnel":    {Config{Forward: "x"}, "CONNECT x:443 HTTP/1.1\r\nHost: x:443\r\n", 403},
		"too long":     {Config{MaxBody: 1000}, "POST / HTTP/1.1\r\nHost: localhost\r\n", 413},
		"packed":       {Config{Cost: "llm", BodyBuffer: 1}, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: br\r\n", 415},
		"no tokens":    {Config{MaxWait: time.Millisecond, BodyBuffer: 1}, "POST / HTTP/1.1\r\nHost: localhost\r\n", 429},
	} {
		t.Run(name, func(t *testing.T) {
			th, err := throttle.New(throttle.Limit{Max: 1, Per: time.Hour})
			require.NoError(t, err)
			defer th.Close()
			c.config.Upstream, c.config.Limiter = u.URL, th
			p := start(t, c.config)
			_, in, res := connect(t, p, c.head+unread)
			require.Equal(t, c.status, res.StatusCode)
			require.True(t, res.Close)
			_, err = io.Copy(io.Discard, in)
			require.NoError(t, err)
		})
	}
	require.Empty(t, u.Requests())
	th, err := throttle.New(throttle.Limit{Max: 1, Per: time.Hour})
	require.NoError(t, err)
	defer th.Close()
	p := start(t, Config{Upstream: u.URL, Limiter: th, MaxWait: time.Millisecond})
	const whole = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nhi"
	conn, in, res := connect(t, p, whole)
	for range 3 {
		require.Equal(t, 429, res.StatusCode)
		require.False(t, res.Close)
		bodyOf(t, res)
		_, err = io.WriteString(conn, whole)
		require.NoError(t, err)
		res, err = http.ReadResponse(in, nil)
		require.NoError(t, err)
	}
}

// What the client sends that is no body is no failure of the service.
func TestABodyThatCannotBeRead(t *testing.T) {
	u := serve(t, hello)
	for _, buffer := range []int{1000, 1} {
		l := throttletest.New()
		p := start(t, Config{Upstream: u.URL, Limiter: l, BodyBuffer: buffer})
		for _, chunks := range []string{"zz\r\n", "3\r\nabcdef\r\n", "5\r\nhello\r\n-1\r\n"} {
			res, body := raw(t, p, "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"+chunks)
			require.Equal(t, 400, res.StatusCode, body)
			require.Equal(t, "bad_request", reason(t, body))
			require.True(t, res.Close)
		}
		require.NotContains(t, p.log.String(), "a request got no answer")
	}
}
