package opening

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/numaproj-contrib/numathrottle/internal/health"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// fetch asks the health server; code is 0 when there is none.
func fetch(t *testing.T, addr, path string) (code int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+path, http.NoBody)
	require.NoError(t, err)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

func TestHealthServer(t *testing.T) {
	addr := testenv.ClosedPort(t)
	open := func(pool string) *throttle.Throttle {
		return mustOpen(t, Config{
			Limit: throttle.Limit{Max: 50}, Store: "memory://" + t.Name(), Pool: pool, ID: "pod-1", Logger: quiet(), HealthAddr: addr,
		})
	}
	requests, tokens := open("requests"), open("tokens")
	eventually(t, func() bool { code, _ := fetch(t, addr, "/readyz"); return code == 200 }, "ready")
	code, body := fetch(t, addr, "/healthz")
	require.Equal(t, 200, code)
	require.Equal(t, "ok\n", body)
	eventually(t, grants(requests), "a token")

	_, body = fetch(t, addr, "/statusz?format=json")
	var status health.Status
	require.NoError(t, json.Unmarshal([]byte(body), &status))
	require.Len(t, status.Limits, 2)
	first := status.Limits[0]
	require.Equal(t, "requests", first.Name)
	require.Equal(t, int64(1), first.Granted)
	require.InDelta(t, 1, first.Share, 0)
	require.Equal(t, "requests", first.Pool.Name)
	require.Equal(t, "holding", first.Pool.State)
	require.Len(t, first.Pool.Roster, 1)
	require.Equal(t, "pod-1", first.Pool.Roster[0].ID)
	require.Equal(t, "memory://"+t.Name(), first.Store.URL)
	_, body = fetch(t, addr, "/metrics")
	require.Contains(t, body, `numathrottle_tokens_granted_total{limit="requests"} 1`)
	require.Contains(t, body, `numathrottle_tokens_granted_total{limit="tokens"} 0`)
	require.Contains(t, body, `numathrottle_sync_duration_seconds_count{limit="tokens",outcome="ok",store="memory"}`)

	_, err := requests.Pause(t.Context(), time.Time{}, "for good")
	require.NoError(t, err)
	require.False(t, grants(requests)())
	_, body = fetch(t, addr, "/statusz?format=json")
	status = health.Status{}
	require.NoError(t, json.Unmarshal([]byte(body), &status))
	paused := status.Limits[0]
	require.Equal(t, &health.Paused{Reason: "for good", By: "pod-1"}, paused.Paused, "nobody knows how long")
	require.Equal(t, &health.Throttled{Reason: "pause"}, paused.Throttled)
	require.True(t, paused.Ready, "a pod is not replaced for a pause")
	require.Equal(t, first.Refused+1, paused.Refused)

	require.NoError(t, requests.Close())
	_, body = fetch(t, addr, "/metrics")
	require.NotContains(t, body, `numathrottle_tokens_granted_total{limit="requests"}`)
	require.Contains(t, body, `numathrottle_tokens_granted_total{limit="tokens"}`, "the other one goes on")
	require.NoError(t, tokens.Close())
	code, _ = fetch(t, addr, "/healthz")
	require.Zero(t, code, "the server ends with the last Throttle")
	open("again") // the port is free
}

// Without an address nothing listens.
func TestNoHealthServerUnlessAsked(t *testing.T) {
	servers := func() int { // of this process; one of a test before may end meanwhile
		stacks := make([]byte, 16<<20)
		return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "created by github.com/numaproj-contrib/numathrottle/internal/health.start")
	}
	before := servers()
	c := Config{Limit: throttle.Limit{Max: 10}, Store: "memory://" + t.Name(), Pool: "p", Logger: quiet()}
	mustOpen(t, c)
	mustOpen(t, Config{Logger: quiet()})
	mustOpenInFlight(t, 3, Config{Store: "static://?replicas=1", Pool: "slots", Logger: quiet()})
	require.LessOrEqual(t, servers(), before)
	c.HealthAddr = testenv.ClosedPort(t)
	mustOpen(t, c)
	require.Positive(t, servers(), "or else nothing was looked for")
}

func TestHealthOfEveryKindOfThrottle(t *testing.T) {
	for name, c := range map[string]Config{
		"no limit": {},
		"static":   {Limit: throttle.Limit{Max: 10}, Store: "static://?replicas=4"},
	} {
		t.Run(name, func(t *testing.T) {
			c.HealthAddr, c.Logger, c.Pool = testenv.ClosedPort(t), quiet(), "p"
			th := mustOpen(t, c)
			code, body := fetch(t, c.HealthAddr, "/readyz")
			require.Equal(t, 200, code, body)
			_, body = fetch(t, c.HealthAddr, "/statusz")
			require.Contains(t, body, "<h2>p</h2>")
			require.NoError(t, th.Close())
		})
	}
}

func TestHealthAddrThatCannotBeHad(t *testing.T) {
	addr := silentPort(t)
	_, err := Open(t.Context(), Config{Limit: throttle.Limit{Max: 1}, HealthAddr: addr, Logger: quiet()})
	require.ErrorContains(t, err, `healthAddr is "`+addr+`"`)
	for _, wrong := range []string{"8085", "localhost", ":", ":http", ":65536", ":08085", "[::1:80", "h:-1"} {
		err := Config{HealthAddr: wrong}.Validate()
		require.ErrorContains(t, err, "healthAddr", wrong)
		require.ErrorContains(t, err, "`HOST:PORT` or `:PORT`", wrong)
	}
	for _, right := range []string{":8085", "127.0.0.1:0", "[::1]:80", "localhost:8085"} {
		require.NoError(t, Config{HealthAddr: right}.Validate(), right)
	}
}

// A store that cannot be reached makes the processor not ready, and the page says why,
// without the password.
func TestHealthShowsNoSecret(t *testing.T) {
	for _, store := range remoteStores {
		t.Run(schemeOf(store), func(t *testing.T) {
			addr, host := testenv.ClosedPort(t), testenv.ClosedPort(t)
			th, err := Open(t.Context(), Config{
				Limit: throttle.Limit{Max: 10}, Store: strings.ReplaceAll(store, "HOST", host), Pool: "p", Logger: quiet(), HealthAddr: addr,
			})
			require.NoError(t, err)
			defer closeLater(th)
			code, body := fetch(t, addr, "/readyz")
			require.Equal(t, 503, code)
			require.Regexp(t, `^limit "p": (.* has no share of the limit yet, and gets one with its next syncs|`+
				`the store .*|nothing listens at .*|no server answers at .*)\n$`, body)
			eventually(t, func() bool {
				_, body := fetch(t, addr, "/readyz")
				return strings.Contains(body, "the store ") && strings.Contains(body, ": this pod grants nothing until it answers\n")
			}, "what is wrong, and what it does")
			eventually(t, func() bool {
				_, body := fetch(t, addr, "/statusz?format=json")
				return strings.Contains(body, "lastError")
			}, "the error")
			for _, path := range []string{"/statusz", "/statusz?format=json", "/metrics", "/readyz"} {
				_, body := fetch(t, addr, path)
				require.NotContains(t, body, canary, path)
				if strings.HasPrefix(path, "/statusz") {
					require.Contains(t, body, host)
				}
			}
		})
	}
}

// waitOnce makes a call wait, in a trace of tracers.
func waitOnce(t *testing.T, th *throttle.Throttle, tracers *sdktrace.TracerProvider) {
	t.Helper()
	ctx, span := tracers.Tracer("caller").Start(t.Context(), "call")
	defer span.End()
	for range 2 {
		_, err := th.Acquire(ctx, 1)
		require.NoError(t, err)
	}
}

func TestProvidersOfTheProgram(t *testing.T) {
	t.Setenv("OTEL_METRICS_EXPORTER", "unknown: nobody must look")
	t.Setenv("OTEL_TRACES_EXPORTER", "unknown: nobody must look")
	names := func(r *sdkmetric.ManualReader) (out []string) {
		var got metricdata.ResourceMetrics
		require.NoError(t, r.Collect(context.Background(), &got))
		for _, scope := range got.ScopeMetrics {
			for _, m := range scope.Metrics {
				out = append(out, m.Name)
			}
		}
		return out
	}
	c := Config{Limit: throttle.Limit{Max: 100, Burst: 1}, Store: "static://?replicas=1", Pool: "p", Logger: quiet()}
	for name, set := range map[string]func(m *sdkmetric.MeterProvider, tr *sdktrace.TracerProvider) Config{
		"in the Config": func(m *sdkmetric.MeterProvider, tr *sdktrace.TracerProvider) Config {
			c := c
			c.MeterProvider, c.TracerProvider = m, tr
			return c
		},
		"global": func(m *sdkmetric.MeterProvider, tr *sdktrace.TracerProvider) Config {
			// go.opentelemetry.io/otel v1.47.0 can block for good when a callback is taken out while a first
			// provider is set: it takes two locks in both orders.
			closing.Wait()
			oldMeters, oldTracers := otel.GetMeterProvider(), otel.GetTracerProvider()
			otel.SetMeterProvider(m)
			otel.SetTracerProvider(tr)
			t.Cleanup(func() {
				otel.SetMeterProvider(oldMeters)
				otel.SetTracerProvider(oldTracers)
			})
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			reader, spans := sdkmetric.NewManualReader(), tracetest.NewSpanRecorder()
			tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
			th := mustOpen(t, set(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), tracers))
			waitOnce(t, th, tracers)
			require.Contains(t, names(reader), "numathrottle.tokens.granted")
			require.Equal(t, "numathrottle.wait", spans.Ended()[0].Name())
			require.NoError(t, th.Close())
			require.NotContains(t, names(reader), "numathrottle.tokens.granted")
		})
	}
}

// Who exports spans must not lose the port, or count twice, because of the metrics.
func TestOneProviderOfTheProgramIsEnough(t *testing.T) {
	t.Setenv("OTEL_METRICS_EXPORTER", "unknown: nobody must look")
	mustOpen(t, Config{
		Limit: throttle.Limit{Max: 1}, Store: "static://?replicas=1", Logger: quiet(), TracerProvider: sdktrace.NewTracerProvider(),
	})
}

// The standard variables alone are enough, and what was counted last is sent by Close.
func TestExportersFromTheEnvironment(t *testing.T) {
	var mu sync.Mutex
	bodies := map[string]string{}
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		bodies[r.URL.Path] += string(body)
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	th := mustOpen(t, Config{Limit: throttle.Limit{Max: 100, Burst: 1}, Store: "memory://" + t.Name(), Pool: "the-pool", ID: "the-pod", Logger: quiet()})
	waitOnce(t, th, sdktrace.NewTracerProvider())
	require.NoError(t, th.Close())
	require.Contains(t, bodies["/v1/metrics"], "numathrottle.tokens.granted")
	require.Contains(t, bodies["/v1/metrics"], "numathrottle.wait.duration")
	require.Contains(t, bodies["/v1/metrics"], "the-pool")
	require.Contains(t, bodies["/v1/metrics"], "the-pod")
	require.Contains(t, bodies["/v1/traces"], "numathrottle.wait")
}

// A collector that does not answer keeps nobody: Close ends, and the store was left.
func TestCollectorThatIsSilent(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://user:"+canary+"@"+silentPort(t))
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization="+canary)
	var logs testkit.Book
	old := otel.GetErrorHandler()
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { logs.Printf(t.Context(), "%v", err) }))
	defer otel.SetErrorHandler(old)
	th := mustOpen(t, Config{Limit: throttle.Limit{Max: 100}, Store: "static://?replicas=1", Pool: "p", Logger: logs.Logger()})
	done := make(chan error, 1)
	go func() { done <- th.Close() }()
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(30 * time.Second):
		t.Fatal("Close hangs")
	}
	require.Contains(t, logs.String(), "telemetry was not ended")
	require.NotContains(t, logs.String(), canary)
}

func TestWrongExporterIsAnError(t *testing.T) {
	t.Setenv("OTEL_METRICS_EXPORTER", "statsd")
	_, err := Open(t.Context(), Config{Limit: throttle.Limit{Max: 1}, Logger: quiet()})
	require.ErrorContains(t, err, `OTEL_METRICS_EXPORTER is "statsd"`)
	th, err := Open(t.Context(), Config{Logger: quiet()})
	require.NoError(t, err, "there is nothing to tell of")
	require.NoError(t, th.Close())
	_, err = net.Dial("tcp", "127.0.0.1:9464")
	require.Error(t, err)
}
