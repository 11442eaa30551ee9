package httpproxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/costrule"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// upgrades are headers that ask for another protocol, and make none of a request but a request.
var upgrades = []string{
	"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n",
	"Upgrade: h2c\r\n", "Connection: Upgrade\r\nUpgrade: x/1\r\n", "Connection: upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: x\r\n",
	"Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n", "Upgrade:\r\n", "Connection: close, Upgrade\r\nUpgrade: TLS/1.2\r\nUpgrade: websocket\r\n",
}

func TestAnUpgradeHidesNoBody(t *testing.T) {
	for _, upgrade := range upgrades {
		for _, chunked := range []bool{false, true} {
			u := serve(t, refusing(1, hello))
			l := throttletest.New()
			p := start(t, Config{Upstream: u.URL, Limiter: l, Cost: "bytes/1", MaxBody: 6000, Provider: profile.OpenAI})
			request := func(size int) string {
				body := strings.Repeat("x", size)
				if chunked {
					return fmt.Sprintf("POST /c HTTP/1.1\r\nHost: localhost\r\n%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", upgrade, size, body)
				}
				return fmt.Sprintf("POST /c HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %d\r\n\r\n%s", upgrade, size, body)
			}
			res, body := raw(t, p, request(5000))
			require.Equal(t, 200, res.StatusCode, body)
			require.Len(t, u.Requests(), 2, "the refusal was waited out")
			for _, r := range u.Requests() {
				require.Len(t, r.Body, 5000)
				for _, name := range []string{"Upgrade", "Http2-Settings", "Connection"} {
					require.NotContains(t, r.Header, name)
				}
			}
			require.Equal(t, 5000, l.Draws()[0].Cost)
			res, _ = raw(t, p, request(6001))
			require.Equal(t, 413, res.StatusCode)
			require.Len(t, u.Requests(), 2)
		}
	}
}

// A service that speaks HTTP/2 gets the request of a client that asks for h2c, as Java's does.
func TestAnUpgradeToAServiceOverHTTP2(t *testing.T) {
	l := throttletest.New()
	proto := make(chan string, 1)
	u := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { proto <- r.Proto }))
	u.EnableHTTP2 = true
	u.StartTLS()
	defer u.Close()
	c := Config{Upstream: u.URL, Limiter: l}
	d := c.withDefaults()
	p := newHandler(&d, limits{limiter: l}, "", nil)
	transport, ok := u.Client().Transport.(*http.Transport)
	require.True(t, ok)
	p.reverse.Transport = transport
	front := httptest.NewServer(p)
	defer front.Close()
	res, _ := raw(t, &running{url: front.URL}, "GET / HTTP/1.1\r\nHost: localhost\r\n"+upgrades[0]+"\r\n")
	require.Equal(t, 200, res.StatusCode)
	require.Equal(t, "HTTP/2.0", <-proto)
}

// Nothing of a body passes once its answer is complete: its permit is settled.
func TestNothingPassesAfterTheAnswer(t *testing.T) {
	rule, _ := parseCost("bytes/10")
	s := &sending{rule: rule, m: &message{body: make([]byte, 15)}}
	body := &sentBody{io.NopCloser(strings.NewReader(strings.Repeat("x", 100))), s}
	n, err := body.Read(make([]byte, 50))
	require.NoError(t, err)
	require.Equal(t, 50, n)
	require.Equal(t, 7, costrule.Passed(s.with(context.Background()))())
	_, err = body.Read(make([]byte, 50))
	require.ErrorIs(t, err, errSettled)
}
