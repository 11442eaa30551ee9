package health

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
)

func open(t *testing.T, addr string) *Server {
	t.Helper()
	s, err := Open(t.Context(), addr, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() {
		if s.users > 0 {
			_ = s.Close(t.Context())
		}
	})
	return s
}

// An answer is what came of a request.
type answer struct {
	StatusCode int
	Header     http.Header
}

// ask sends a request and returns the answer and its body.
func ask(t *testing.T, s *Server, method, path, accept string) (answer, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.Addr().String()+path, http.NoBody)
	require.NoError(t, err)
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return answer{resp.StatusCode, resp.Header}, string(body)
}

func TestReady(t *testing.T) {
	s := open(t, "127.0.0.1:0")
	resp, body := ask(t, s, "GET", "/healthz", "")
	require.Equal(t, 200, resp.StatusCode)
	require.Equal(t, "ok\n", body)
	resp, _ = ask(t, s, "GET", "/readyz", "")
	require.Equal(t, 200, resp.StatusCode, "nothing to wait for")

	llm, calls := Limit{Name: "llm", NotReady: "no_share"}, Limit{Name: "calls", Ready: true}
	s.Add(func() Limit { return llm })
	remove := s.Add(func() Limit { return calls })
	resp, body = ask(t, s, "GET", "/readyz", "")
	require.Equal(t, 503, resp.StatusCode)
	require.Equal(t, "limit \"llm\": no_share\n", body)
	resp, _ = ask(t, s, "GET", "/healthz", "")
	require.Equal(t, 200, resp.StatusCode, "alive all the same")
	llm.Why, calls.Why = "new pool: first tokens in 9 s", "nothing holds callers back"
	resp, body = ask(t, s, "GET", "/readyz", "")
	require.Equal(t, 503, resp.StatusCode)
	require.Equal(t, "limit \"llm\": new pool: first tokens in 9 s\n", body, "those that are not ready say why")
	llm.Ready, llm.Why = true, "the limit of 400/s is used in full; 14 callers wait"
	_, body = ask(t, s, "GET", "/readyz", "")
	require.Equal(t, "ok\nlimit \"calls\": nothing holds callers back\nlimit \"llm\": the limit of 400/s is used in full; 14 callers wait\n", body)
	resp, _ = ask(t, s, "GET", "/readyz", "")
	require.Equal(t, 200, resp.StatusCode)
	calls.Ready = false
	resp, _ = ask(t, s, "GET", "/readyz", "")
	require.Equal(t, 503, resp.StatusCode)
	remove()
	resp, _ = ask(t, s, "GET", "/readyz", "")
	require.Equal(t, 200, resp.StatusCode)
}

func TestMetrics(t *testing.T) {
	s := open(t, "127.0.0.1:0")
	_, err := s.Meters().Meter("test").Float64ObservableGauge("numathrottle.share", metric.WithUnit("1"),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error { o.Observe(0.25); return nil }))
	require.NoError(t, err)
	resp, body := ask(t, s, "GET", "/metrics", "")
	require.Equal(t, 200, resp.StatusCode)
	require.Contains(t, body, "\nnumathrottle_share_ratio 0.25\n")
}

// full is a limit with something in every field.
func full() Limit {
	return Limit{
		Name: "llm<script>", NotReady: "store_lost", Why: "the store cannot be <reached>", Cause: "store_lost", Level: "broken",
		Max: 600, Per: Duration(time.Minute), Burst: 60, Hard: true, Ceiling: 9.25,
		Share: 0.125, Degraded: true, Rate: 1.25, Tokens: -3.5, Throttled: &Throttled{Reason: "limit", RetryAfter: "2.5s"},
		Service: &Service{Lowered: true, Cuts: 21, Part: 0.7, Accepted: 3001, Refused: 3002, Overloaded: 3003},
		Paused:  &Paused{Tag: "gpt<", Reason: "maintenance", For: "4m0s", By: "ann<"},
		Waiting: 17, Granted: 1001, Returned: 1002, Refused: 1003,
		HeldBack: []HeldBack{{Reason: "frozen", Waits: 2001, Refusals: 2002, Time: Duration(90 * time.Second)}},
		Pool: &Pool{
			Name: "ns/pipe/vertex", ID: "pod-3", State: "holding", Processors: 3, PoolSize: 4, Wanted: 0.375, Demand: 0.625,
			Lease: Duration(10 * time.Second), LeaseLeft: Duration(9100 * time.Millisecond), Interval: Duration(time.Second),
			Frozen: Duration(7 * time.Second), FrozenBy: "new record", PauseMissing: []string{"pod-7", "pod-8"},
			Disagree: "600 per 1m (pod-3) counts; 900 per 1m (pod-9<)",
			Roster:   []Processor{{ID: "pod-9", Claim: 0.875, Demand: 0.75, PoolSize: 5}},
		},
		Store: Store{URL: "redis://h:6379", Failures: 6, LastError: "dial tcp: refused"},
	}
}

func TestStatusPage(t *testing.T) {
	s := open(t, "127.0.0.1:0")
	s.Add(full)
	for _, accept := range []string{"", "*/*", "text/html,application/xhtml+xml,application/xml;q=0.9", "application/json;q=0.5, text/html"} {
		resp, body := ask(t, s, "GET", "/statusz", accept)
		require.Equal(t, 200, resp.StatusCode)
		require.Equal(t, "text/html; charset=utf-8", resp.Header.Get("Content-Type"), accept)
		require.Contains(t, resp.Header.Get("Content-Security-Policy"), "default-src 'none'")
		require.Equal(t, "nosniff", resp.Header.Get("X-Content-Type-Options"))
		require.NotContains(t, body, "llm<script>", "what others name is escaped")
		for _, part := range []string{
			"llm&lt;script&gt;", "no: store_lost", `<span class="bad">the store cannot be &lt;reached&gt;</span>`,
			"600 per 1m, burst 60, hard; 9.25 per second", "12.50 %: 1.25 tokens per second", "without the store",
			"limit</span>, a token in 2.5s", "<td>17</td>", "-3.5 at hand; 1001 granted, 1002 given back, 1003 refused", "redis://h:6379", "6 syncs failed",
			"dial tcp: refused", "ns/pipe/vertex: 3 pods, pool size 4 not agreed", "pod-3: holding; wants 37.50 %, demand 62.50 %",
			"9.1s left of 10s; a sync every 1s", "for 7s: new record", "frozen",
			"3001 accepted, 3002 refused, 3003 overloaded; ceiling cut 21 times", "lowered at present", "uses 70.00 % of its share",
			"for 4m0s, tag gpt&lt; by ann&lt;: maintenance", "pod-7, pod-8", "600 per 1m (pod-3) counts; 900 per 1m (pod-9&lt;)",
			"2001", "2002", "1m30s", "pod-9", "87.50 %", "75.00 %",
		} {
			require.Contains(t, body, part)
		}
	}
}

func TestStatusPageOfSlots(t *testing.T) {
	s := open(t, "127.0.0.1:0")
	l := full()
	l.InFlight = &InFlight{Max: 40, Slots: 11, InUse: 7}
	s.Add(func() Limit { return l })
	_, body := ask(t, s, "GET", "/statusz", "")
	for _, part := range []string{"40 calls in flight at once", "12.50 %: 11 calls", "7 in use; 1001 granted, 1003 refused"} {
		require.Contains(t, body, part)
	}
	require.NotContains(t, body, "per second", "there is no rate")
}

func TestStatusOfManyProcessors(t *testing.T) {
	s := open(t, "127.0.0.1:0")
	l := full()
	for i := range 1000 {
		l.Pool.Roster = append(l.Pool.Roster, Processor{ID: fmt.Sprintf("other-%d", i)})
	}
	s.Add(func() Limit { return l })
	_, body := ask(t, s, "GET", "/statusz", "")
	require.Equal(t, mostRows-1, strings.Count(body, "other-"))
	require.Contains(t, body, "and 801 more")
}

func TestStatusAsJSON(t *testing.T) {
	s := open(t, "127.0.0.1:0")
	s.Add(full)
	for path, accept := range map[string]string{
		"/statusz?format=json":       "text/html",
		"/statusz":                   "application/json",
		"/statusz?":                  "text/html;q=0.2, application/json;q=0.9",
		"/statusz?format=json&other": "",
	} {
		resp, body := ask(t, s, "GET", path, accept)
		require.Equal(t, "application/json", resp.Header.Get("Content-Type"), path)
		var got map[string]any
		require.NoError(t, json.Unmarshal([]byte(body), &got))
		require.NotEmpty(t, got["now"])
		want, err := json.Marshal([]Limit{full()})
		require.NoError(t, err)
		limits, err := json.Marshal(got["limits"])
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(limits))
		require.Contains(t, body, `"per": "1m"`)
		require.Contains(t, body, `"share": 0.125`)
	}
	resp, _ := ask(t, s, "GET", "/statusz?format=html", "application/json")
	require.Equal(t, "text/html; charset=utf-8", resp.Header.Get("Content-Type"))
}

func TestOnlyReads(t *testing.T) {
	s := open(t, "127.0.0.1:0")
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/statusz"} {
		for _, method := range []string{"POST", "PUT", "DELETE"} {
			resp, _ := ask(t, s, method, path, "")
			require.Equal(t, 405, resp.StatusCode, "%s %s", method, path)
		}
		resp, body := ask(t, s, "HEAD", path, "")
		require.Equal(t, 200, resp.StatusCode, path)
		require.Empty(t, body)
		require.Equal(t, "no-store", resp.Header.Get("Cache-Control"))
	}
	resp, _ := ask(t, s, "GET", "/debug/pprof/", "")
	require.Equal(t, 404, resp.StatusCode)
	resp, _ = ask(t, s, "GET", "/", "")
	require.Equal(t, "/statusz", resp.Header.Get("Location"))
}

func TestEveryPhaseOfARequestIsBounded(t *testing.T) {
	s := open(t, "127.0.0.1:0")
	require.Positive(t, s.http.ReadHeaderTimeout)
	require.Positive(t, s.http.ReadTimeout)
	require.Positive(t, s.http.WriteTimeout)
	require.Positive(t, s.http.IdleTimeout)
	require.Positive(t, s.http.MaxHeaderBytes)
}

// Limits of one process share a server, which ends with the last of them.
func TestOneServerForAnAddress(t *testing.T) {
	first := open(t, "localhost:0")
	second := open(t, "localhost:0")
	require.Same(t, first, second)
	require.NoError(t, first.Close(t.Context()))
	resp, _ := ask(t, second, "GET", "/healthz", "")
	require.Equal(t, 200, resp.StatusCode)

	addr := second.Addr().String()
	_, err := Open(t.Context(), addr, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "address already in use", "somebody else's port")
	require.NoError(t, second.Close(t.Context()))
	third := open(t, addr)
	resp, _ = ask(t, third, "GET", "/healthz", "")
	require.Equal(t, 200, resp.StatusCode, "the port was free again")
	require.NoError(t, third.Close(t.Context()))
}

func TestDurationsAreReadable(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": 0, "1.234ms": 1234321 * time.Nanosecond, "9.877s": 9876543210 * time.Nanosecond, "1m": time.Minute,
	} {
		require.Equal(t, want, Duration(d).String())
	}
}
