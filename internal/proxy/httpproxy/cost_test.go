package httpproxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/costrule"
	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// upgrades are headers that ask for another protocol, and make none of a request but a request.
var upgrades = []string{
	"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n",
	"Upgrade: h2c\r\n", "Connection: Upgrade\r\nUpgrade: x/1\r\n", "Connection: upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: x\r\n",
	"Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n", "Upgrade:\r\n", "Connection: close, Upgrade\r\nUpgrade: TLS/1.2\r\nUpgrade: websocket\r\n",
}

func TestAnUpgradeHidesNoBody(t *testing.T) {
	for _, upgrade := range upgrades {
		for _, chunked := range []bool{false, true} {
			u := serve(t, refusing(1, hello))
			l := throttletest.New()
			p := start(t, Config{Upstream: u.URL, Limiter: l, Cost: "bytes/1", MaxBody: 6000, Provider: profile.OpenAI})
			request := func(size int) string {
				body := strings.Repeat("x", size)
				if chunked {
					return fmt.Sprintf("POST /c HTTP/1.1\r\nHost: localhost\r\n%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", upgrade, size, body)
				}
				return fmt.Sprintf("POST /c HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %d\r\n\r\n%s", upgrade, size, body)
			}
			res, body := raw(t, p, request(5000))
			require.Equal(t, 200, res.StatusCode, body)
			require.Len(t, u.Requests(), 2, "the refusal was waited out")
			for _, r := range u.Requests() {
				require.Len(t, r.Body, 5000)
				for _, name := range []string{"Upgrade", "Http2-Settings", "Connection"} {
					require.NotContains(t, r.Header, name)
				}
			}
			require.Equal(t, 5000, l.Draws()[0].Cost)
			res, _ = raw(t, p, request(6001))
			require.Equal(t, 413, res.StatusCode)
			require.Len(t, u.Requests(), 2)
		}
	}
}

// A service that speaks HTTP/2 gets the request of a client that asks for h2c, as Java's does.
func TestAnUpgradeToAServiceOverHTTP2(t *testing.T) {
	l := throttletest.New()
	proto := make(chan string, 1)
	u := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { proto <- r.Proto }))
	u.EnableHTTP2 = true
	u.StartTLS()
	defer u.Close()
	c := Config{Upstream: u.URL, Limiter: l}
	d := c.withDefaults()
	p := newHandler(&d, limits{limiter: l}, "", nil)
	transport, ok := u.Client().Transport.(*http.Transport)
	require.True(t, ok)
	p.reverse.Transport = transport
	front := httptest.NewServer(p)
	defer front.Close()
	res, _ := raw(t, &running{url: front.URL}, "GET / HTTP/1.1\r\nHost: localhost\r\n"+upgrades[0]+"\r\n")
	require.Equal(t, 200, res.StatusCode)
	require.Equal(t, "HTTP/2.0", <-proto)
}

// A body of unknown length is settled with all that has passed of it, whatever becomes of the call.
func TestABodyOfUnknownLength(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"read": func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) },
		"refused": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		},
		"broken": func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := httptest.NewServer(h)
			defer u.Close()
			l := throttletest.New()
			p := start(t, Config{Upstream: u.URL, Limiter: l, Cost: "bytes/1000", BodyBuffer: 10_000})
			for i, size := range []int{5_000, 10_000, 10_001, 20_000, 2_000_001} {
				post(t, p.url, strings.Repeat("x", size), true)
				require.Eventually(t, func() bool { return l.Draws()[i].Settled }, 10*time.Second, time.Millisecond)
				require.Equal(t, (size+999)/1000, l.Draws()[i].Used, size)
				require.Equal(t, (min(size, 10_001)+999)/1000, l.Draws()[i].Cost, "what is drawn up front")
			}
		})
	}
}

// What is above the draw is debt that the next request waits for.
func TestABodyOfUnknownLengthIsDebt(t *testing.T) {
	u := serve(t, hello)
	th, err := throttle.New(throttle.Limit{Max: 100, Burst: 100})
	require.NoError(t, err)
	defer th.Close()
	p := start(t, Config{Upstream: u.URL, Limiter: th, Cost: "bytes/1000", BodyBuffer: 1000, MaxWait: time.Second})
	res, _ := post(t, p.url, strings.Repeat("x", 10_000_000), true)
	require.Equal(t, 200, res.StatusCode)
	require.Eventually(t, func() bool {
		res, _ := send(t, "POST", p.url, "x")
		return res.StatusCode == http.StatusTooManyRequests
	}, 10*time.Second, time.Millisecond)
}

// Nothing of a body passes once its answer is complete: its permit is settled.
func TestNothingPassesAfterTheAnswer(t *testing.T) {
	rule, _ := parseCost("bytes/10")
	s := &sending{rule: rule, m: &message{body: make([]byte, 15)}}
	body := &sentBody{io.NopCloser(strings.NewReader(strings.Repeat("x", 100))), s}
	n, err := body.Read(make([]byte, 50))
	require.NoError(t, err)
	require.Equal(t, 50, n)
	require.Equal(t, 7, costrule.Passed(s.with(context.Background()))())
	_, err = body.Read(make([]byte, 50))
	require.ErrorIs(t, err, errSettled)
}

func TestCostsThatCannotBeRead(t *testing.T) {
	u := serve(t, hello)
	l := throttletest.New()
	p := start(t, Config{Upstream: u.URL, Limiter: l, Cost: "header X-Cost"})
	for text, want := range map[string]int{"5.0": 5, "4.2": 5, "5e2": 500, "99999999999": costrule.Ungrantable, "0": 0} {
		before := len(l.Draws())
		res, body := send(t, "GET", p.url, "", "X-Cost", text)
		require.Equal(t, 200, res.StatusCode, body)
		if want > 0 {
			require.Equal(t, want, l.Draws()[before].Cost, text)
		}
	}
	sent := len(u.Requests())
	for _, text := range []string{"", "-1", "NaN", "Inf", "0x10", "many", "1,000"} {
		res, body := send(t, "GET", p.url, "", "X-Cost", text)
		require.Equal(t, 400, res.StatusCode, text)
		require.Equal(t, "bad_request", reason(t, body))
	}
	require.Contains(t, p.log.String(), "a cost cannot be read")

	p = start(t, Config{Upstream: u.URL, Limiter: l, Cost: "json a.0.cost", BodyBuffer: 100})
	for _, doc := range []string{`-1`, `"x"`, `true`, `{}`, `""`} {
		res, body := send(t, "POST", p.url, `{"a":[{"cost":`+doc+`}]}`)
		require.Equal(t, 400, res.StatusCode, doc)
		require.Contains(t, body, "json a.0.cost is ")
	}
	res, body := send(t, "POST", p.url, `{"a":[{"cost":5000}],"pad":"`+strings.Repeat("x", 200)+`"}`)
	require.Equal(t, 413, res.StatusCode, "a cost behind what is read of a body")
	require.Contains(t, body, "bodyBuffer")
	require.Len(t, u.Requests(), sent)

	th, err := throttle.New(throttle.Limit{Max: 1000})
	require.NoError(t, err)
	defer th.Close()
	p = start(t, Config{Upstream: u.URL, Limiter: th, Cost: "header X-Cost"})
	res, body = send(t, "GET", p.url, "", "X-Cost", "99999999999")
	require.Equal(t, 422, res.StatusCode)
	require.Equal(t, "too_large", reason(t, body))
}

// The tag of a field is the same as in the handler proxy.
func TestTagsInABody(t *testing.T) {
	rule, ok := parseTag("json a.0.tenant")
	require.True(t, ok)
	for body, want := range map[string]string{
		`{"a":[{"tenant":42}]}`: "42", `{"a":[{"tenant":"acme"}]}`: "acme", `{"a":[{"tenant":4.20}]}`: "4.2", `{"a":[{"tenant":true}]}`: "true",
		`{"a":[{"tenant":null}]}`: "", `{"a":{"0":{"tenant":1}}}`: "1", `{"a":[]}`: "", "": "",
	} {
		tag, err := rule.of(&message{body: []byte(body), whole: true})
		require.NoError(t, err)
		require.Equal(t, want, tag, body)
	}
	// Of a longer body the beginning is looked at; where the tag stands behind it, nobody can tell for whom the request is.
	u := serve(t, hello)
	for _, chunked := range []bool{false, true} {
		l := &tagged{Limiter: throttletest.New()}
		p := start(t, Config{Upstream: u.URL, Limiter: l, Tag: "json tenant", BodyBuffer: 100})
		for i, body := range []string{`{"tenant":42,"pad":"` + strings.Repeat("x", 200) + `"}`, `{"pad":"` + strings.Repeat("x", 200) + `","tenant":42}`} {
			res, _ := post(t, p.url, body, chunked)
			require.Equal(t, []int{200, 413}[i], res.StatusCode)
		}
		require.Equal(t, []string{"42"}, l.tags)
	}
	for _, r := range u.Requests() {
		require.True(t, strings.HasPrefix(r.Body, `{"tenant":42`))
	}
}

// A request that costs nothing waits for what holds others: an operator's pause, and a limit on requests.
func TestARequestThatCostsNothingIsHeldLikeOthers(t *testing.T) {
	u := serve(t, hello)
	th, err := throttle.New(throttle.Limit{Max: 1_000_000})
	require.NoError(t, err)
	requests, err := throttle.New(throttle.Limit{Max: 1, Per: time.Hour, Burst: 1})
	require.NoError(t, err)
	hook.Repay(requests, 2)
	p := start(t, Config{Upstream: u.URL, Limiter: throttle.All(th, throttle.PerCall(requests)), Cost: "bytes/1", MaxWait: 200 * time.Millisecond})
	get := func(want int) string {
		res, body := send(t, http.MethodGet, p.url, "")
		require.Equal(t, want, res.StatusCode, body)
		return body
	}
	_, err = th.Pause(t.Context(), time.Time{}, "maintenance")
	require.NoError(t, err)
	require.Equal(t, "pause", reason(t, get(429)))
	require.NoError(t, th.Resume(t.Context()))
	require.Eventually(t, func() bool { _, held := th.Throttled(); return !held }, 5*time.Second, time.Millisecond)
	get(200)
	require.Equal(t, "limit", reason(t, get(429)), "it was the only request of this hour")
	require.Len(t, u.Requests(), 1)
}
