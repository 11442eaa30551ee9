package main

import (
	"bytes"
	"context"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
)

func TestEveryFaultIsToldAtOnce(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	_, err := loaded(t, env{
		"URL": "https://host{{.Key}}/", "HEADERS": "Authorization: " + "x\nNo colon\nX-A: {{", "STATUSES": "404=gone", "METHOD": "GET", "CONCURRENCY": "0.5",
		"BEARER_TOKEN": canary, "BEARER_TOKEN_FILE": missing, "BASIC_USERNAME": "u", "CERT_FILE": "c", "OAUTH_SECRET": canary,
		"SIGNATURE": "sha256", "ALLOW_ADDRESSES": "everything", "MAX_REQUESTS": "5", "PROXY": "socks5://" + canary + "@h", "URLL": "x",
		"NUMATHROTTLE_MAX": "-1", "NUMATHROTTLE_STORE": "ftp://x", "NUMATHROTTLE_HEALTH_ADDR": "nowhere",
	})
	text := err.Error()
	require.NotContains(t, text, canary)
	for _, want := range []string{
		"numathrottle: url has no / between its host and its first action, allowed: an http or https URL",
		"headers line 1 sets Authorization", "headers line 2 has no colon", "headers line 3:",
		`statuses is "404=gone" (HTTP_SINK_STATUSES), allowed: entries such as`,
		`method is "GET" (HTTP_SINK_METHOD)`, `concurrency is "0.5"`, "bearerTokenFile is set, and so is bearerToken, allowed: one of them",
		"bearerTokenFile a secret cannot be read", "bearerToken is set, and so is basicUsername", "certFile is set without keyFile",
		"oauthSecret or oauthSecretFile is set without oauthTokenURL", "signature is set without signatureKey", `allowAddresses is "everything"`,
		"maxRequests is set without unit", "proxy is", "HTTP_SINK_URLL is not a variable of http-sink; did you mean HTTP_SINK_URL?",
		"max is", "store", "healthAddr is",
	} {
		require.Contains(t, text, want)
	}
}

func TestAURLIsRequired(t *testing.T) {
	_, err := loaded(t, nil)
	require.ErrorContains(t, err, "url is not set, allowed: an http or https URL, here or in urlFile")
}

func TestWhatTheOtherSinksMayNotAnswer(t *testing.T) {
	for _, role := range []string{"fb-udsink", "ons-udsink"} {
		t.Setenv("NUMAFLOW_UD_CONTAINER_TYPE", role)
		_, err := loaded(t, env{"URL": "http://h", "ON_UNAVAILABLE": "fallback", "ON_INVALID": "fallback", "STATUSES": "404=fallback", "ON_OK": "on-success"})
		for _, key := range []string{"onUnavailable is fallback", "onInvalid is fallback", "statuses has the class fallback", "onOK is on-success"} {
			require.ErrorContains(t, err, key+", allowed: in a container of type "+role)
		}
	}
	t.Setenv("NUMAFLOW_UD_CONTAINER_TYPE", "udsink")
	_, err := loaded(t, env{"URL": "http://h", "ON_UNAVAILABLE": "fallback", "ON_INVALID": "fallback", "STATUSES": "404=fallback", "ON_OK": "on-success"})
	require.NoError(t, err)
}

func TestTheSinksOfOnePodAreProcessorsOfTheirOwn(t *testing.T) {
	for name, value := range map[string]string{
		"NUMAFLOW_NAMESPACE": "ns", "NUMAFLOW_PIPELINE_NAME": "p", "NUMAFLOW_VERTEX_NAME": "v", "NUMAFLOW_POD": "pod-0", "NUMAFLOW_UD_CONTAINER_TYPE": "udsink",
	} {
		t.Setenv(name, value)
	}
	s, err := loaded(t, env{"URL": "http://h"})
	require.NoError(t, err)
	require.Equal(t, "ns/p/v pod-0", s.Pool.Pool+" "+s.Pool.ID)
	t.Setenv("NUMAFLOW_UD_CONTAINER_TYPE", "fb-udsink")
	s, err = loaded(t, env{"URL": "http://h"})
	require.NoError(t, err)
	require.Equal(t, "ns/p/v/fallback pod-0/fallback", s.Pool.Pool+" "+s.Pool.ID)
	t.Setenv("NUMAFLOW_UD_CONTAINER_TYPE", "ons-udsink")
	s, err = loaded(t, env{"URL": "http://h", "NUMATHROTTLE_POOL": "shared"})
	require.NoError(t, err)
	require.Equal(t, "shared pod-0/on-success", s.Pool.Pool+" "+s.Pool.ID, "a pool that is set is shared")
}

// The same sink in the three roles of one vertex.
func TestRoles(t *testing.T) {
	main := startService(t, func(w http.ResponseWriter, r seen, _ int) {
		if r.Body == "bad" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte("stored " + r.Body))
	})
	others := startService(t, nil)
	platform := dataplane.SinkWriter{
		Main:      start(t, env{"URL": main.URL, "STATUSES": "404=fallback", "ON_OK": "on-success"}).socket,
		Fallback:  start(t, env{"URL": others.URL + "/fallback", "STATUSES": "404=fail", "ON_OK": "ack"}).socket,
		OnSuccess: start(t, env{"URL": others.URL + "/notify", "STATUSES": "404=fail", "ON_OK": "ack"}).socket,
	}
	written, err := platform.Write(testContext(t), messages("good", "bad"))
	require.NoError(t, err)
	require.Equal(t, dataplane.SinkOnSuccess, written[0].Main.Status)
	require.Equal(t, dataplane.SinkSuccess, written[0].Routed.Status)
	require.Equal(t, dataplane.SinkFallback, written[1].Main.Status)
	require.Equal(t, dataplane.SinkSuccess, written[1].Routed.Status)
	got := map[string]string{}
	for _, r := range others.requests() {
		got[r.Path] = r.Body
	}
	require.Equal(t, map[string]string{"/fallback": "bad", "/notify": "stored good"}, got)
}

func TestCheckPrintsWhatIsInForceFromTheFileAndTheEnvironment(t *testing.T) {
	t.Setenv("NUMATHROTTLE_CONFIG", file(t, "sink.yaml",
		"url: https://host/{{.Key}}\nmax: 50\nformat: ndjson\nbearerToken: "+canary+"\nheaders: |\n  X-A: a\n  X-B: b\n"))
	t.Setenv("HTTP_SINK_MAX_MESSAGES", "7")
	t.Setenv("NUMATHROTTLE_STORE_PASSWORD", canary)
	t.Setenv("NUMATHROTTLE_STORE", "redis://127.0.0.1:1")
	var out bytes.Buffer
	require.NoError(t, httpSink.Run(t.Context(), []string{"--check"}, &out, &out))
	require.NotContains(t, out.String(), canary)
	for _, line := range []string{
		`url: "https://host/{{.Key}}"`, `max: "50"`, `maxMessages: "7"`, `contentType: "application/x-ndjson"`, `timeout: "30s"`,
		`bearerToken: (set, not shown)`,
		`headers: "X-A: a\nX-B: b\n"`,
	} {
		require.Contains(t, out.String(), line+"\n")
	}
	require.ErrorContains(t, httpSink.Run(t.Context(), []string{"check"}, &out, &out), `"check" is no flag`)
	t.Setenv("HTTP_SINK_METHOD", "x")
	require.ErrorContains(t, httpSink.Run(t.Context(), []string{"--check"}, &out, &out), "method is")
}

func TestRunServes(t *testing.T) {
	service := startService(t, nil)
	dir, err := os.MkdirTemp("", "sink") //nolint:usetesting // the path of a socket must be short
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	for name, value := range map[string]string{
		"HTTP_SINK_URL": service.URL, "HTTP_SINK_ALLOW_ADDRESSES": "loopback",
		"HTTP_SINK_SOCKET": filepath.Join(dir, "s"), "HTTP_SINK_SERVER_INFO": filepath.Join(dir, "info"),
	} {
		t.Setenv(name, value)
	}
	ctx := testContext(t)
	log := &logBook{}
	done := make(chan error)
	serving, stop := context.WithCancel(ctx)
	go func() { done <- httpSink.Run(serving, nil, log, log) }()
	socket, err := dataplane.DialSink(ctx, filepath.Join(dir, "s"))
	require.NoError(t, err)
	results, err := socket.Do(ctx, messages("a"))
	require.NoError(t, err)
	require.Equal(t, all(1, dataplane.SinkSuccess), statuses(results))
	require.NoError(t, socket.Close())
	stop()
	require.NoError(t, <-done)
}

var update = flag.Bool("update", false, "write the table of README.md anew")

// The settings in the example and in the README are good, but for the files that they name.
func TestTheExamplesAreGood(t *testing.T) {
	token := file(t, "token", canary)
	pipeline, err := os.ReadFile("pipeline.yaml")
	require.NoError(t, err)
	decoder := yaml.NewDecoder(bytes.NewReader(pipeline))
	var configMap struct {
		Data map[string]string `yaml:"data"`
	}
	require.NoError(t, decoder.Decode(&configMap))
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(readme), "```yaml\n")
	snippet, _, _ := strings.Cut(rest, "```")
	for _, content := range []string{configMap.Data["sink.yaml"], snippet} {
		require.NotEmpty(t, content)
		t.Setenv("NUMATHROTTLE_CONFIG", file(t, "sink.yaml", strings.ReplaceAll(content, "/secrets/token", token)))
		_, err := loadSettings()
		require.NoError(t, err)
	}
	for _, name := range regexp.MustCompile(`\{?name: (NUMATHROTTLE_\w+|HTTP_SINK_\w+)`).FindAllStringSubmatch(string(pipeline), -1) {
		t.Setenv(name[1], map[bool]string{true: os.Getenv("NUMATHROTTLE_CONFIG"), false: "x"}[name[1] == "NUMATHROTTLE_CONFIG"])
	}
	t.Setenv("NUMATHROTTLE_STORE", "nats://h")
	_, err = loadSettings()
	require.NoError(t, err, "its variables are known")
}

func TestReadmeHasEverySetting(t *testing.T) {
	content, err := os.ReadFile("README.md")
	require.NoError(t, err)
	want, err := config.ReplaceTable(string(content), "settings", config.Table(fields))
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile("README.md", []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(content), "run: go test ./examples/http-sink -run TestReadme -update")
}
