package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

// canary is in every secret of these tests. It must not come out anywhere.
const canary = "hunter2-canary"

const testTimeout = 20 * time.Second

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// env is variables without their prefix HTTP_SINK_; those of the limit have one.
type env map[string]string

// loaded returns the settings of an environment.
func loaded(t *testing.T, vars env) (settings, error) {
	t.Helper()
	all := env{"FAIL_DELAY": "1ms", "ALLOW_ADDRESSES": "loopback", "MAX_ATTEMPTS": "1"}
	maps.Copy(all, vars)
	for name, value := range all {
		if !strings.HasPrefix(name, "NUM") {
			name = prefix + name
		}
		t.Setenv(name, value)
	}
	return loadSettings()
}

func loadSettings() (settings, error) {
	s, r := httpSink.Read()
	return s, r.Err()
}

// A rig is a sink behind a real socket.
type rig struct {
	*sink

	ctx    context.Context //nolint:containedctx // that of the test
	socket *dataplane.Sink
	log    *testkit.Book
	t      *testing.T
}

// start runs a sink with these settings.
func start(t *testing.T, vars env) *rig {
	t.Helper()
	s, err := loaded(t, vars)
	require.NoError(t, err)
	r := &rig{ctx: testContext(t), log: &testkit.Book{}, t: t}
	t.Cleanup(func() {
		require.NotContains(t, r.log.String(), canary)
		require.NotContains(t, httpSink.Effective(&s, &config.Reading{}), canary)
	})
	r.sink, err = newSink(r.ctx, &s, r.log.Logger())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.close()) })
	server := dataplane.Serve(t, r.handler)
	r.socket, err = dataplane.DialSink(r.ctx, server.Socket)
	require.NoError(t, err)
	t.Cleanup(r.socket.Abort)
	return r
}

// do sends messages in one batch and returns the responses, in their order. The socket
// fails the test when there is not exactly one for each.
func (r *rig) do(messages ...dataplane.Message) []dataplane.SinkResult {
	r.t.Helper()
	results, err := r.socket.Do(r.ctx, messages)
	require.NoError(r.t, err)
	require.NotContains(r.t, fmt.Sprint(results), canary)
	return results
}

func messages(values ...string) []dataplane.Message {
	out := make([]dataplane.Message, len(values))
	for i, v := range values {
		out[i] = dataplane.Message{Value: []byte(v)}
	}
	return out
}

func numbered(n int) []dataplane.Message {
	out := make([]dataplane.Message, n)
	for i := range out {
		out[i] = dataplane.Message{Value: []byte(strconv.Itoa(i))}
	}
	return out
}

func statuses(results []dataplane.SinkResult) []dataplane.SinkStatus {
	out := make([]dataplane.SinkStatus, len(results))
	for i, r := range results {
		out[i] = r.Status
	}
	return out
}

func all(n int, status dataplane.SinkStatus) []dataplane.SinkStatus {
	out := make([]dataplane.SinkStatus, n)
	for i := range out {
		out[i] = status
	}
	return out
}

// startService starts a service. answer gets the number of the request, from 1.
func startService(t *testing.T, answer func(w http.ResponseWriter, r seen, n int)) *testkit.Service {
	t.Helper()
	return testkit.StartService(t, answer)
}

type seen = testkit.Request

func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func get(t *testing.T, url string) string {
	t.Helper()
	res, err := http.Get(url)
	require.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return string(text)
}
