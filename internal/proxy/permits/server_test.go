package permits

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/listen"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// canary is the token of these tests. It must not come out anywhere.
const canary = "hunter2-canary"

// An api is a running API, and a client of it.
type api struct {
	t     *testing.T
	url   string
	token string
	http  *http.Client
	stop  context.CancelFunc
	ended chan error
	log   *testkit.Book
}

func start(t *testing.T, c apiConfig) *api {
	t.Helper()
	a := &api{t: t, token: c.Token, http: &http.Client{}, ended: make(chan error, 1), log: &testkit.Book{}}
	if c.Listen == nil {
		c.Listen = []listen.Addr{{Network: "tcp", Address: "127.0.0.1:0"}}
	}
	c.Logger = a.log.Logger()
	c.quiet = 20 * time.Millisecond
	ready := make(chan []string, 1)
	c.Ready = func(addrs []string) { ready <- addrs }
	ctx, stop := context.WithCancel(t.Context())
	a.stop = stop
	go func() { a.ended <- runAPI(ctx, c) }()
	select {
	case addrs := <-ready:
		a.url = "http://" + addrs[0]
	case err := <-a.ended:
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		stop()
		a.http.CloseIdleConnections()
		require.NotContains(t, a.log.String(), canary)
	})
	return a
}

// send makes a call.
func (a *api) send(path, body string) *http.Response {
	a.t.Helper()
	req, err := http.NewRequestWithContext(a.t.Context(), http.MethodPost, a.url+path, strings.NewReader(body))
	require.NoError(a.t, err)
	req.Header.Set("Content-Type", "application/json")
	if a.token != "" {
		req.Header.Set("Authorization", "Bearer "+a.token)
	}
	res, err := a.http.Do(req)
	require.NoError(a.t, err)
	return res
}

// post makes a call, and compares what is sent and what comes back with the description.
func (a *api) post(path, body string) (status int, header http.Header, out map[string]any) {
	a.t.Helper()
	res := a.send(path, body)
	defer res.Body.Close()
	content, err := io.ReadAll(res.Body)
	require.NoError(a.t, err)
	require.Equal(a.t, "application/json", res.Header.Get("Content-Type"))
	require.NoError(a.t, json.Unmarshal(content, &out), "%s", content)
	require.NotContains(a.t, string(content), canary)
	conforms(a.t, path, res.StatusCode, body, content)
	return res.StatusCode, res.Header, out
}

// ok makes a call that succeeds.
func (a *api) ok(path, body string) map[string]any {
	a.t.Helper()
	status, _, out := a.post(path, body)
	require.Equal(a.t, http.StatusOK, status, out)
	return out
}

// fails makes a call that fails, and returns its error.
func (a *api) fails(status int, path, body string) map[string]any {
	a.t.Helper()
	got, _, out := a.post(path, body)
	require.Equal(a.t, status, got, out)
	return object(a.t, out["error"])
}

// text is a value that has to be a text.
func text(t *testing.T, v any) string {
	t.Helper()
	require.IsType(t, "", v)
	s, _ := v.(string)
	return s
}

// object is a value that has to be an object.
func object(t *testing.T, v any) map[string]any {
	t.Helper()
	require.IsType(t, map[string]any{}, v)
	m, _ := v.(map[string]any)
	return m
}

func newThrottle(t *testing.T, l throttle.Limit) *throttle.Throttle {
	t.Helper()
	th, err := throttle.New(l, throttle.WithName("p"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, th.Close()) })
	return th
}

func newSlots(t *testing.T, n int) *throttle.InFlight {
	t.Helper()
	f, err := throttle.NewInFlight(n, throttle.WithName("slots"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

func TestAPermitIsUsedAndGivenBack(t *testing.T) {
	slots := newSlots(t, 5)
	a := start(t, apiConfig{Limiter: slots})
	p := a.ok("/v1/acquire", `{"tokens":3,"tag":"a"}`)
	require.EqualValues(t, 3, p["tokens"])
	require.EqualValues(t, 60, p["lease_seconds"])
	require.Equal(t, 3, slots.Status().InUse)

	e := a.fails(429, "/v1/acquire", `{"tokens":3,"tag":"a","timeout_seconds":0}`)
	require.Equal(t, "in_flight", e["reason"])
	require.Equal(t, "slots", e["limit"])
	require.Equal(t, "a", e["tag"])
	require.EqualValues(t, 3, e["tokens"])

	up := a.ok("/v1/acquire", `{"tokens":100,"up_to":true}`)
	require.EqualValues(t, 2, up["tokens"], "as many as there are")

	id := `{"permit":"` + text(t, p["permit"]) + `"}`
	require.Equal(t, map[string]any{"state": "settled", "already": false}, a.ok("/v1/settle", id))
	require.Equal(t, 2, slots.Status().InUse)
	require.Equal(t, map[string]any{"state": "settled", "already": true}, a.ok("/v1/settle", id), "a repeated call changes nothing")
	require.Equal(t, 2, slots.Status().InUse)
	require.Equal(t, "the permit is settled already", a.fails(409, "/v1/cancel", id)["message"])

	id = `{"permit":"` + text(t, up["permit"]) + `"}`
	require.Equal(t, map[string]any{"state": "cancelled", "already": false}, a.ok("/v1/cancel", id))
	require.Zero(t, slots.Status().InUse)
}

func TestTheRealCostIsSettled(t *testing.T) {
	th := newThrottle(t, throttle.Limit{Max: 100, Per: time.Hour, Burst: 100})
	a := start(t, apiConfig{Limiter: th})
	e := a.fails(429, "/v1/acquire", `{"tokens":50,"timeout_seconds":1}`)
	require.Equal(t, "limit", e["reason"])
	require.InDelta(t, 1800, e["retry_after_seconds"], 20)
	_, header, _ := a.post("/v1/acquire", `{"tokens":50,"timeout_seconds":1}`)
	require.Regexp(t, `^1[78]\d\d$`, header.Get("Retry-After"))
	require.Equal(t, "too_large", a.fails(422, "/v1/acquire", `{"tokens":101}`)["reason"])
}

func TestWhatIsSettledReachesTheLimiter(t *testing.T) {
	for _, c := range []struct {
		path, rest string
		want       int
	}{
		{"/v1/settle", `,"used":7`, 7},
		{"/v1/settle", ``, 3},
		{"/v1/settle", `,"used":0,"outcome":"refused"`, 0},
		{"/v1/cancel", ``, 0},
	} {
		l := &recorder{used: make(chan int, 1)}
		a := start(t, apiConfig{Limiter: l})
		p := a.ok("/v1/acquire", `{"tokens":3}`)
		a.ok(c.path, `{"permit":"`+text(t, p["permit"])+`"`+c.rest+`}`)
		require.Equal(t, c.want, <-l.used)
	}
}

// A call that was made and cost nothing counts where calls are counted. One that was cancelled does not.
func TestACallThatCostsNothingIsCounted(t *testing.T) {
	tokens, requests := newThrottle(t, throttle.Limit{Max: 1_000_000}), newThrottle(t, throttle.Limit{Max: 1_000_000})
	slots := newSlots(t, 1)
	a := start(t, apiConfig{Limiter: throttle.All(tokens, throttle.PerCall(requests), throttle.PerCall(slots))})
	for i, draw := range []string{`{"tokens":1}`, `{"tokens":0}`, `{"tokens":3}`, `{"tokens":3,"up_to":true}`} {
		id := `{"permit":"` + text(t, a.ok("/v1/acquire", draw)["permit"]) + `"`
		a.ok("/v1/settle", id+`,"used":0}`)
		require.EqualValues(t, i, requests.Status().Returned, draw)
		require.Zero(t, slots.Status().InUse, draw)

		a.ok("/v1/cancel", `{"permit":"`+text(t, a.ok("/v1/acquire", draw)["permit"])+`"}`)
		require.EqualValues(t, 2*(i+1), requests.Status().Granted, draw)
		require.EqualValues(t, i+1, requests.Status().Returned, draw)
	}
	require.Equal(t, tokens.Status().Granted, tokens.Status().Returned)
}

// A recorder grants everything and tells what is settled.
type recorder struct {
	used     chan int
	reported chan string
}

func (r *recorder) Acquire(_ context.Context, n int) (throttle.Permit, error) {
	return throttle.NewPermit(n, func(used int) { r.used <- used }), nil
}

func (r *recorder) AcquireUpTo(ctx context.Context, n int) (throttle.Permit, error) {
	return r.Acquire(ctx, n)
}

func (r *recorder) TryAcquire(n int) (throttle.Permit, bool) {
	p, _ := r.Acquire(context.Background(), n)
	return p, true
}

func (r *recorder) RetryAfter(until time.Time, reason string) {
	r.reported <- time.Until(until).Round(time.Second).String() + " " + reason
}

// A tenants limiter has one limiter for each tag.
type tenants struct {
	throttle.Limiter

	tag map[string]throttle.Limiter
}

func (t *tenants) ForTag(tag string) throttle.Limiter { return t.tag[tag] }

func TestTheTagChoosesTheLimiter(t *testing.T) {
	small := newSlots(t, 1)
	reported := &recorder{reported: make(chan string, 1), used: make(chan int, 9)}
	a := start(t, apiConfig{Limiter: &tenants{newSlots(t, 9), map[string]throttle.Limiter{"small": small, "rec": reported}}})
	a.ok("/v1/acquire", `{"tag":"small"}`)
	require.Equal(t, "in_flight", a.fails(429, "/v1/acquire", `{"tag":"small","timeout_seconds":0}`)["reason"])
	a.ok("/v1/acquire", `{}`)
	a.ok("/v1/report", `{"tag":"rec","retry_after_seconds":30,"reason":"busy"}`)
	require.Equal(t, "30s busy", <-reported.reported)
}

func TestAClientThatNeverSettles(t *testing.T) {
	slots := newSlots(t, 2)
	a := start(t, apiConfig{Limiter: slots})
	begun := time.Now()
	p := a.ok("/v1/acquire", `{"tokens":2,"lease_seconds":1}`)
	require.EqualValues(t, 1, p["lease_seconds"])
	a.ok("/v1/acquire", `{"tokens":2,"timeout_seconds":20}`)
	require.GreaterOrEqual(t, time.Since(begun), time.Second)
	require.Eventually(t, func() bool { return strings.Contains(a.log.String(), "they count as drawn") }, 10*time.Second, time.Millisecond)
	id := `{"permit":"` + text(t, p["permit"]) + `"}`
	require.Equal(t, "not_open", a.fails(410, "/v1/settle", id)["reason"])
	require.Equal(t, "not_open", a.fails(410, "/v1/cancel", id)["reason"])
	require.Equal(t, 2, slots.Status().InUse, "the second one has them")
}

func TestAClientThatGoesAwayDrawsNothing(t *testing.T) {
	slots := newSlots(t, 1)
	a := start(t, apiConfig{Limiter: slots})
	held := a.ok("/v1/acquire", `{}`)
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+"/v1/acquire", strings.NewReader(`{"timeout_seconds":30}`))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	gone := make(chan error)
	go func() {
		_, err := a.http.Do(req)
		gone <- err
	}()
	waits := func() bool { th, ok := slots.Throttled(); return ok && th.Waiting == 1 }
	require.Eventually(t, waits, 5*time.Second, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-gone, context.Canceled)
	require.Eventually(t, func() bool { return !waits() }, 5*time.Second, time.Millisecond)
	a.ok("/v1/settle", `{"permit":"`+text(t, held["permit"])+`"}`)
	require.Zero(t, slots.Status().InUse)
}

func TestReports(t *testing.T) {
	th := newThrottle(t, throttle.Limit{Max: 1000, Adaptive: true})
	a := start(t, apiConfig{Limiter: th})
	for _, outcome := range []string{"accepted", "refused", "overloaded"} {
		p := a.ok("/v1/acquire", `{}`)
		id := text(t, p["permit"])
		require.Equal(t, map[string]any{"already": false}, a.ok("/v1/report", `{"permit":"`+id+`","outcome":"`+outcome+`"}`))
		require.Equal(t, map[string]any{"already": true}, a.ok("/v1/report", `{"permit":"`+id+`","outcome":"`+outcome+`"}`))
		a.ok("/v1/settle", `{"permit":"`+id+`","outcome":"`+outcome+`"}`)
	}
	s := th.Status().Backoff
	require.Equal(t, [3]int64{1, 1, 1}, [3]int64{s.Accepted, s.Refused, s.Overloaded}, "each once")
}

func TestPauses(t *testing.T) {
	th := newThrottle(t, throttle.Limit{Max: 1000})
	a := start(t, apiConfig{Limiter: th})
	out := a.ok("/v1/pause", `{"seconds":60,"reason":"night"}`)
	until, err := time.Parse(time.RFC3339Nano, text(t, out["until"]))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(time.Minute), until, 10*time.Second)
	_, header, body := a.post("/v1/acquire", `{"timeout_seconds":1}`)
	require.Equal(t, "pause", object(t, body["error"])["reason"])
	require.Regexp(t, `^(59|6\d)$`, header.Get("Retry-After"))
	a.ok("/v1/pause", `{"resume":true}`)
	a.ok("/v1/acquire", `{}`)
	require.NotContains(t, a.ok("/v1/pause", `{}`), "until")

	all := throttle.All(th, newSlots(t, 1))
	require.Equal(t, 501, func() int { s, _, _ := start(t, apiConfig{Limiter: all}).post("/v1/pause", `{}`); return s }())
	start(t, apiConfig{Limiter: all, Pauser: th}).ok("/v1/pause", `{"resume":true}`)
}

// A whole number is one however JSON has it.
func TestWholeNumbers(t *testing.T) {
	th := newThrottle(t, throttle.Limit{Max: 1000, Burst: 1000})
	a := start(t, apiConfig{Limiter: th})
	for body, want := range map[string]float64{`{"tokens":2.0}`: 2, `{"tokens":1e2}`: 100, `{"tokens":0.5e1}`: 5, `{"tokens":0}`: 0, `{}`: 1} {
		require.InDelta(t, want, a.ok("/v1/acquire", body)["tokens"], 0, body)
	}
	permit := text(t, a.ok("/v1/acquire", `{"tokens":10}`)["permit"])
	before := th.Status().Granted
	a.ok("/v1/settle", fmt.Sprintf(`{"permit":%q,"used":1.2e1}`, permit))
	require.Equal(t, before, th.Status().Granted)
}

// A body that does not come in time is no bad request.
func TestALateBody(t *testing.T) {
	d := newDesk(apiConfig{Limiter: newThrottle(t, throttle.Limit{Max: 1000})}.withDefaults())
	req := httptest.NewRequest(http.MethodPost, "/v1/acquire", io.MultiReader(strings.NewReader(`{"tok`), iotest.ErrReader(os.ErrDeadlineExceeded)))
	req.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	d.handler().ServeHTTP(w, req)
	require.Equal(t, http.StatusRequestTimeout, w.Code)
	require.Equal(t, "close", w.Header().Get("Connection"))
	require.Contains(t, w.Body.String(), `"reason":"too_late"`)
}

func TestBadRequests(t *testing.T) {
	a := start(t, apiConfig{Limiter: newThrottle(t, throttle.Limit{Max: 1000}), Token: canary})
	for _, c := range []struct{ path, body, field, message string }{
		{"/v1/acquire", `{"tokens":-1}`, "tokens", "tokens is -1, allowed: a whole number, 0 to 1000000000"},
		{"/v1/acquire", `{"tokens":1.5}`, "tokens", "tokens is a number 1.5, allowed: a whole number, 0 to 1000000000"},
		{"/v1/acquire", `{"tokens":1e12}`, "tokens", "tokens is a number 1e12, allowed: a whole number, 0 to 1000000000"},
		{"/v1/acquire", `{"tokens":"2"}`, "tokens", "tokens is a text, allowed: a whole number, 0 to 1000000000"},
		{"/v1/acquire", `{"tokens":true}`, "tokens", "tokens is a truth value, allowed: a whole number, 0 to 1000000000"},
		{"/v1/settle", `{"permit":"x","used":0.5}`, "used", "used is a number 0.5, allowed: a whole number, 0 to 1000000000"},
		{
			"/v1/acquire", `{"tokens":-1,"lease_seconds":0}`, "tokens",
			"tokens is -1, allowed: a whole number, 0 to 1000000000; lease_seconds is 0, allowed: 1 to 3600",
		},
		{"/v1/acquire", `{"timeout_seconds":4000}`, "timeout_seconds", "timeout_seconds is 4000, allowed: 0 to 3600"},
		{"/v1/acquire", `{"tag":"a\u0000"}`, "tag", `tag is "a\x00", allowed: up to 256 bytes of text without control characters`},
		{"/v1/acquire", `{"token":1}`, "", `"token" is no field of this call; see /v1/openapi.yaml`},
		{"/v1/acquire", `{} {}`, "", "the body has something behind the JSON object, allowed: one object"},
		{"/v1/acquire", `{"tokens":`, "", "the body is not the JSON object that this call takes; see /v1/openapi.yaml"},
		{"/v1/acquire", `[]`, "", "the body is not the JSON object that this call takes; see /v1/openapi.yaml"},
		{"/v1/settle", `{}`, "permit", `permit is "", allowed: what /v1/acquire returned`},
		{"/v1/settle", `{"permit":"x","used":-1}`, "used", "used is -1, allowed: a whole number, 0 to 1000000000"},
		{"/v1/report", `{}`, "permit", "permit is missing, allowed: a permit with an outcome, or retry_after_seconds"},
		{"/v1/report", `{"permit":"x","outcome":"fine"}`, "outcome", `outcome is "fine", allowed: accepted, refused or overloaded`},
		{"/v1/report", `{"outcome":"refused","retry_after_seconds":1}`, "permit", "permit is missing, allowed: with an outcome, the permit of the call"},
		{"/v1/pause", `{"seconds":0}`, "seconds", "seconds is 0, allowed: 0.001 to 3.16224e+07"},
		{"/v1/pause", `{"seconds":1,"resume":true}`, "seconds", "seconds is 1, allowed: none with resume"},
		{"/v1/pause", `{"seconds":1,"reason":"` + strings.Repeat("x", 200) + `"}`, "reason", ""},
	} {
		e := a.fails(400, c.path, c.body)
		require.Equal(t, "bad_request", e["reason"], c.body)
		if c.message != "" {
			require.Equal(t, c.message, e["message"])
		}
		field, _ := e["field"].(string)
		require.Equal(t, c.field, field, c.body)
	}
	require.Equal(t, "too_long", a.fails(413, "/v1/acquire", `{"tag":"`+strings.Repeat("x", maxBody)+`"}`)["reason"])
	require.Equal(t, "not_open", a.fails(404, "/v1/settle", `{"permit":"x"}`)["reason"])
	require.Equal(t, "not_open", a.fails(404, "/v1/report", `{"permit":"x","outcome":"refused"}`)["reason"])
	require.Equal(t, "not_found", a.fails(404, "/v2/acquire", `{}`)["reason"])
	require.Equal(t, "method_not_allowed", a.fails(405, "/v1/openapi.yaml", `{}`)["reason"])

	a.token = canary[1:]
	require.Equal(t, "unauthorized", a.fails(401, "/v1/acquire", `{}`)["reason"])
	a.token = ""
	require.Equal(t, "unauthorized", a.fails(401, "/v1/acquire", `{}`)["reason"])

	req, err := http.NewRequest(http.MethodPost, a.url+"/v1/acquire", bytes.NewReader([]byte("{}")))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "text/plain")
	req.Header.Set("Authorization", "Bearer "+canary)
	res, err := a.http.Do(req)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, 415, res.StatusCode, "a page in a browser can send this to loopback")
}

// A body that is JSON in another wrapping is either read, or the answer says what is wrong with it.
func TestBodiesInOtherForms(t *testing.T) {
	d := newDesk(apiConfig{Limiter: newThrottle(t, throttle.Limit{Max: 1000, Burst: 100})}.withDefaults())
	var gz bytes.Buffer
	zip := gzip.NewWriter(&gz)
	_, err := io.WriteString(zip, `{}`)
	require.NoError(t, err)
	require.NoError(t, zip.Close())
	for _, c := range []struct {
		body, coding string
		status       int
		message      string
	}{
		{"\ufeff{}", "", 200, ""},
		{"\ufeff \n{\"tokens\":0}", "identity", 200, ""},
		{"\ufeff", "", 400, "is not the JSON object"},
		{"", "", 400, "is not the JSON object"},
		{" null", "", 400, "is not the JSON object"},
		{"[]", "", 400, "is not the JSON object"},
		{"{", "", 400, "is not the JSON object"},
		{gz.String(), "gzip", 415, `Content-Encoding is \"gzip\", allowed: JSON that is not packed`},
		{"{}", "br", 415, `Content-Encoding is \"br\", allowed: JSON that is not packed`},
		{gz.String(), "", 415, "the body is gzip, allowed: JSON that is not packed"},
		{"{\x00}\x00", "", 400, "the body is UTF-16 or UTF-32, allowed: JSON in UTF-8"},
		{"\xff\xfe{\x00}\x00", "", 400, "the body is UTF-16 or UTF-32, allowed: JSON in UTF-8"},
	} {
		req := httptest.NewRequest(http.MethodPost, "/v1/acquire", strings.NewReader(c.body))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Content-Encoding", c.coding)
		w := httptest.NewRecorder()
		d.handler().ServeHTTP(w, req)
		require.Equal(t, c.status, w.Code, "%q %s", c.body, w.Body)
		require.Contains(t, w.Body.String(), c.message, "%q", c.body)
	}
}

func TestSoManyPermitsAtMost(t *testing.T) {
	a := start(t, apiConfig{Limiter: newThrottle(t, throttle.Limit{Max: 1000, Burst: 10}), MaxPermits: 2})
	first := a.ok("/v1/acquire", `{}`)
	a.ok("/v1/acquire", `{}`)
	status, header, body := a.post("/v1/acquire", `{}`)
	require.Equal(t, 503, status)
	require.Equal(t, "1", header.Get("Retry-After"))
	require.Equal(t, "too_many", object(t, body["error"])["reason"])
	a.ok("/v1/cancel", `{"permit":"`+text(t, first["permit"])+`"}`)
	a.ok("/v1/acquire", `{}`)
}

func TestTheEndWaitsForThosePermitsThatAreOpen(t *testing.T) {
	slots := newSlots(t, 2)
	a := start(t, apiConfig{Limiter: slots})
	p := a.ok("/v1/acquire", `{}`)
	a.stop()
	q := a.ok("/v1/acquire", `{}`)
	a.ok("/v1/settle", `{"permit":"`+text(t, p["permit"])+`"}`)
	select {
	case err := <-a.ended:
		t.Fatal("it ended while a permit was open", err)
	case <-time.After(100 * time.Millisecond):
	}
	a.ok("/v1/settle", `{"permit":"`+text(t, q["permit"])+`"}`)
	require.NoError(t, <-a.ended)
	require.Zero(t, slots.Status().InUse)
}

func TestTheEndSettlesWhatIsLeft(t *testing.T) {
	slots := newSlots(t, 2)
	a := start(t, apiConfig{Limiter: slots, Grace: 50 * time.Millisecond})
	a.ok("/v1/acquire", `{"tokens":2}`)
	a.stop()
	require.NoError(t, <-a.ended)
	require.Zero(t, slots.Status().InUse)
	require.Contains(t, a.log.String(), "permits were open at the end")
}

func TestUnixSocket(t *testing.T) {
	path := t.TempDir() + "/permits.sock"
	a := start(t, apiConfig{Limiter: newThrottle(t, throttle.Limit{Max: 1000}), Listen: []listen.Addr{{Network: "unix", Address: path}}})
	a.http.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}
	a.url = "http://permits"
	a.ok("/v1/acquire", `{}`)
}

func TestWithoutALimit(t *testing.T) {
	a := start(t, apiConfig{Limiter: newThrottle(t, throttle.Limit{})})
	p := a.ok("/v1/acquire", `{"tokens":7}`)
	require.EqualValues(t, 7, p["tokens"])
	a.ok("/v1/settle", `{"permit":"`+text(t, p["permit"])+`","used":9}`)
}

func TestAnAddressMustBeGiven(t *testing.T) {
	require.ErrorContains(t, runAPI(t.Context(), apiConfig{}), "permits: listen is empty, allowed: ")
	err := runAPI(t.Context(), apiConfig{Listen: []listen.Addr{{Network: "tcp", Address: "0.0.0.0:0"}}})
	require.ErrorContains(t, err, "can be reached from elsewhere")
}
