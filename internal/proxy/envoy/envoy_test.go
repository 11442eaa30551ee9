package envoy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/listen"
	"github.com/numaproj-contrib/numathrottle/internal/proxy/envoy"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// envoyConfig is what an Envoy needs: its socket, the port of the service behind it, and the socket of the rate limit service. /llm asks with
// zero hits, and reports what the response says when it is over, as Envoy AI Gateway does; /plain asks with what the request says.
const envoyConfig = `
static_resources:
  listeners:
  - address: {pipe: {path: %q}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: test
          http_filters:
          - name: envoy.filters.http.ratelimit
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimit
              domain: ai
              timeout: 10s
              rate_limit_service: {transport_api_version: V3, grpc_service: {envoy_grpc: {cluster_name: limiter}}}
          - name: envoy.filters.http.header_to_metadata
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.header_to_metadata.v3.Config
              response_rules: [{header: x-cost, on_header_present: {metadata_namespace: ai, key: cost, type: NUMBER}}]
          - name: envoy.filters.http.router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes:
              - match: {prefix: /llm}
                route: {cluster: service}
                typed_per_filter_config:
                  envoy.filters.http.ratelimit:
                    "@type": type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimitPerRoute
                    rate_limits:
                    - actions: [{request_headers: {header_name: x-tenant, descriptor_key: tenant}}]
                      hits_addend: {number: 0}
                    - actions: [{request_headers: {header_name: x-tenant, descriptor_key: tenant}}]
                      hits_addend: {format: "%%DYNAMIC_METADATA(ai:cost)%%"}
                      apply_on_stream_done: true
              - match: {prefix: /plain}
                route:
                  cluster: service
                  rate_limits: [{actions: [{request_headers: {header_name: x-tenant, descriptor_key: tenant}}]}]
  clusters:
  - name: service
    load_assignment:
      cluster_name: service
      endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %s}}}}]}]
  - name: limiter
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {connection_keepalive: {interval: 0.02s, timeout: 5s}}}
    load_assignment:
      cluster_name: limiter
      endpoints: [{lb_endpoints: [{endpoint: {address: {pipe: {path: %q}}}}]}]
`

// envoyProgram returns the path of an Envoy: $ENVOY, the one that scripts/test-deps.sh installs, or one of the system.
func envoyProgram(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("ENVOY"); path != "" {
		return path
	}
	if path := filepath.Join("..", "..", "..", ".bin", "envoy", "envoy", "_bin", "envoy"); exec.Command(path, "--version").Run() == nil {
		return path
	}
	path, err := exec.LookPath("envoy")
	if err != nil {
		t.Skip("there is no Envoy: run scripts/test-deps.sh")
	}
	return path
}

// startEnvoy runs an Envoy in front of a service, and returns a client of it.
func startEnvoy(t *testing.T, program, service, limiter string) *http.Client {
	t.Helper()
	dir := dataplane.Dir(t)
	socket := filepath.Join(dir, "s")
	_, port, err := net.SplitHostPort(strings.TrimPrefix(service, "http://"))
	require.NoError(t, err)
	file := filepath.Join(dir, "envoy.yaml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, envoyConfig, socket, port, limiter), 0o600))
	ctx, stop := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, program, "-c", file, "--use-dynamic-base-id", "--concurrency", "1", "--log-level", "warn")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &out, 10*time.Second
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; t.Failed() {
			t.Log(err)
		}
		if t.Failed() {
			t.Log(out.String())
		}
	})
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
	t.Cleanup(client.CloseIdleConnections)
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if conn, err := net.Dial("unix", socket); err == nil {
			_ = conn.Close()
			return client
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("envoy has ended: %v\n%s", err, out.String())
		default:
		}
		require.True(t, time.Now().Before(end), "envoy does not listen")
	}
}

// A real Envoy asks before each request and reports costs afterwards: what was reported is owed, and holds back what follows.
func TestRealEnvoy(t *testing.T) {
	program := envoyProgram(t)
	u := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Cost", r.Header.Get("X-Will-Cost"))
		_, _ = io.WriteString(w, "answer")
	}))
	t.Cleanup(u.Close)
	th, err := throttle.New(throttle.Limit{Max: 1000, Per: time.Hour, Burst: 1000}, throttle.WithQuotas(throttle.Quotas{
		Tags: map[string]throttle.Quota{"acme": {}, "beta": {}},
	}))
	require.NoError(t, err)
	t.Cleanup(func() { _ = th.Close() })
	dir := dataplane.Dir(t)
	limiter := filepath.Join(dir, "s")
	start(t, envoy.Config{Limiter: th, Listen: []listen.Addr{{Network: "unix", Address: limiter}}})
	client := startEnvoy(t, program, u.URL, limiter)
	call := func(path, tenant, cost string) (*http.Response, string) {
		req, err := http.NewRequest(http.MethodPost, "http://envoy"+path, strings.NewReader("question"))
		require.NoError(t, err)
		req.Header.Set("X-Tenant", tenant)
		req.Header.Set("X-Will-Cost", cost)
		res, err := client.Do(req)
		require.NoError(t, err)
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		require.True(t, err == nil || errors.Is(err, io.ErrUnexpectedEOF))
		return res, string(body)
	}
	used := func(tag string) int64 {
		for _, st := range th.Status().Tags {
			if st.Tag == tag {
				return st.Used
			}
		}
		return 0
	}
	// What asks with zero hits is refused until anything may pass.
	require.Eventually(t, func() bool {
		res, body := call("/llm", "acme", "2000")
		return res.StatusCode == http.StatusOK && body == "answer"
	}, time.Minute, 20*time.Millisecond)
	require.Eventually(t, func() bool { return used("acme") >= 2000 }, 30*time.Second, time.Millisecond, "the cost is reported")
	for _, path := range []string{"/llm", "/plain"} {
		for _, tenant := range []string{"acme", "beta", "\xff", strings.Repeat("x", 50_000)} { // Envoy lets pass what ends with an error
			res, _ := call(path, tenant, "1")
			require.Equal(t, 429, res.StatusCode, "%s of %.10q", path, tenant)
			require.NotEmpty(t, res.Header.Get("Retry-After"))
			require.NotEmpty(t, res.Header.Get("X-Numathrottle-Reason"))
		}
	}
	require.EqualValues(t, 2000, used("acme"), "refused requests cost nothing")
	// Once nothing is owed, others go on, and a route without hits draws one token for each request.
	hook.Repay(throttle.ForTags(th, "acme"), 2000)
	before := used("beta")
	require.Eventually(t, func() bool { res, _ := call("/plain", "beta", "1"); return res.StatusCode == http.StatusOK }, 30*time.Second, 10*time.Millisecond)
	require.Equal(t, before+1, used("beta"))
}
