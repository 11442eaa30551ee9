package health

import (
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// However many connections are opened, so many take the process's memory and files; the next one's turn comes.
func TestConnectionsAreBounded(t *testing.T) {
	s := open(t, "127.0.0.1:0")
	var held []net.Conn
	for range mostConnections {
		c, err := net.Dial("tcp", s.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		held = append(held, c)
	}
	answered := make(chan int, 1)
	go func() {
		resp, err := http.Get("http://" + s.Addr().String() + "/healthz")
		if err != nil {
			answered <- 0
			return
		}
		_ = resp.Body.Close()
		answered <- resp.StatusCode
	}()
	select {
	case <-answered:
		require.Fail(t, "there was a place for one more")
	case <-time.After(50 * time.Millisecond):
	}
	require.NoError(t, held[0].Close())
	require.Equal(t, 200, <-answered)
}

// A page of another site reads nothing, also by a name that it has given to this machine; a link may be followed.
func TestPagesOfOtherSites(t *testing.T) {
	s := open(t, "127.0.0.1:0")
	for _, c := range []struct {
		host   string
		header []string
		code   int
	}{
		{"evil.example", nil, 403},
		{"evil.example", []string{"Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 403},
		{"", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"", []string{"Origin", "http://evil.example"}, 403},
		{"", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 200},
		{"localhost:1", nil, 200},
	} {
		for _, path := range []string{"/statusz", "/metrics", "/healthz"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr().String()+path, http.NoBody)
			require.NoError(t, err)
			req.Host = c.host
			for i := 0; i < len(c.header); i += 2 {
				req.Header.Set(c.header[i], c.header[i+1])
			}
			resp, err := http.DefaultClient.Do(req)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, c.code, resp.StatusCode, "%s %+v", path, c)
		}
	}
}
