package main

import (
	"context"
	crand "crypto/rand"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

type sinkDatum = sinksdk.Datum

// datum is a message without a socket.
type datum struct {
	sinksdk.Datum

	id, value string
}

func (d datum) ID() string                 { return d.id }
func (d datum) Value() []byte              { return []byte(d.value) }
func (d datum) Keys() []string             { return nil }
func (d datum) Headers() map[string]string { return nil }
func (d datum) EventTime() time.Time       { return time.Time{} }
func (d datum) Watermark() time.Time       { return time.Time{} }

func TestNothingIsAcknowledgedBecauseTheContextHasEnded(t *testing.T) {
	release := make(chan struct{})
	reached := make(chan struct{}, 10)
	service := startService(t, func(http.ResponseWriter, seen, int) { reached <- struct{}{}; <-release })
	defer close(release)
	r := start(t, env{"URL": service.URL, "ON_UNAVAILABLE": "drop", "ON_INVALID": "drop", "CONCURRENCY": "2"})
	ctx, cancel := context.WithCancelCause(r.ctx)
	in := make(chan sinkDatum)
	done := make(chan sinksdk.Responses)
	go func() { done <- r.handler.Sink(ctx, in) }()
	in <- datum{id: "1"}
	<-reached
	in <- datum{id: "2"}
	<-reached
	in <- datum{id: "3"} // waits for a place
	cancel(errors.New("the end"))
	in <- datum{id: "4"}
	close(in)
	responses := <-done
	require.Len(t, responses, 4)
	for i, response := range responses {
		require.Equal(t, sinksdk.ResponseFailure(strconv.Itoa(i+1), "not sent: the end"), response)
	}
}

func TestWhenTheLimiterIsClosedMessagesWaitForTheEnd(t *testing.T) {
	service := startService(t, nil)
	r := start(t, env{"URL": service.URL, "NUMATHROTTLE_MAX": "10", "ON_UNAVAILABLE": "drop"})
	require.NoError(t, r.limits.close())
	ctx, cancel := context.WithCancel(r.ctx)
	in := make(chan sinkDatum, 1)
	in <- datum{id: "1"}
	close(in)
	done := make(chan sinksdk.Responses)
	go func() { done <- r.handler.Sink(ctx, in) }()
	require.Eventually(t, func() bool { return r.log.String() != "" }, testTimeout, time.Millisecond)
	select {
	case responses := <-done:
		require.Fail(t, "answered", responses)
	default:
	}
	cancel()
	require.False(t, (<-done)[0].Success)
	require.Empty(t, service.Requests())
}

func TestShadowModeHoldsNothingBackAndCounts(t *testing.T) {
	service := startService(t, nil)
	r := start(t, env{
		"URL": service.URL, "NUMATHROTTLE_MAX": "1", "NUMATHROTTLE_PER": "1h", "NUMATHROTTLE_STORE": "static://?replicas=1",
		"SHADOW": "true", "NUMATHROTTLE_HEALTH_ADDR": "127.0.0.1:0",
	})
	require.Equal(t, all(5, dataplane.SinkSuccess), statuses(r.do(numbered(5)...)))
	text := get(t, "http://"+r.meters.places.Addr.String()+"/metrics")
	require.Contains(t, text, "http_sink_shadow_throttled_total 5\n", "an hourly limit of one has nothing at hand in its first second")
	require.Contains(t, text, `http_sink_messages_total{answer="ack"} 5`)
	require.Contains(t, text, `http_sink_attempts_total{status="2xx"} 5`)
}

// The variables OTEL_* export what the health server shows.
func TestMetricsAreExportedAsTheStandardVariablesSay(t *testing.T) {
	addr := testenv.ClosedPort(t)
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	for name, value := range map[string]string{
		"OTEL_METRICS_EXPORTER": "prometheus", "OTEL_EXPORTER_PROMETHEUS_HOST": "127.0.0.1", "OTEL_EXPORTER_PROMETHEUS_PORT": port,
	} {
		t.Setenv(name, value)
	}
	service := startService(t, nil)
	r := start(t, env{"URL": service.URL, "NUMATHROTTLE_HEALTH_ADDR": "127.0.0.1:0"})
	require.Equal(t, all(3, dataplane.SinkSuccess), statuses(r.do(numbered(3)...)))
	for _, addr := range []string{addr, r.meters.places.Addr.String()} {
		text := get(t, "http://"+addr+"/metrics")
		require.Regexp(t, `http_sink_messages_total\{answer="ack".*\} 3\n`, text)
		require.Regexp(t, `http_sink_attempt_duration_seconds_count\{.*status="2xx".*\} 3\n`, text)
	}
}

func TestEachDestinationHasALimitOfItsOwn(t *testing.T) {
	service := startService(t, nil)
	r := start(t, env{
		"URL": service.URL + "/{{.Value}}", "DESTINATION": "{{.Value}}", "DESTINATION_MAX": "1", "NUMATHROTTLE_PER": "1h",
		"NUMATHROTTLE_STORE": "static://?replicas=1",
		"LIMIT_WAIT":         "1s", "ON_UNAVAILABLE": "nack", "DESTINATIONS": "3", "NUMATHROTTLE_BURST": "1",
	})
	results := r.do(messages("a", "b", "c", "d", "e", "f", "a")...)
	for _, result := range results {
		require.Equal(t, dataplane.SinkNack, result.Status)
		require.Equal(t, "throttled (limit)", result.NackOptions.Reason)
		require.Greater(t, result.NackOptions.Delay, time.Minute)
	}
	require.Len(t, r.limits.at, 4, "three, and one for all others")
	require.Empty(t, service.Requests())
}

func TestBreaker(t *testing.T) {
	service := startService(t, func(w http.ResponseWriter, r seen, n int) {
		if n <= 3 && r.Path == "/a" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	r := start(t, env{
		"URL": service.URL + "/{{.Value}}", "DESTINATION": "{{.Value}}", "BREAKER_FAILURES": "3", "BREAKER_OPEN": "300ms",
		"CONCURRENCY": "1", "ON_UNAVAILABLE": "nack", "NUMATHROTTLE_MAX": "1000000",
	})
	results := r.do(messages("a", "a", "a", "a", "b")...)
	require.Equal(t, append(all(4, dataplane.SinkNack), dataplane.SinkSuccess), statuses(results))
	require.Equal(t, "status 500", results[2].NackOptions.Reason)
	require.Equal(t, "the breaker is open: too many calls in a row have failed", results[3].NackOptions.Reason)
	require.Len(t, service.Requests(), 4, "the fourth to a was not sent")
	require.EqualValues(t, 4, r.limits.rates[0].Status().Granted, "and has drawn nothing")
	require.Eventually(t, func() bool { return r.do(messages("a")...)[0].Status == dataplane.SinkSuccess }, testTimeout, 10*time.Millisecond)
	require.Contains(t, r.log.String(), "the destination is called again")
}

func TestABatchWithFailuresIsHeldForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &settings{}
		s.setDefaults()
		h := &handler{settings: s, log: slog.New(slog.DiscardHandler)}
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		lasts := func(responses ...sinksdk.Response) time.Duration {
			b := &batch{handler: h, ctx: ctx}
			for _, r := range responses {
				b.answers = append(b.answers, &answer{id: r.ID, response: r, given: true})
			}
			began := time.Now()
			require.Equal(t, sinksdk.Responses(responses), b.responses())
			return time.Since(began)
		}
		ok, failure := sinksdk.ResponseOK("1"), sinksdk.ResponseFailure("2", "status 500")
		require.Equal(t, time.Second, lasts(ok, failure))
		require.Zero(t, lasts(ok, sinksdk.ResponseFallback("2"), sinksdk.ResponseNack("3", nil), sinksdk.ResponseOnSuccess("4", sinksdk.NewMessage(nil))))
		s.FailDelay = time.Hour
		require.Equal(t, 89*time.Second, lasts(failure), "not beyond the context")
	})
}

func TestAPanicIsAFailure(t *testing.T) {
	r := start(t, env{"URL": "http://127.0.0.1:1"})
	r.handler.client = nil
	for _, result := range r.do(numbered(3)...) {
		require.Equal(t, "internal error", result.Error)
	}
	require.Contains(t, r.log.String(), "panic while a request was made")
}

// Two processors share one limit.
func TestOneLimitOverAllPods(t *testing.T) {
	service := startService(t, nil)
	vars := env{
		"URL": service.URL, "NUMATHROTTLE_STORE": "memory://sinks", "NUMATHROTTLE_POOL": "p", "NUMATHROTTLE_MAX": "1000",
		"NUMATHROTTLE_ID": "a", "IN_FLIGHT": "8",
	}
	a := start(t, vars)
	vars["NUMATHROTTLE_ID"] = "b"
	b := start(t, vars)
	shares := make([]int64, 0, 2)
	for _, r := range []*rig{a, b} {
		require.Equal(t, all(20, dataplane.SinkSuccess), statuses(r.do(numbered(20)...)))
	}
	require.Eventually(t, func() bool {
		shares = shares[:0]
		for _, r := range []*rig{a, b} {
			status := r.limits.rates[0].Status()
			shares = append(shares, status.Lease.Share)
		}
		return shares[0] > 0 && shares[1] > 0
	}, testTimeout, 10*time.Millisecond)
	require.LessOrEqual(t, shares[0]+shares[1], int64(limit.WholeShare))
}

// What one pod is told by the service, all pods heed: of two, one is enough. It is for the calls to that
// destination only.
func TestARefusalHoldsBackAllPods(t *testing.T) {
	var refuses atomic.Bool
	refuses.Store(true)
	service := startService(t, func(w http.ResponseWriter, r seen, _ int) {
		if refuses.Load() && strings.HasSuffix(r.Path, "/full") {
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	for name, c := range map[string]struct {
		vars env
		to   string // what goes there is refused
		rate int    // which pool pauses
	}{
		"one destination":            {env{"URL": service.URL + "/full"}, "x", 0},
		"several":                    {env{"URL": service.URL + "/{{.Value}}", "DESTINATION": "{{.Value}}", "DESTINATION_MAX": "500"}, "full", 1},
		"with a wait":                {env{"URL": service.URL + "/full", "LIMIT_WAIT": "1s"}, "x", 0},
		"several, no pool of theirs": {env{"URL": service.URL + "/{{.Value}}", "DESTINATION": "{{.Value}}"}, "full", -1},
	} {
		t.Run(name, func(t *testing.T) {
			vars := env{
				"NUMATHROTTLE_STORE": "memory://" + crand.Text(), "NUMATHROTTLE_POOL": "p", "NUMATHROTTLE_MAX": "1000",
				"NUMATHROTTLE_ID": "a", "ON_UNAVAILABLE": "nack", "MAX_ATTEMPTS": "1", "MAX_WAIT": "1s",
			}
			maps.Copy(vars, c.vars)
			a := start(t, vars)
			vars["NUMATHROTTLE_ID"] = "b"
			b := start(t, vars)
			refuses.Store(false)
			for _, r := range []*rig{a, b} { // both are in the pools
				require.Eventually(t, func() bool { return r.limits.rates[0].Status().Lease.Share > 0 }, testTimeout, 10*time.Millisecond)
				require.Equal(t, all(1, dataplane.SinkSuccess), statuses(r.do(messages(c.to)...)))
			}
			refuses.Store(true)
			require.Equal(t, all(1, dataplane.SinkNack), statuses(a.do(messages(c.to)...)))
			if c.rate >= 0 {
				require.Eventually(t, func() bool { return b.limits.rates[c.rate].Status().Paused != nil }, testTimeout, 10*time.Millisecond)
			}
			if c.vars["LIMIT_WAIT"] != "" { // else it would wait for the end, as for tokens
				before := len(service.Requests())
				require.Equal(t, all(1, dataplane.SinkNack), statuses(b.do(messages(c.to)...)))
				require.Len(t, service.Requests(), before, "the service is left alone")
			}
			if c.vars["DESTINATION"] != "" {
				require.Equal(t, all(1, dataplane.SinkSuccess), statuses(b.do(messages("other")...)))
			}
		})
	}
}

// nginx refuses what comes faster than 40 per second with a 429 that says nothing else. answers
// returns how often it has given each status.
func nginx(t *testing.T) (url string, answers func() map[string]int) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "requests.log")
	server := testenv.Nginx(t,
		[]string{"limit_req_zone $binary_remote_addr zone=all:1m rate=40r/s;", "limit_req_status 429;", "log_format one \"$status\";"},
		// Not by "return", which nginx would act on before it looks at the limit.
		[]string{"location = /sink { limit_req zone=all burst=4 nodelay; access_log " + log + " one; try_files /none =204; }"})
	return server.URL() + "/sink", func() map[string]int {
		content, err := os.ReadFile(log)
		require.NoError(t, err)
		counts := map[string]int{}
		for line := range strings.Lines(string(content)) {
			counts[strings.TrimSpace(line)]++
		}
		return counts
	}
}

func TestWithinItsLimitNginxRefusesNothing(t *testing.T) {
	url, answers := nginx(t)
	r := start(t, env{"URL": url, "NUMATHROTTLE_MAX": "36", "NUMATHROTTLE_BURST": "1"})
	require.Equal(t, all(20, dataplane.SinkSuccess), statuses(r.do(numbered(20)...)), "with one attempt for each")
	require.Eventually(t, func() bool { return answers()["204"] == 20 }, testTimeout, time.Millisecond, "nginx writes its log behind its answers")
	require.Len(t, answers(), 1)
}

func TestWhatNginxRefusesIsSentAgainUntilItIsTaken(t *testing.T) {
	url, answers := nginx(t)
	r := start(t, env{"URL": url, "MAX_ATTEMPTS": "20"})
	require.Equal(t, all(12, dataplane.SinkSuccess), statuses(r.do(numbered(12)...)))
	require.Eventually(t, func() bool { return answers()["204"] == 12 }, testTimeout, time.Millisecond)
	require.Positive(t, answers()["429"])
}
