package httpproxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/internal/proxy"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// canary is in every secret of these tests. It must not come out anywhere but upstream.
const canary = "hunter2-canary"

// A running is a proxy that runs.
type running struct {
	url   string
	log   *testkit.Book
	stop  context.CancelFunc
	ended chan error
}

func start(t *testing.T, c Config) *running {
	t.Helper()
	if c.Serving.Listen == "" {
		c.Serving.Listen = "127.0.0.1:0"
	}
	p := &running{log: &testkit.Book{}, ended: make(chan error, 1)}
	c.Logger = p.log.Logger()
	c.quiet = 20 * time.Millisecond
	ready := make(chan []string, 1)
	c.Ready = func(addrs []string) { ready <- addrs }
	ctx, stop := context.WithCancel(t.Context())
	p.stop = stop
	go func() { p.ended <- Run(ctx, c) }()
	select {
	case addrs := <-ready:
		p.url = "http://" + addrs[0]
	case err := <-p.ended:
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		stop()
		require.NotContains(t, p.log.String(), canary)
	})
	return p
}

// serve runs a service that keeps what it is sent.
func serve(t *testing.T, h func(w http.ResponseWriter, r testkit.Request, n int)) *testkit.Service {
	t.Helper()
	return testkit.StartService(t, h)
}

func hello(w http.ResponseWriter, _ testkit.Request, _ int) { _, _ = io.WriteString(w, "hello") }

// refusing answers so many requests with a 429, and the others as h does.
func refusing(most int, h func(w http.ResponseWriter, r testkit.Request, n int)) func(w http.ResponseWriter, r testkit.Request, n int) {
	return func(w http.ResponseWriter, r testkit.Request, n int) {
		if n > most {
			h(w, r, n)
			return
		}
		w.Header().Set("Retry-After-Ms", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	}
}

// send makes a request, and returns the answer with its body.
func send(t *testing.T, method, url, body string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	req.Host = req.Header.Get("Host")
	return answered(t, http.DefaultClient, req)
}

// post sends a body, in chunks: net/http does not know its length.
func post(t *testing.T, url, body string, chunked bool) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	require.NoError(t, err)
	if chunked {
		req.ContentLength = -1
	}
	return answered(t, http.DefaultClient, req)
}

// through makes a request through a forward proxy.
func through(t *testing.T, client *http.Client, url string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	return answered(t, client, req)
}

func answered(t *testing.T, client *http.Client, req *http.Request) (*http.Response, string) {
	t.Helper()
	res, err := client.Do(req)
	require.NoError(t, err)
	return res, bodyOf(t, res)
}

func bodyOf(t *testing.T, res *http.Response) string {
	t.Helper()
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NotContains(t, string(text), canary)
	return string(text)
}

// client returns one of a forward proxy, which believes every certificate.
func client(t *testing.T, p *running) *http.Client {
	t.Helper()
	u, err := url.Parse(p.url)
	require.NoError(t, err)
	c := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(u), TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// connect makes a connection to a proxy, sends bytes, and returns the head of the answer.
func connect(t *testing.T, p *running, text string) (net.Conn, *bufio.Reader, *http.Response) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
	_, err = io.WriteString(conn, text)
	require.NoError(t, err)
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	return conn, in, res
}

// raw sends bytes to a proxy, and returns the answer with its body.
func raw(t *testing.T, p *running, text string) (*http.Response, string) {
	t.Helper()
	conn, _, res := connect(t, p, text)
	defer conn.Close()
	return res, bodyOf(t, res)
}

// get returns the body of an answer, or the error.
func get(url string) string {
	res, err := http.Get(url)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// reason is that of an answer of the proxy's own.
func reason(t *testing.T, body string) string {
	t.Helper()
	var out struct {
		Error struct {
			Reason string `json:"reason"`
		} `json:"error"`
	}
	require.NoError(t, json.Unmarshal([]byte(body), &out), body)
	return out.Error.Reason
}

func TestARequestIsPassedOn(t *testing.T) {
	u := serve(t, func(w http.ResponseWriter, _ testkit.Request, _ int) {
		w.Header().Set("X-Answer", "yes")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "short and stout")
	})
	l := throttletest.New()
	p := start(t, Config{Upstream: u.URL + "/base", Limiter: l, Cost: "bytes/4"})
	res, body := send(t, "POST", p.url+"/v1/chat?a=b%20c", "ninebytes", "Authorization", "Bearer "+canary, "X-Own", "1")
	require.Equal(t, http.StatusTeapot, res.StatusCode)
	require.Equal(t, "yes", res.Header.Get("X-Answer"))
	require.Equal(t, "short and stout", body)
	got := u.Requests()
	require.Len(t, got, 1)
	require.Equal(t, "POST /base/v1/chat?a=b%20c ninebytes", got[0].Method+" "+got[0].Path+" "+got[0].Body)
	require.Equal(t, strings.TrimPrefix(u.URL, "http://"), got[0].Host)
	require.Equal(t, "Bearer "+canary, got[0].Header.Get("Authorization"))
	require.Equal(t, "1", got[0].Header.Get("X-Own"))
	require.Empty(t, got[0].Header.Get("X-Forwarded-For"), "who calls is nobody's business")
	require.Equal(t, 3, l.Draws()[0].Cost)
}

// A refusal is waited out within the proxy, and each request on the wire has drawn its own permit.
func TestRefusalsAreWaitedOut(t *testing.T) {
	u := serve(t, refusing(2, hello))
	l := throttletest.New()
	p := start(t, Config{Upstream: u.URL, Limiter: l, Provider: profile.OpenAI})
	res, body := send(t, "POST", p.url, "the body")
	require.Equal(t, 200, res.StatusCode)
	require.Equal(t, "hello", body)
	require.Len(t, u.Requests(), 3)
	for _, r := range u.Requests() {
		require.Equal(t, "the body", r.Body)
	}
	require.Len(t, l.Draws(), 3)

	u = serve(t, func(w http.ResponseWriter, _ testkit.Request, _ int) {
		w.Header().Set("Retry-After", "7200")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, "in two hours")
	})
	p = start(t, Config{Upstream: u.URL, Limiter: throttletest.New()})
	res, body = send(t, "POST", p.url, "x")
	require.Equal(t, 429, res.StatusCode)
	require.Equal(t, "7200", res.Header.Get("Retry-After"))
	require.Equal(t, "in two hours", body, "the service's own answer")
}

func TestARequestThatWouldWaitTooLong(t *testing.T) {
	u := serve(t, hello)
	th, err := throttle.New(throttle.Limit{Max: 1, Per: time.Hour}, throttle.WithName("the-pool"))
	require.NoError(t, err)
	p := start(t, Config{Upstream: u.URL, Limiter: th, MaxWait: 50 * time.Millisecond, Tag: "header X-Tenant"})
	res, body := send(t, "POST", p.url, "x", "X-Tenant", "acme")
	require.Equal(t, 429, res.StatusCode)
	require.Regexp(t, `^3[56]\d\d$`, res.Header.Get("Retry-After"))
	require.Equal(t, "limit", reason(t, body))
	require.Contains(t, body, `"limit":"the-pool"`)
	require.Contains(t, body, `"tag":"acme"`)
	require.Empty(t, u.Requests())
}

// Events arrive as they are sent, and the usage in the last one settles the call.
func TestEventsArePassedOnAsTheyCome(t *testing.T) {
	next := make(chan struct{})
	u := serve(t, func(w http.ResponseWriter, _ testkit.Request, _ int) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range []string{
			`{"choices":[{"delta":{"content":"hi"}}]}`,
			`{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}`, `[DONE]`,
		} {
			_, _ = fmt.Fprintf(w, "data: %s\n\n", event)
			_ = http.NewResponseController(w).Flush()
			<-next
		}
	})
	l := throttletest.New()
	p := start(t, Config{Upstream: u.URL, Limiter: l, Cost: "llm"})
	req, err := http.NewRequest(http.MethodPost, p.url, strings.NewReader(`{"max_tokens":100,"n":2,"stream":true}`))
	require.NoError(t, err)
	req.Header.Set("Accept-Encoding", "gzip")
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	for _, want := range []string{"hi", "usage", "[DONE]"} {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, line, want)
		_, err = lines.ReadString('\n')
		require.NoError(t, err)
		next <- struct{}{} // the service waits until the event was read
	}
	_, err = io.Copy(io.Discard, res.Body)
	require.NoError(t, err)
	require.Equal(t, "identity", u.Requests()[0].Header.Get("Accept-Encoding"))
	draw := l.Draws()[0]
	require.Equal(t, 200, draw.Cost)
	require.Eventually(t, func() bool { return l.Draws()[0].Settled }, 5*time.Second, time.Millisecond)
	require.Equal(t, 7, l.Draws()[0].Used)
}

// A dead connection over HTTP/2 is noticed before its first request has timed out.
func TestPingsFitTheTimeout(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{
		8 * time.Second: 2 * time.Second, 100 * time.Millisecond: time.Second, time.Hour: 10 * time.Second,
	} {
		p := &handler{Config: &Config{AnswerTimeout: timeout}}
		require.Equal(t, want, p.base().HTTP2.SendPingTimeout)
		require.Equal(t, min(want, 5*time.Second), p.base().HTTP2.PingTimeout)
	}
}

// Only answers that can be those of an LLM settle by the usage in their bodies, and all by that in their headers.
func TestTheTypeOfAnAnswerSaysWhetherItsUsageCounts(t *testing.T) {
	const drawn = 2 // 8 bytes
	for kind, used := range map[string]int{
		"application/json": 7, "application/json; charset=utf-8": 7, "application/vnd.api+json": 7, "application/x-ndjson": 7,
		"application/json; charset": 7, "Application/JSON ;": 7, "text/json": 7, "application/x-json": 7, "application/vnd.amazon.eventstream": 7,
		"text/plain": drawn, "text/plain; charset=utf-8": drawn, "text/html": drawn, "application/octet-stream": drawn,
		"image/svg+json": drawn, "json": drawn, "": drawn,
	} {
		u := serve(t, func(w http.ResponseWriter, _ testkit.Request, n int) {
			w.Header()["Content-Type"] = []string{kind}
			if n == 2 {
				w.Header().Set("X-Amzn-Bedrock-Input-Token-Count", "5")
				w.Header().Set("X-Amzn-Bedrock-Output-Token-Count", "4")
			}
			_, _ = io.WriteString(w, `{"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}`)
		})
		l := throttletest.New()
		p := start(t, Config{Upstream: u.URL, Limiter: l, Cost: "bytes/4", Settle: "usage"})
		for i, used := range []int{used, 9} {
			post(t, p.url, `{"a":12}`, false)
			require.Eventually(t, func() bool { return len(l.Draws()) == i+1 && l.Draws()[i].Settled }, 5*time.Second, time.Millisecond)
			require.Equal(t, used, l.Draws()[i].Used, kind)
		}
	}
}

func TestTheAnswerSaysTheCost(t *testing.T) {
	u := serve(t, func(w http.ResponseWriter, r testkit.Request, n int) {
		w.Header().Set("X-Cost", []string{"9", "cheap", "8.5", "-1", "2e9", "0"}[n-1])
		hello(w, r, n)
	})
	l := throttletest.New()
	p := start(t, Config{Upstream: u.URL, Limiter: l, Cost: "5", Settle: "header X-Cost"})
	for i, want := range []int{9, 5, 9, 5, 5, 0} {
		send(t, "GET", p.url, "")
		require.Eventually(t, func() bool { return l.Draws()[i].Settled }, 5*time.Second, time.Millisecond)
		require.Equal(t, want, l.Draws()[i].Used)
	}
}

// A request whose answer says that it cost nothing is one of a limit on requests all the same.
func TestAnAnswerForNothingIsCounted(t *testing.T) {
	u := serve(t, func(w http.ResponseWriter, r testkit.Request, n int) {
		w.Header().Set("X-Used", "0")
		hello(w, r, n)
	})
	requests, err := throttle.New(throttle.Limit{Max: 1_000_000})
	require.NoError(t, err)
	tokens, err := throttle.New(throttle.Limit{Max: 1_000_000}) // later, and so settled later
	require.NoError(t, err)
	p := start(t, Config{Upstream: u.URL, Limiter: throttle.All(tokens, throttle.PerCall(requests)), Cost: "3", Settle: "header X-Used"})
	for i := range 4 {
		res, _ := send(t, "GET", p.url, "")
		require.Equal(t, 200, res.StatusCode)
		require.Eventually(t, func() bool { return tokens.Status().Returned == int64(3*(i+1)) }, 5*time.Second, time.Millisecond)
		require.EqualValues(t, i+1, requests.Status().Granted)
		require.Zero(t, requests.Status().Returned)
	}
}

func TestAClientThatLeavesGivesItsSlotBack(t *testing.T) {
	cancelled := make(chan struct{})
	u := serve(t, func(w http.ResponseWriter, r testkit.Request, _ int) {
		_, _ = io.WriteString(w, "begun\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(cancelled)
	})
	slots, err := throttle.NewInFlight(1)
	require.NoError(t, err)
	p := start(t, Config{Upstream: u.URL, Limiter: slots})
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	_, err = bufio.NewReader(res.Body).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, 1, slots.Status().InUse)
	cancel()
	<-cancelled
	require.Eventually(t, func() bool { return slots.Status().InUse == 0 }, 5*time.Second, time.Millisecond)
}

func TestUpstreamDown(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	slots, err := throttle.NewInFlight(1)
	require.NoError(t, err)
	p := start(t, Config{Upstream: closed.URL, Limiter: slots})
	res, body := send(t, "POST", p.url+"/secret-"+canary, "x")
	require.Equal(t, 502, res.StatusCode)
	require.Equal(t, "upstream", reason(t, body))
	require.Contains(t, p.log.String(), "connection refused")
	require.Zero(t, slots.Status().InUse)
}

func TestUpstreamThatEndsTheConnection(t *testing.T) {
	u := serve(t, func(w http.ResponseWriter, _ testkit.Request, _ int) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	})
	p := start(t, Config{Upstream: u.URL, Limiter: throttletest.New()})
	res, body := send(t, "POST", p.url, "x")
	require.Equal(t, 502, res.StatusCode)
	require.Equal(t, "upstream", reason(t, body))
	require.Len(t, u.Requests(), 1, "a call that may have been acted on is not repeated")
}

func TestUpstreamThatIsSilent(t *testing.T) {
	end := make(chan struct{})
	u := serve(t, func(w http.ResponseWriter, r testkit.Request, _ int) {
		if r.URL.Path == "/half" {
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush()
		}
		select {
		case <-end:
		case <-r.Context().Done():
		}
	})
	defer close(end)
	p := start(t, Config{Upstream: u.URL, Limiter: throttletest.New(), AnswerTimeout: time.Second, IdleTimeout: time.Second})
	res, body := send(t, "POST", p.url, "x")
	require.Equal(t, 504, res.StatusCode)
	require.Contains(t, body, "did not answer in time")
	res, err := http.Get(p.url + "/half")
	require.NoError(t, err)
	defer res.Body.Close()
	_, err = io.ReadAll(res.Body)
	require.Error(t, err, "an answer that broke off is not taken for a whole one")
}

func TestBodies(t *testing.T) {
	u := serve(t, hello)
	p := start(t, Config{Upstream: u.URL, Limiter: throttletest.New(), MaxBody: 1000, BodyBuffer: 100})
	for _, n := range []int{0, 1, 100, 101, 1000} {
		for _, chunked := range []bool{false, true} {
			res, _ := post(t, p.url, strings.Repeat("x", n), chunked)
			require.Equal(t, 200, res.StatusCode)
			all := u.Requests()
			require.Len(t, all[len(all)-1].Body, n)
		}
	}
	before := len(u.Requests())
	for _, chunked := range []bool{false, true} {
		res, body := post(t, p.url, strings.Repeat("x", map[bool]int{false: 1001, true: 5000}[chunked]), chunked)
		require.Equal(t, 413, res.StatusCode)
		require.Equal(t, "too_long", reason(t, body))
		require.Contains(t, body, "1000 bytes")
	}
	for _, r := range u.Requests()[before:] {
		require.LessOrEqual(t, len(r.Body), 1000)
	}
}

func TestTags(t *testing.T) {
	u := serve(t, hello)
	for _, c := range []struct{ tag, header, want string }{
		{"header X-Tenant", "X-Tenant", "acme"},
		{"json model", "", "gpt"},
		{"json no.such", "", ""},
		{"host", "", strings.TrimPrefix(u.URL, "http://")},
	} {
		l := &tagged{Limiter: throttletest.New()}
		p := start(t, Config{Upstream: u.URL, Limiter: l, Tag: c.tag})
		send(t, "POST", p.url, `{"model":"gpt"}`, "X-Tenant", "acme")
		if c.want == "" {
			require.Empty(t, l.tags)
			continue
		}
		require.Equal(t, []string{c.want}, l.tags)
	}
	l := &tagged{Limiter: throttletest.New()}
	p := start(t, Config{Upstream: u.URL, Limiter: l, Tag: "key"})
	send(t, "POST", p.url, "", "Authorization", canary)
	send(t, "POST", p.url, "", "X-Api-Key", canary)
	send(t, "POST", p.url, "", "Authorization", canary+"2")
	for _, spelling := range []string{"Bearer " + canary, "bEARER  " + canary} {
		send(t, "POST", p.url, "", "Authorization", spelling)
	}
	require.Len(t, l.tags, 5)
	require.Equal(t, l.tags[0], l.tags[3])
	require.Equal(t, l.tags[0], l.tags[4])
	require.Regexp(t, `^key-[0-9a-f]{16}$`, l.tags[0])
	require.Equal(t, l.tags[0], l.tags[1])
	require.NotEqual(t, l.tags[0], l.tags[2])

	res, body := send(t, "POST", start(t, Config{Upstream: u.URL, Limiter: l, Tag: "header X-Tenant"}).url, "", "X-Tenant", strings.Repeat("x", 300))
	require.Equal(t, 400, res.StatusCode)
	require.Contains(t, body, "allowed: up to 256 bytes")
}

// A tagged limiter keeps the tags that it is asked for.
type tagged struct {
	throttle.Limiter

	tags []string
}

func (l *tagged) ForTag(tag string) throttle.Limiter {
	l.tags = append(l.tags, tag)
	return l.Limiter
}

func TestToken(t *testing.T) {
	u := serve(t, hello)
	p := start(t, Config{
		Upstream: u.URL, Forward: strings.TrimPrefix(u.URL, "http://"), Limiter: throttletest.New(),
		Serving: proxy.Serving{Token: numathrottle.NewSecret(canary)},
	})
	res, body := send(t, "GET", p.url, "")
	require.Equal(t, 401, res.StatusCode)
	require.Equal(t, "unauthorized", reason(t, body))
	res, _ = send(t, "GET", p.url, "", tokenHeader, "wrong")
	require.Equal(t, 401, res.StatusCode)
	require.Empty(t, u.Requests())
	res, _ = send(t, "GET", p.url, "", tokenHeader, canary)
	require.Equal(t, 200, res.StatusCode)
	require.Empty(t, u.Requests()[0].Header.Get(tokenHeader), "the service does not see it")

	for user, want := range map[*url.Userinfo]int{nil: 407, url.UserPassword("u", canary): 200} {
		at, err := url.Parse(p.url)
		require.NoError(t, err)
		at.User = user
		res, _ := through(t, &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(at), DisableKeepAlives: true}}, u.URL+"/x")
		require.Equal(t, want, res.StatusCode)
	}
	require.Empty(t, u.Requests()[1].Header.Get("Proxy-Authorization"))
}

func TestTheEndWaitsForAnswers(t *testing.T) {
	begun, leave := make(chan struct{}), make(chan struct{})
	u := serve(t, func(w http.ResponseWriter, r testkit.Request, n int) {
		close(begun)
		<-leave
		hello(w, r, n)
	})
	p := start(t, Config{Upstream: u.URL, Limiter: throttletest.New()})
	answer := make(chan string)
	go func() { answer <- get(p.url) }()
	<-begun
	p.stop()
	select {
	case err := <-p.ended:
		t.Fatal("it ended while a request was under way", err)
	case <-time.After(100 * time.Millisecond):
	}
	close(leave)
	require.Equal(t, "hello", <-answer)
	require.NoError(t, <-p.ended)
}

func TestSoManyRequestsAtMost(t *testing.T) {
	leave := make(chan struct{})
	u := serve(t, func(w http.ResponseWriter, r testkit.Request, n int) {
		<-leave
		hello(w, r, n)
	})
	p := start(t, Config{Upstream: u.URL, Limiter: throttletest.New(), MaxRequests: 1})
	first := make(chan string)
	go func() { first <- get(p.url) }()
	require.Eventually(t, func() bool { return len(u.Requests()) == 1 }, 5*time.Second, time.Millisecond)
	res, body := send(t, "GET", p.url, "")
	require.Equal(t, 503, res.StatusCode)
	require.Equal(t, "1", res.Header.Get("Retry-After"))
	require.Equal(t, "too_many", reason(t, body))
	close(leave)
	require.Equal(t, "hello", <-first)
}
