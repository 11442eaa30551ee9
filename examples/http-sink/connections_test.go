package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

// startCounted starts a service that answers a message "STATUS BYTES" with that status and so many bytes, and
// counts the connections that are made to it. A status of 503 is answered once; what is sent again is taken.
func startCounted(t *testing.T) (s *testkit.Service, connections *atomic.Int32) {
	t.Helper()
	connections = &atomic.Int32{}
	refused := map[string]bool{}
	s = testkit.NewService(func(w http.ResponseWriter, r seen, _ int) {
		code, size, _ := strings.Cut(r.Body, " ")
		status, _ := strconv.Atoi(code)
		bytesOf, _ := strconv.Atoi(size)
		w.Header().Set("Retry-After-Ms", "1")
		if status == http.StatusServiceUnavailable {
			if refused[r.Body] {
				status = http.StatusOK
			}
			refused[r.Body] = true
		}
		w.WriteHeader(status)
		if bytesOf > 1 { // in chunks, of an unknown length
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = w.Write(bytes.Repeat([]byte("x"), bytesOf))
	})
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s, connections
}

// Answers are read to their end, whatever they say, so that one connection serves for all that is sent in sequence.
func TestAConnectionIsUsedAgain(t *testing.T) {
	service, connections := startCounted(t)
	r := start(t, env{"URL": service.URL, "CONCURRENCY": "1", "MAX_ATTEMPTS": "2", "STATUSES": "500=fail", "MAX_RESPONSE": "5000"})
	const ok, failure = dataplane.SinkSuccess, dataplane.SinkFailure
	for range 3 { // batches of the platform
		results := r.do(messages("200 0", "200 5000", "404 5000", "301 10", "500 5000", "503 5000", "503 0", "429 100", "204 0", "200 1")...)
		require.Equal(t, []dataplane.SinkStatus{ok, ok, failure, failure, failure, ok, ok, failure, ok, ok}, statuses(results))
	}
	require.EqualValues(t, 1, connections.Load())
}

// Of what is longer than maxResponse, or of a refusal longer than a mebibyte, the rest is not read: its connection is given up,
// and the next message has another.
func TestAnAnswerThatIsTooLongCostsItsConnection(t *testing.T) {
	service, connections := startCounted(t)
	r := start(t, env{"URL": service.URL, "CONCURRENCY": "1", "MAX_RESPONSE": "5000"})
	results := r.do(messages("200 1000000", "200 1", "404 2000000", "200 1", "200 1")...)
	require.Equal(t, []dataplane.SinkStatus{
		dataplane.SinkSuccess, dataplane.SinkSuccess, dataplane.SinkFailure, dataplane.SinkSuccess, dataplane.SinkSuccess,
	}, statuses(results))
	require.EqualValues(t, 3, connections.Load())
}

// What the metric counts is what the service sees, when it reads requests and ends their connections: net/http
// would send them again by itself, and more often.
func TestAttemptsAreWhatTheServiceSees(t *testing.T) {
	for most, requests := range map[string]int{"1": 2, "2": 3} {
		t.Run("at most "+most, func(t *testing.T) {
			service := startService(t, func(_ http.ResponseWriter, _ seen, n int) {
				if n > 1 {
					panic(http.ErrAbortHandler)
				}
			})
			r := start(t, env{"URL": service.URL, "MAX_ATTEMPTS": most, "ON_UNAVAILABLE": "drop", "NUMATHROTTLE_HEALTH_ADDR": "127.0.0.1:0"})
			require.Equal(t, all(1, dataplane.SinkSuccess), statuses(r.do(messages("first")...)))
			r.do(messages("second")...)
			require.Len(t, service.Requests(), requests)
			text := get(t, "http://"+r.meters.places.Addr.String()+"/metrics")
			require.Contains(t, text, `http_sink_attempts_total{status="2xx"} 1`)
			require.Contains(t, text, fmt.Sprintf(`http_sink_attempts_total{status="none"} %d`, requests-1))
		})
	}
}
