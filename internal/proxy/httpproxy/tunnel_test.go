package httpproxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

const handshake = "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n" +
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==\r\n\r\n"

// switching is a service that refuses so many requests, then switches protocols, whoever asks, and does something with the connection.
func switching(t *testing.T, refused int, then func(conn net.Conn, in *bufio.Reader)) *testkit.Service {
	t.Helper()
	return serve(t, refusing(refused, func(w http.ResponseWriter, _ testkit.Request, _ int) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		then(conn, rw.Reader)
	}))
}

// dialTunnel makes a websocket through the proxy.
func dialTunnel(t *testing.T, p *running) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, in, res := connect(t, p, handshake)
	require.Equal(t, 101, res.StatusCode)
	require.Equal(t, "websocket", res.Header.Get("Upgrade"))
	return conn, in
}

// A tunnel on which nobody says anything ends, and its permit is settled.
func TestASilentTunnelEnds(t *testing.T) {
	ended := make(chan struct{})
	u := switching(t, 0, func(_ net.Conn, in *bufio.Reader) {
		defer close(ended)
		_, _ = io.Copy(io.Discard, in)
	})
	l := throttletest.New()
	p := start(t, Config{Upstream: u.URL, Limiter: l, IdleTimeout: time.Second})
	_, in := dialTunnel(t, p)
	_, err := in.ReadByte()
	require.ErrorIs(t, err, io.EOF)
	<-ended
	require.Eventually(t, func() bool { return l.Draws()[0].Settled }, 10*time.Second, time.Millisecond)
}

// A tunnel lives as long as one side says something.
func TestATunnelThatIsUsedGoesOn(t *testing.T) {
	u := switching(t, 0, func(conn net.Conn, _ *bufio.Reader) {
		for range 8 {
			time.Sleep(250 * time.Millisecond) // longer than idleTimeout together
			_, _ = io.WriteString(conn, "x")
		}
	})
	p := start(t, Config{Upstream: u.URL, Limiter: throttletest.New(), IdleTimeout: time.Second})
	_, in := dialTunnel(t, p)
	all, err := io.ReadAll(in)
	require.NoError(t, err)
	require.Equal(t, "xxxxxxxx", string(all))
}

// With a cost by bytes what is sent through a tunnel counts, also when its handshake was refused at first. It need not be JSON.
func TestTheBytesOfATunnelCount(t *testing.T) {
	for i, tag := range []string{"", "", "json model"} {
		refused := i % 2
		u := switching(t, refused, func(conn net.Conn, in *bufio.Reader) {
			_, _ = io.CopyN(io.Discard, in, 12_345)
			_, _ = io.WriteString(conn, "x")
		})
		l := throttletest.New()
		p := start(t, Config{Upstream: u.URL, Limiter: l, Cost: "bytes/1000", Tag: tag, Provider: profile.OpenAI})
		conn, in := dialTunnel(t, p)
		require.Equal(t, 1, l.Draws()[refused].Cost)
		_, err := conn.Write([]byte(strings.Repeat(",{\"", 12_345/3)))
		require.NoError(t, err)
		_, err = in.ReadByte()
		require.NoError(t, err)
		require.NoError(t, conn.Close())
		require.Eventually(t, func() bool { return l.Draws()[refused].Settled }, 10*time.Second, time.Millisecond)
		require.Equal(t, 13, l.Draws()[refused].Used)
	}
}

// A service that switches protocols unasked gets no tunnel.
func TestASwitchThatNobodyAskedFor(t *testing.T) {
	for _, upgrade := range append(upgrades, "") {
		ended := make(chan struct{})
		u := switching(t, 0, func(_ net.Conn, in *bufio.Reader) {
			defer close(ended)
			_, _ = io.Copy(io.Discard, in)
		})
		p := start(t, Config{Upstream: u.URL, Limiter: throttletest.New()})
		res, body := raw(t, p, "POST / HTTP/1.1\r\nHost: localhost\r\n"+upgrade+"Content-Length: 2\r\n\r\nhi")
		require.Equal(t, 502, res.StatusCode, upgrade)
		require.Equal(t, "upstream", reason(t, body))
		<-ended
	}
}

// A handshake that the service refuses is a request like others.
func TestAHandshakeThatIsRefused(t *testing.T) {
	u := serve(t, refusing(1, func(w http.ResponseWriter, _ testkit.Request, _ int) { w.WriteHeader(http.StatusForbidden) }))
	p := start(t, Config{Upstream: u.URL, Limiter: throttletest.New(), Provider: profile.OpenAI})
	res, _ := raw(t, p, handshake)
	require.Equal(t, 403, res.StatusCode)
	require.Len(t, u.Requests(), 2)
	require.Equal(t, "websocket", u.Requests()[0].Header.Get("Upgrade"))
}
