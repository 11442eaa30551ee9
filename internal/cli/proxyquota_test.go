package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/health"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// quotasOfTheTest let acme have two tokens in a month, and everybody else as much as there is.
const quotasOfTheTest = "{tags: {acme: {budgets: [{amount: 2, per: month}]}, beta: {}}}"

// A judgement is what a proxy makes of a request: whether it lets it through, and if not, what it says and when to come again.
type judgement func(t *testing.T, tag string) (passed bool, said string, again time.Duration)

// Each proxy takes quotas from its file and from the environment, bounds the tags of what passes by them, says why when it refuses,
// and shows the tag and what holds it at /statusz.
func TestTheProxiesGoByQuotas(t *testing.T) {
	for name, begin := range map[string]func(t *testing.T, environ, args []string) judgement{
		"http": httpUnderQuotas, "permits": permitsUnderQuotas, "handler": handlerUnderQuotas,
	} {
		for _, from := range []string{"file", "variable"} {
			t.Run(name+" "+from, func(t *testing.T) {
				at := freeAddress(t)
				// What is spent stays in the store, which these proxies share within this process.
				args := []string{"--max=1000000", "--state-dir=none", "--health-addr=" + at, "--store=memory://" + rand.Text()}
				var environ []string
				if from == "file" {
					path := filepath.Join(t.TempDir(), "config.yaml")
					require.NoError(t, os.WriteFile(path, []byte("quotas: "+quotasOfTheTest+"\n"), 0o600))
					environ = append(environ, "NUMATHROTTLE_CONFIG="+path)
				} else {
					environ = append(environ, "NUMATHROTTLE_QUOTAS="+quotasOfTheTest)
				}
				ask := begin(t, environ, args)
				passed := map[string]int{}
				for range 4 {
					for _, tag := range []string{"acme", "beta"} {
						ok, said, again := ask(t, tag)
						if ok {
							passed[tag]++
							continue
						}
						require.Positive(t, again)
						require.Contains(t, said, "budget")
						require.Contains(t, said, "acme")
					}
				}
				require.Equal(t, map[string]int{"acme": 2, "beta": 4}, passed)
				rows := tagsAt(t, at)
				require.EqualValues(t, 2, rows["acme"].Used)
				require.Equal(t, "budget", rows["acme"].By)
				require.Equal(t, []int64{2, 2}, []int64{rows["acme"].Spent, rows["acme"].Budget})
				require.EqualValues(t, 4, rows["beta"].Used)
			})
		}
	}
}

// A pod that was idle beside a busy one tells those that cannot wait to come again when the whole limit has served the queue, or two intervals
// later. So do a Retry-After and the delay of a nack.
func TestTheProxiesOfAnIdlePod(t *testing.T) {
	const callers, perSecond = 16, 40
	for name, begin := range map[string]func(t *testing.T, environ, args []string) judgement{
		"http": httpUnderQuotas, "permits": permitsUnderQuotas, "handler": handlerUnderQuotas,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			environ := []string{"NUMATHROTTLE_QUOTAS={tags: {acme: {}}}"}
			store := "memory://" + rand.Text()
			args := func(more ...string) []string {
				return append(more, "--state-dir=none", "--store="+store, "--pool=p", fmt.Sprint("--max=", perSecond))
			}
			busy, err := numathrottle.Open(t.Context(), numathrottle.Config{
				Limit: throttle.Limit{Max: perSecond}, Quotas: throttle.Quotas{Tags: map[string]throttle.Quota{"acme": {}}},
				Store: store, Pool: "p", ID: "busy", StateDir: "none",
			})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, busy.Close()) })
			for range 8 {
				go func() {
					for {
						if _, err := busy.ForTag("hog").Acquire(t.Context(), 1); err != nil {
							return
						}
					}
				}()
			}
			idle := begin(t, environ, args("--max-wait=20ms"))
			reported := 0
			call := func() {
				if passed, said, again := idle(t, "acme"); !passed {
					if again > 0 {
						reported++
					}
					require.LessOrEqual(t, again, callers*time.Second/perSecond+3*time.Second, said)
				}
			}
			for range callers { // it has just started
				call()
			}
			require.Eventually(t, func() bool { passed, _, _ := idle(t, "acme"); return passed }, 20*time.Second, 50*time.Millisecond)
			for range callers {
				call()
			}
			require.Positive(t, reported)
		})
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// tagsAt returns the tags that a health server shows.
func tagsAt(t *testing.T, at string) map[string]health.Tag {
	t.Helper()
	res, err := http.Get("http://" + at + "/statusz?format=json")
	require.NoError(t, err)
	defer res.Body.Close()
	var status health.Status
	require.NoError(t, json.NewDecoder(res.Body).Decode(&status))
	require.Len(t, status.Limits, 1)
	rows := map[string]health.Tag{}
	for _, tag := range status.Limits[0].Tags {
		rows[tag.Tag] = tag
	}
	return rows
}

func httpUnderQuotas(t *testing.T, environ, args []string) judgement {
	t.Helper()
	service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(service.Close)
	addr, end := servedWith(t, environ, append([]string{
		"http", "--upstream", service.URL, "--listen=127.0.0.1:0", "--grace=10ms", "--tag=header X-Tenant", "--max-wait=15s",
	}, args...)...)
	t.Cleanup(end)
	return func(t *testing.T, tag string) (bool, string, time.Duration) {
		t.Helper()
		req, err := http.NewRequest(http.MethodGet, "http://"+addr, http.NoBody)
		require.NoError(t, err)
		req.Header.Set("X-Tenant", tag)
		return answer(t, req)
	}
}

func permitsUnderQuotas(t *testing.T, environ, args []string) judgement {
	t.Helper()
	addr, end := servedWith(t, environ, append([]string{"permits", "--listen=127.0.0.1:0", "--grace=10ms", "--max-wait=15s"}, args...)...)
	t.Cleanup(end)
	return func(t *testing.T, tag string) (bool, string, time.Duration) {
		t.Helper()
		req, err := http.NewRequest(http.MethodPost, "http://"+addr+"/v1/acquire", strings.NewReader(fmt.Sprintf(`{"tag":%q}`, tag)))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		return answer(t, req)
	}
}

// answer sends a request.
func answer(t *testing.T, req *http.Request) (passed bool, said string, again time.Duration) {
	t.Helper()
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	if res.StatusCode == http.StatusOK {
		return true, "", 0
	}
	require.Equal(t, http.StatusTooManyRequests, res.StatusCode)
	seconds := 0
	if after := res.Header.Get("Retry-After"); after != "" {
		seconds, err = strconv.Atoi(after)
		require.NoError(t, err)
	}
	return false, string(body), time.Duration(seconds) * time.Second
}

func handlerUnderQuotas(t *testing.T, environ, args []string) judgement {
	t.Helper()
	dir, err := os.MkdirTemp("", "hq") //nolint:usetesting // the test's name would make the path too long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	at := func(name string) string { return filepath.Join(dir, name) }
	handler := dataplane.NewServer(mapsdk.MapperFunc(func(_ context.Context, keys []string, d mapsdk.Datum) mapsdk.Messages {
		return mapsdk.MessagesBuilder().Append(mapsdk.NewMessage(d.Value()).WithKeys(keys))
	}), at("h"), at("hi"))
	begin(t, handler.Start)
	tm := newTerminal(nil, environ...)
	begin(t, func(ctx context.Context) error {
		return tm.Run(ctx, append([]string{
			"proxy", "handler", "--kind=map", "--tag=header tenant", "--on-denied=nack", "--max-wait=15s",
			"--socket=" + at("p"), "--server-info=" + at("pi"), "--handler-socket=" + at("h"), "--handler-server-info=" + at("hi"),
		}, args...))
	})
	require.Eventually(t, func() bool { _, err := os.Stat(at("pi")); return err == nil }, 20*time.Second, time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	m, err := dataplane.Dial(ctx, at("p"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return func(t *testing.T, tag string) (bool, string, time.Duration) {
		t.Helper()
		results, err := m.Do(ctx, dataplane.Message{Value: []byte("x"), Headers: map[string]string{"tenant": tag}})
		require.NoError(t, err)
		require.Len(t, results, 1)
		if !results[0].Nack {
			return true, "", 0
		}
		return false, results[0].NackOptions.Reason, results[0].NackOptions.Delay
	}
}

// begin runs something until the end of the test.
func begin(t *testing.T, run func(ctx context.Context) error) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
}
