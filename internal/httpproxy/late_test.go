package httpproxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// A client whose body does not come is told so, and its connection ends.
func TestALateBody(t *testing.T) {
	u := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer u.Close()
	for _, buffer := range []int{1000, 1} { // it is read before the request leaves, and as it is sent
		p := start(t, Config{Upstream: u.URL, Limiter: throttletest.New(), IdleTimeout: time.Second, BodyBuffer: buffer})
		for _, head := range []string{"Content-Length: 500\r\n\r\nhi", "Transfer-Encoding: chunked\r\n\r\n3\r\nhi \r\n"} {
			conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
			require.NoError(t, err)
			require.NoError(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
			_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: localhost\r\n"+head)
			require.NoError(t, err)
			in := bufio.NewReader(conn)
			res, err := http.ReadResponse(in, nil)
			require.NoError(t, err)
			body, err := io.ReadAll(res.Body)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			require.Equal(t, http.StatusRequestTimeout, res.StatusCode, string(body))
			require.Equal(t, "too_late", reason(t, string(body)))
			require.True(t, res.Close)
			_, err = in.ReadByte()
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
