package program_test

import (
	"bufio"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/program"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

// What a service sends unasked, on a connection that is idle, is not printed by net/http.
func TestNoAnswerIsPrinted(t *testing.T) {
	const canary = "hunter2-canary"
	before := log.Writer()
	defer log.SetOutput(before)
	out := &testkit.Book{}
	log.SetOutput(out)
	program.MuteTransports()
	log.Print("something else")
	require.Contains(t, out.String(), "something else\n")

	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer lis.Close()
	more := make(chan struct{})
	go func() {
		conn, err := lis.Accept()
		if err != nil {
			return
		}
		_, _ = http.ReadRequest(bufio.NewReader(conn))
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		<-more
		_, _ = io.WriteString(conn, canary)
	}()
	client := &http.Client{Transport: &http.Transport{}}
	res, err := client.Get("http://" + lis.Addr().String())
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Eventually(t, func() bool { // the connection may not be idle yet
		select {
		case more <- struct{}{}:
		default:
		}
		return strings.Contains(out.String(), "Unsolicited response")
	}, 10*time.Second, 10*time.Millisecond)
	require.NotContains(t, out.String(), canary)
	require.True(t, strings.HasSuffix(out.String(), "(not shown)\n"), out.String())
}
