package httpthrottle_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/llm/usage"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// serveHTTP starts a server that answers by what it is called for the nth time, from 1.
func serveHTTP(t *testing.T, handle func(n int, w http.ResponseWriter, r *http.Request)) (server *httptest.Server, calls *atomic.Int64) {
	t.Helper()
	calls = &atomic.Int64{}
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handle(int(calls.Add(1)), w, r)
	}))
	t.Cleanup(server.Close)
	return server, calls
}

// The connection of a refused attempt is used again: its answer was drained.
func TestConnectionIsKeptOverAttempts(t *testing.T) {
	remotes := make(chan string, 3)
	server, _ := serveHTTP(t, func(n int, w http.ResponseWriter, r *http.Request) {
		remotes <- r.RemoteAddr
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != "hello" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if n < 3 {
			w.Header().Set("Retry-After-Ms", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = w.Write(bytes.Repeat([]byte("x"), 5000))
		}
	})
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	client := &http.Client{Transport: httpthrottle.NewTransport(base, throttletest.New())}
	res, err := client.Post(server.URL, "text/plain", bytes.NewBufferString("hello"))
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.NoError(t, res.Body.Close())
	first := <-remotes
	require.Equal(t, first, <-remotes)
	require.Equal(t, first, <-remotes)
}

// A Timeout of the client is a deadline: what does not fit is told at once, with its
// reason.
func TestClientTimeout(t *testing.T) {
	server, calls := serveHTTP(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "50")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	limiter, err := throttle.New(throttle.Limit{Max: 1, Per: time.Hour, Burst: 1}, throttle.WithName("calls"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = limiter.Close() })
	client := &http.Client{Timeout: 20 * time.Second, Transport: httpthrottle.NewTransport(nil, limiter)}
	started := time.Now()
	_, err = client.Get(server.URL + "/?key=sesame")
	require.ErrorIs(t, err, throttle.ErrThrottled)
	te, is := errors.AsType[*throttle.Error](err)
	require.True(t, is)
	require.Equal(t, throttle.ReasonLimit, te.Reason)
	require.Equal(t, "calls", te.Limit)
	require.Zero(t, calls.Load())

	tr := httpthrottle.NewTransport(nil, nil)
	client = &http.Client{Timeout: 20 * time.Second, Transport: tr}
	res, err := client.Get(server.URL)
	require.NoError(t, err)
	require.Equal(t, http.StatusTooManyRequests, res.StatusCode)
	require.NoError(t, res.Body.Close())
	_, err = client.Get(server.URL)
	te, is = errors.AsType[*throttle.Error](err)
	require.True(t, is)
	require.Equal(t, throttle.ReasonPause, te.Reason)
	require.Equal(t, int64(1), calls.Load())
	require.Less(t, time.Since(started), 20*time.Second)
}

// A streamed answer reaches the caller piece by piece, and is settled when it is over.
func TestStream(t *testing.T) {
	next := make(chan struct{})
	server, _ := serveHTTP(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range []string{
			`{"choices":[{"delta":{"content":"a"}}]}`, `{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"total_tokens":42}}`, `[DONE]`,
		} {
			_, _ = fmt.Fprintf(w, "data: %s\n\n", event)
			_ = http.NewResponseController(w).Flush()
			<-next
		}
	})
	l := throttletest.New()
	client := &http.Client{Transport: httpthrottle.NewTransport(nil, l,
		httpthrottle.WithMeter(func(res *http.Response) httpthrottle.Meter { return usage.NewMeter(res, nil) }),
		httpthrottle.WithCost(func(*http.Request) int { return 100 }))}
	res, err := client.Get(server.URL)
	require.NoError(t, err)
	buffer := make([]byte, 1024)
	n, err := res.Body.Read(buffer)
	require.NoError(t, err)
	require.Contains(t, string(buffer[:n]), `"a"`)
	require.False(t, l.Draws()[0].Settled)
	close(next)
	_, err = io.Copy(io.Discard, res.Body)
	require.NoError(t, err)
	require.Equal(t, 42, l.Used())
	require.NoError(t, res.Body.Close())
}

// A caller that goes away in the middle of a stream leaves no slot behind.
func TestStreamThatIsCancelled(t *testing.T) {
	server, _ := serveHTTP(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "data: {}\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	slots, err := throttle.NewInFlight(1)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
	require.NoError(t, err)
	res, err := httpthrottle.NewTransport(nil, slots).RoundTrip(req)
	require.NoError(t, err)
	_, ok := slots.TryAcquire(1)
	require.False(t, ok)
	cancel()
	_, err = io.Copy(io.Discard, res.Body)
	require.ErrorIs(t, err, context.Canceled)
	p, ok := slots.TryAcquire(1)
	require.True(t, ok)
	p.Cancel()
	require.NoError(t, res.Body.Close())
}

// Each hop of a redirect draws, for each is a call.
func TestRedirectDraws(t *testing.T) {
	server, _ := serveHTTP(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n == 1 {
			http.Redirect(w, r, "/other", http.StatusFound)
			return
		}
		_ = json.NewEncoder(w).Encode("done")
	})
	l := throttletest.New()
	res, err := (&http.Client{Transport: httpthrottle.NewTransport(nil, l)}).Get(server.URL)
	require.NoError(t, err)
	require.Equal(t, "\"done\"\n", read(t, res))
	require.Len(t, l.Draws(), 2)
}
