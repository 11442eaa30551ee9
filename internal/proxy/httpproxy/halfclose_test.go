package httpproxy

import (
	"bufio"
	"fmt"
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

// A talk is what two ends of a tunnel say to each other, one after the other has closed its half.
var talks = map[string]struct {
	client, service func(conn *net.TCPConn, in io.Reader) error
}{
	"the client closes first": {
		client: func(conn *net.TCPConn, in io.Reader) error {
			_, _ = io.WriteString(conn, "question")
			_ = conn.CloseWrite()
			return expect(in, "an answer to question")
		},
		service: func(conn *net.TCPConn, in io.Reader) error {
			all, err := io.ReadAll(in)
			_, _ = io.WriteString(conn, "an answer to "+string(all))
			return err
		},
	},
	"the service closes first": {
		client: func(conn *net.TCPConn, in io.Reader) error {
			err := expect(in, "hello")
			_, _ = io.WriteString(conn, strings.Repeat("last words", 1000))
			_ = conn.CloseWrite()
			return err
		},
		service: func(conn *net.TCPConn, in io.Reader) error {
			_, _ = io.WriteString(conn, "hello")
			_ = conn.CloseWrite()
			return expect(in, strings.Repeat("last words", 1000))
		},
	},
}

func tcp(conn net.Conn) *net.TCPConn {
	c, _ := conn.(*net.TCPConn)
	return c
}

func expect(in io.Reader, want string) error {
	got, err := io.ReadAll(in)
	if err == nil && string(got) != want {
		err = fmt.Errorf("came %.40q, want %.40q", got, want)
	}
	return err
}

// What one side of a websocket sends after the other one has closed its half arrives, and is paid.
func TestAHalfClosedWebsocket(t *testing.T) {
	for name, talk := range talks {
		t.Run(name, func(t *testing.T) {
			service := make(chan error, 1)
			u := switching(t, 0, func(conn net.Conn, in *bufio.Reader) { service <- talk.service(tcp(conn), in) })
			l := throttletest.New()
			p := start(t, Config{Upstream: u.URL, Limiter: l, Cost: "bytes/1000"})
			conn, in := dialTunnel(t, p)
			require.NoError(t, talk.client(tcp(conn), in))
			require.NoError(t, <-service)
			require.Eventually(t, func() bool { return l.Draws()[0].Settled }, 10*time.Second, time.Millisecond)
			if name == "the service closes first" {
				require.Equal(t, 10, l.Draws()[0].Used)
			}
		})
	}
}

// A client that ends its half before the answer is told so: what net/http makes of a handler that writes nothing reads like success.
func TestAHalfClosedRequest(t *testing.T) {
	came := make(chan struct{})
	u := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(came)
		<-r.Context().Done()
	}))
	defer u.Close()
	p := start(t, Config{Upstream: u.URL, Limiter: throttletest.New()})
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	require.NoError(t, err)
	<-came
	require.NoError(t, tcp(conn).CloseWrite())
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Contains(t, string(answer), "HTTP/1.1 408 ")
	require.Contains(t, string(answer), "ended on the client's side")
}

// The same through CONNECT.
func TestAHalfClosedConnect(t *testing.T) {
	for name, talk := range talks {
		t.Run(name, func(t *testing.T) {
			service := make(chan error, 1)
			u, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer u.Close()
			go func() {
				conn, err := u.Accept()
				if err != nil {
					service <- err
					return
				}
				service <- talk.service(tcp(conn), conn)
				_ = conn.Close()
			}()
			l := throttletest.New()
			p := start(t, Config{Forward: u.Addr().String(), Limiter: l, AllowConnect: true})
			conn, in, res := connect(t, p, fmt.Sprintf("CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", u.Addr()))
			require.Equal(t, 200, res.StatusCode)
			require.NoError(t, talk.client(tcp(conn), in))
			require.NoError(t, <-service)
			require.Eventually(t, func() bool { return l.Draws()[0].Settled }, 10*time.Second, time.Millisecond)
		})
	}
}
