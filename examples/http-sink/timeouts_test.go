package main

import (
	"maps"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
)

// requireTimeouts sends a message to a service that stalls in one phase. It must end by the
// setting of the phase, and by that of the whole attempt, and count as one that the service could not
// take for now: sent again, and then answered as onUnavailable says. All other times are an hour.
func requireTimeouts(t *testing.T, phase string, vars env) {
	t.Helper()
	for setting, why := range map[string]string{
		phase: "no answer in time (dialTimeout, tlsTimeout or headerTimeout)", "TIMEOUT": "no answer in time (timeout)",
	} {
		t.Run(setting, func(t *testing.T) {
			vars := maps.Clone(vars)
			for _, name := range []string{"DIAL_TIMEOUT", "TLS_TIMEOUT", "HEADER_TIMEOUT", "TIMEOUT"} {
				vars[name] = "1h"
			}
			vars[setting], vars["ON_UNAVAILABLE"], vars["NUMATHROTTLE_MAX"] = "50ms", "nack", "1000000"
			vars["MAX_ATTEMPTS"] = "2"
			r := start(t, vars)
			results := r.do(messages("x")...)
			require.Equal(t, dataplane.SinkNack, results[0].Status)
			require.Equal(t, why, results[0].NackOptions.Reason)
			require.EqualValues(t, 2, r.limits.rates[0].Status().Granted, "each attempt has its own time")
		})
	}
}

func TestATLSHandshakeThatStalls(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var accepted atomic.Int32
	done := make(chan struct{})
	go func() {
		defer close(done)
		var conns []net.Conn // held open, and silent
		for {
			conn, err := l.Accept()
			if err != nil {
				break
			}
			accepted.Add(1)
			conns = append(conns, conn)
		}
		for _, conn := range conns {
			_ = conn.Close()
		}
	}()
	defer func() { _ = l.Close(); <-done }()
	requireTimeouts(t, "TLS_TIMEOUT", env{"URL": "https://" + l.Addr().String()})
	require.Eventually(t, func() bool { return accepted.Load() >= 2 }, testTimeout, time.Millisecond, "the attempts have connected")
}

func TestAHeadOfAnAnswerThatDoesNotCome(t *testing.T) {
	release := make(chan struct{})
	service := startService(t, func(http.ResponseWriter, seen, int) { <-release })
	defer close(release)
	requireTimeouts(t, "HEADER_TIMEOUT", env{"URL": service.URL})
	require.Eventually(t, func() bool { return len(service.Requests()) >= 2 }, testTimeout, time.Millisecond, "the requests were read")
}
