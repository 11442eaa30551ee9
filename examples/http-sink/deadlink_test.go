package main

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

// A connection that dies in silence costs what is under way on it and nothing that comes later: it is found out by a
// ping over HTTP/2, and by the first timeout over HTTP/1.1, which gives up the idle connections beside it, too.
func TestAConnectionThatDiesInSilence(t *testing.T) {
	for _, version := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(version, func(t *testing.T) {
			ca := testenv.NewAuthority(t)
			service := testkit.NewService(nil)
			protocols := make(chan string, 1000)
			inner := service.Config.Handler
			service.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				protocols <- r.Proto
				inner.ServeHTTP(w, r)
			})
			service.TLS = ca.Server(t, "127.0.0.1")
			service.EnableHTTP2 = version == "HTTP/2.0"
			service.StartTLS()
			t.Cleanup(service.Close)
			way := testenv.Proxy(t, service.Listener.Addr().String())

			const concurrency = 8
			// One connection and one attempt for each request, whose timeout ends it: the row of losses is the measure.
			r := start(t, env{
				"URL": "https://" + way.Addr(), "CA_FILE": file(t, "ca.pem", ca.PEM), "CONCURRENCY": strconv.Itoa(concurrency),
				"TIMEOUT": "1s", "HEADER_TIMEOUT": "1s", "PING_AFTER": "250ms", "PING_TIMEOUT": "250ms",
			})
			require.Equal(t, all(4*concurrency, dataplane.SinkSuccess), statuses(r.do(numbered(4*concurrency)...)))
			require.Equal(t, version, <-protocols)
			require.Positive(t, way.Forget())
			lost := 0
			for _, result := range r.do(numbered(50 * concurrency)...) {
				if result.Status != dataplane.SinkSuccess {
					lost++
					require.True(t, strings.HasPrefix(result.Error, "no answer in time") || result.Error == "the connection broke off", result.Error)
				}
			}
			require.LessOrEqual(t, lost, concurrency, "no more than were under way")
			require.Zero(t, lostOf(r.do(numbered(concurrency)...)))

			// One message at a time: the first is lost, and no other.
			way.Forget()
			lost = 0
			for range 5 {
				lost += lostOf(r.do(numbered(1)...))
			}
			require.LessOrEqual(t, lost, 1)
		})
	}
}

func lostOf(results []dataplane.SinkResult) (n int) {
	for _, r := range results {
		if r.Status != dataplane.SinkSuccess {
			n++
		}
	}
	return n
}

// With another attempt nothing is lost at all.
func TestAnotherAttemptOutlivesADeadConnection(t *testing.T) {
	ca := testenv.NewAuthority(t)
	service := testkit.NewService(func(w http.ResponseWriter, _ seen, _ int) { _, _ = io.WriteString(w, "ok") })
	service.TLS, service.EnableHTTP2 = ca.Server(t, "127.0.0.1"), true
	service.StartTLS()
	t.Cleanup(service.Close)
	way := testenv.Proxy(t, service.Listener.Addr().String())
	r := start(t, env{
		"URL": "https://" + way.Addr(), "CA_FILE": file(t, "ca.pem", ca.PEM), "CONCURRENCY": "8", "TIMEOUT": "2s", "MAX_ATTEMPTS": "2",
		"PING_AFTER": "100ms", "PING_TIMEOUT": "100ms",
	})
	require.Zero(t, lostOf(r.do(numbered(16)...)))
	way.Forget()
	require.Zero(t, lostOf(r.do(numbered(64)...)))
}
