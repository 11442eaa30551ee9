package listen_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/listen"
)

// serve runs a server at a loopback port, and returns its URL, what tells it to end, and its end.
func serve(t *testing.T, s *listen.Server) (url string, stop func(), ended <-chan error) {
	t.Helper()
	set, err := listen.Open(t.Context(), []listen.Addr{{Network: "tcp", Address: "127.0.0.1:0"}}, 10, "", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	s.Set = set
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	return "http://" + set.Addrs()[0], cancel, done
}

// get returns the answer, or the error.
func get(url string) string {
	res, err := http.Get(url)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err.Error()
	}
	return string(body)
}

func TestARequestUnderWayIsServedToItsEnd(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(entered)
			<-leave
		}
		_, _ = io.WriteString(w, "served")
	})
	s := &listen.Server{Grace: time.Minute, Quiet: 20 * time.Millisecond, HTTP: &http.Server{Handler: handler}}
	url, stop, ended := serve(t, s)
	answer := make(chan string)
	go func() { answer <- get(url + "/slow") }()
	<-entered
	stop()
	require.Equal(t, "served", get(url), "those who end later are served meanwhile")
	close(leave)
	require.Equal(t, "served", <-answer)
	require.NoError(t, <-ended)
}

func TestTheServerWaitsForWhatItHolds(t *testing.T) {
	var busy atomic.Bool
	busy.Store(true)
	s := &listen.Server{Grace: time.Minute, Quiet: 20 * time.Millisecond, Busy: busy.Load, HTTP: &http.Server{Handler: http.NotFoundHandler()}}
	_, stop, ended := serve(t, s)
	stop()
	select {
	case err := <-ended:
		t.Fatal("it ended while it held something", err)
	case <-time.After(200 * time.Millisecond):
	}
	busy.Store(false)
	require.NoError(t, <-ended)
}

func TestTheGraceIsBounded(t *testing.T) {
	s := &listen.Server{Grace: 50 * time.Millisecond, Busy: func() bool { return true }, HTTP: &http.Server{Handler: http.NotFoundHandler()}}
	_, stop, ended := serve(t, s)
	stop()
	require.NoError(t, <-ended)
}

func TestABrokenListenerIsAnError(t *testing.T) {
	s := &listen.Server{Grace: time.Minute, HTTP: &http.Server{Handler: http.NotFoundHandler()}}
	_, _, ended := serve(t, s)
	require.NoError(t, s.Set.Close())
	require.ErrorIs(t, <-ended, net.ErrClosed)
}
