package cli

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// served runs a proxy, and returns an address that its log names, and what ends it.
func served(t *testing.T, args ...string) (addr string, end func()) {
	t.Helper()
	return servedWith(t, nil, args...)
}

// servedWith is served with variables.
func servedWith(t *testing.T, environ []string, args ...string) (addr string, end func()) {
	t.Helper()
	tm := newTerminal(nil, environ...)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- tm.Run(ctx, append([]string{"proxy"}, args...)) }()
	listens := regexp.MustCompile(`addresses=\[?"?\[?([^ \]"]+)`)
	require.Eventually(t, func() bool {
		m := listens.FindStringSubmatch(tm.errOut.String())
		if m != nil {
			addr = m[1]
		}
		return m != nil || len(ended) > 0
	}, 10*time.Second, 5*time.Millisecond)
	require.NotEmpty(t, addr, tm.errOut.String())
	return addr, func() {
		stop()
		require.NoError(t, <-ended)
	}
}

func TestTheHTTPProxy(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) }))
	defer service.Close()
	addr, end := served(t, "http", "--upstream", service.URL, "--listen=127.0.0.1:0", "--max=1000", "--grace=10ms", "--state-dir=none")
	res, err := http.Get("http://" + addr + "/hi")
	require.NoError(t, err)
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, "/hi", string(body))
	end()
}

func TestThePermits(t *testing.T) {
	addr, end := served(t, "permits", "--listen=127.0.0.1:0", "--max=1000", "--grace=10ms", "--state-dir=none")
	res, err := http.Post("http://"+addr+"/v1/acquire", "application/json", strings.NewReader(`{}`))
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, 200, res.StatusCode)
	end()
}

func TestTheSettingsOfTheServers(t *testing.T) {
	out, err := newTerminal(nil, "NUMATHROTTLE_PROXY_TOKEN="+canary+"-of-16", "NUMATHROTTLE_PROXY_COST=llm", "NUMATHROTTLE_ID=i").run(t,
		"proxy", "http", "--check", "--upstream=https://api.openai.com", "--provider=openai", "--max=90000", "--per=1m", "--in-flight=32", "--listen=:8080")
	require.NoError(t, err)
	for _, line := range []string{
		`upstream: "https://api.openai.com"  # --upstream`, `provider: "openai"  # --provider`, `cost: "llm"  # NUMATHROTTLE_PROXY_COST`,
		`inFlight: "32"  # --in-flight`, `listen: ":8080"  # --listen`, "token: (set, not shown)  # NUMATHROTTLE_PROXY_TOKEN", `max: "90000"  # --max`,
	} {
		require.Contains(t, out, line+"\n")
	}
	for want, args := range map[string][]string{
		"upstream is not set, and neither is forward":                             {"http"},
		"listen has :80, which can be reached from elsewhere":                     {"http", "--upstream=http://h", "--listen=:80"},
		`maxAttempts is "0x" (--max-attempts), allowed: a whole number, 1 to 100`: {"http", "--upstream=http://h", "--max-attempts=0x"},
		"--token is no flag": {"http", "--token=x"},
		"rlsListen has 0.0.0.0:1, which can be reached from elsewhere":                        {"permits", "--rls-listen=0.0.0.0:1"},
		`permitLease is "5h" (--permit-lease), allowed: a duration, ` + "`1s` to `1h`":        {"permits", "--permit-lease=5h"},
		`listen is "nowhere" (--listen), allowed: one or more of ` + "`unix:/PATH` (absolute": {"permits", "--listen=nowhere"},
	} {
		_, err := newTerminal(nil).run(t, append([]string{"proxy"}, args...)...)
		require.ErrorContains(t, err, want)
	}
}

// The quotas of a proxy stand on the first limit of an LLM if there is no max.
func TestQuotasOfAnLLM(t *testing.T) {
	quotas := "NUMATHROTTLE_QUOTAS={tags: {acme: {reserved: 50}}}"
	tm := newTerminal(nil, "NUMATHROTTLE_STORE=redis://h", "NUMATHROTTLE_POOL=p", quotas)
	args := []string{"proxy", "http", "--check", "--upstream=https://h", "--provider=openai"}
	_, err := tm.run(t, append(args, "--tokens-per-minute=200")...)
	require.NoError(t, err)
	_, err = tm.run(t, append(args, "--tokens-per-minute=20")...)
	require.ErrorContains(t, err, "quotas reserve")
	_, err = tm.run(t, append(args, "--in-flight=20")...)
	require.ErrorContains(t, err, "quotas are set, but there is no limit")
}
