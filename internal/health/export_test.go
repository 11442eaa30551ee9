package health

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
)

// environment sets the variables that begin with OTEL_ to these alone.
func environment(t *testing.T, set map[string]string) {
	t.Helper()
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "") // an empty one counts as not set
		}
	}
	for name, value := range set {
		t.Setenv(name, value)
	}
}

func TestOffUnlessAsked(t *testing.T) {
	type env = map[string]string
	const endpoint = "http://127.0.0.1:1"
	for _, tc := range []struct {
		name            string
		env             env
		metrics, traces bool
	}{
		{"nothing set", nil, false, false},
		{"metrics", env{"OTEL_METRICS_EXPORTER": "console"}, true, false},
		{"traces", env{"OTEL_TRACES_EXPORTER": "otlp"}, false, true},
		{"an endpoint", env{"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}, true, true},
		{"an endpoint for traces", env{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": endpoint}, false, true},
		{"an endpoint for metrics", env{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": endpoint}, true, false},
		{"an endpoint, but no metrics", env{"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_METRICS_EXPORTER": "none"}, false, true},
		{"none", env{"OTEL_METRICS_EXPORTER": "none", "OTEL_TRACES_EXPORTER": "none"}, false, false},
		{"disabled", env{"OTEL_SDK_DISABLED": "true", "OTEL_METRICS_EXPORTER": "console"}, false, false},
		{"other things", env{"OTEL_SERVICE_NAME": "x", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			environment(t, tc.env)
			require.Equal(t, tc.metrics, asked("METRICS"))
			require.Equal(t, tc.traces, asked("TRACES"))
			if !tc.metrics && !tc.traces {
				p, release, err := Exporters(t.Context(), "pod")
				require.NoError(t, err)
				require.Nil(t, release)
				require.Nil(t, p.Meters())
				require.Nil(t, p.Tracers())
			}
		})
	}
}

func TestWhatCannotBeExported(t *testing.T) {
	for name, env := range map[string]map[string]string{
		`OTEL_METRICS_EXPORTER is "statsd"`: {"OTEL_METRICS_EXPORTER": "statsd"},
		`OTEL_TRACES_EXPORTER is "zipkin"`:  {"OTEL_TRACES_EXPORTER": "zipkin", "OTEL_METRICS_EXPORTER": "console"},
		"invalid OTLP protocol":             {"OTEL_METRICS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "pigeon"},
	} {
		environment(t, env)
		_, _, err := Exporters(t.Context(), "pod")
		require.ErrorContains(t, err, name)
		require.Zero(t, shared.users)
	}
}

func count(t *testing.T, m metric.MeterProvider) {
	t.Helper()
	c, err := m.Meter("test").Int64Counter("numathrottle.test")
	require.NoError(t, err)
	c.Add(t.Context(), 3)
}

func get(t *testing.T, url string) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(body), nil
}

// Two who ask share one port, which is free again after both have let go.
func TestPrometheusFromTheEnvironment(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(free.Addr().String())
	require.NoError(t, err)
	require.NoError(t, free.Close())
	environment(t, map[string]string{
		"OTEL_METRICS_EXPORTER": "prometheus", "OTEL_EXPORTER_PROMETHEUS_HOST": "127.0.0.1", "OTEL_EXPORTER_PROMETHEUS_PORT": port,
	})
	first, releaseFirst, err := Exporters(t.Context(), "pod-7")
	require.NoError(t, err)
	second, releaseSecond, err := Exporters(t.Context(), "pod-8")
	require.NoError(t, err)
	require.Same(t, first, second)
	require.Nil(t, first.Tracers())
	count(t, second.Meters())

	url := "http://127.0.0.1:" + port + "/metrics"
	require.NoError(t, releaseFirst(t.Context()))
	require.NoError(t, releaseFirst(t.Context()), "again")
	text, err := get(t, url)
	require.NoError(t, err)
	require.Contains(t, text, "numathrottle_test_total")
	require.Contains(t, text, `service_instance_id="pod-7"`)
	require.NoError(t, releaseSecond(t.Context()))
	_, err = get(t, url)
	require.Error(t, err)
}

// What was recorded last is sent before the end.
func TestOTLPFromTheEnvironment(t *testing.T) {
	var mu sync.Mutex
	bodies := map[string]string{}
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		bodies[r.URL.Path] += string(body)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer collector.Close()
	environment(t, map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": collector.URL, "OTEL_SERVICE_NAME": "the-service",
		"OTEL_RESOURCE_ATTRIBUTES": "service.instance.id=from-the-environment",
	})
	p, release, err := Exporters(t.Context(), "pod-7")
	require.NoError(t, err)
	count(t, p.Meters())
	_, span := p.Tracers().Tracer("test").Start(t.Context(), "the-span")
	span.End()
	require.NoError(t, release(t.Context()))
	require.Contains(t, bodies["/v1/metrics"], "numathrottle.test")
	require.Contains(t, bodies["/v1/traces"], "the-span")
	for path, body := range bodies {
		require.Contains(t, body, "the-service", path)
		require.Contains(t, body, "from-the-environment", path)
		require.NotContains(t, body, "pod-7", path)
	}
}

// A collector that says nothing holds up the end only as long as the context.
func TestEndIsBounded(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	environment(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + silent.Addr().String()})
	p, release, err := Exporters(t.Context(), "pod")
	require.NoError(t, err)
	count(t, p.Meters())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, release(ctx))
	require.Zero(t, shared.users)
}

// The exporters print what they cannot read; it never gets so far.
func TestMalformedSecretsAreRefusedUnseen(t *testing.T) {
	const secret = "hunter2"
	for name, values := range map[string][]string{
		"ENDPOINT": {"http://u:" + secret + "%zz@h", "http://" + secret + "\x7f", "http://h:" + secret},
		"HEADERS":  {secret, "a=b," + secret, "authorization=" + secret + "%zz", "a b" + secret + "=c", "=" + secret},
	} {
		for _, signal := range []string{"", "METRICS_", "TRACES_"} {
			variable := "OTEL_EXPORTER_OTLP_" + signal + name
			for _, value := range values {
				environment(t, map[string]string{"OTEL_METRICS_EXPORTER": "otlp", "OTEL_TRACES_EXPORTER": "otlp", variable: value})
				_, _, err := Exporters(t.Context(), "pod")
				require.ErrorContains(t, err, variable, value)
				require.NotContains(t, err.Error(), secret)
			}
		}
	}
	for _, value := range []string{"", "authorization=Bearer%20" + secret, " a=b , c = d==", "a="} {
		environment(t, map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": value, "OTEL_EXPORTER_OTLP_ENDPOINT": "http://u:p@h:4318/x"})
		require.NoError(t, checkSecrets(), value)
	}
}

// What is exported names its service: the vertex, else the program, unless a variable does.
func TestServiceName(t *testing.T) {
	name := func() string {
		meters, handler, stop, err := Prometheus()
		require.NoError(t, err)
		defer func() { require.NoError(t, stop(t.Context())) }()
		count(t, meters)
		res := httptest.NewRecorder()
		handler.ServeHTTP(res, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
		return res.Body.String()
	}
	environment(t, nil)
	require.Contains(t, name(), `service_name="health.test"`)
	require.NotContains(t, name(), "unknown_service")
	t.Setenv("NUMAFLOW_MONO_VERTEX_NAME", "mono")
	require.Contains(t, name(), `service_name="mono"`)
	t.Setenv("NUMAFLOW_PIPELINE_NAME", "answers")
	t.Setenv("NUMAFLOW_VERTEX_NAME", "ask")
	require.Contains(t, name(), `service_name="answers/ask"`)
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=of-the-attributes")
	require.Contains(t, name(), `service_name="of-the-attributes"`)
	t.Setenv("OTEL_SERVICE_NAME", "mine")
	require.Contains(t, name(), `service_name="mine"`)
}

// Who asks for OpenMetrics gets it, and nobody else.
func TestOpenMetrics(t *testing.T) {
	meters, handler, stop, err := Prometheus()
	require.NoError(t, err)
	defer func() { require.NoError(t, stop(t.Context())) }()
	count(t, meters)
	for accept, want := range map[string]string{
		"": "text/plain", "text/plain": "text/plain", "*/*": "text/plain",
		"application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.3": "application/openmetrics-text; version=1.0.0",
	} {
		res, req := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
		req.Header.Set("Accept", accept)
		handler.ServeHTTP(res, req)
		require.True(t, strings.HasPrefix(res.Header().Get("Content-Type"), want), "%q: %s", accept, res.Header().Get("Content-Type"))
		require.Contains(t, res.Body.String(), "numathrottle_test_total")
		require.Equal(t, strings.Contains(want, "openmetrics"), strings.HasSuffix(res.Body.String(), "# EOF\n"), accept)
	}
}
