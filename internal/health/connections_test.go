package health

import (
	"net"
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
		defer c.Close()
		held = append(held, c)
	}
	answered := make(chan int, 1)
	go func() {
		resp, _ := ask(t, s, "GET", "/healthz", "")
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
