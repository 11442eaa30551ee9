package httpproxy

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/proxy"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

func packed(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := io.WriteString(w, text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.String()
}

// A cost or a tag that the proxy cannot see is no cost of one token, and no request without a tag: the request does not leave.
func TestWhatTheProxyCannotSeeDoesNotLeave(t *testing.T) {
	const body = `{"max_tokens":5000,"model":"m"}`
	utf16 := strings.Join(strings.Split(body, ""), "\x00") + "\x00"
	deep := strings.Repeat("[", 1001) + strings.Repeat("]", 1001)
	requests := map[string]struct {
		status int
		body   string
		header []string
	}{
		"gzip":            {415, packed(t, body), []string{"Content-Encoding", "gzip"}},
		"x-gzip":          {415, packed(t, body), []string{"Content-Encoding", "X-GZIP"}},
		"several codings": {415, packed(t, body), []string{"Content-Encoding", "identity, gzip"}},
		"unknown coding":  {415, body, []string{"Content-Encoding", "aws-chunked"}},
		"gzip, not said":  {400, packed(t, body), nil},
		"too deep":        {400, `{"a":` + deep + `,` + body[1:], nil},
		"cut off":         {400, body[:len(body)-1], nil},
		"behind another":  {400, `{}` + body, nil},
		"UTF-16":          {415, utf16, []string{"Content-Type", "application/json; charset=utf-16"}},
		"UTF-7":           {415, `{"max_tokens":1,"+AG0-ax_tokens":5000,"model":"m"}`, []string{"Content-Type", `application/json;CHARSET = "utf-7"`}},
		"UTF-16, big":     {400, "\x00" + utf16, []string{"Content-Type", "application/octet-stream"}},
		"UTF-16, mark":    {400, "\xff\xfe" + utf16, []string{"Content-Type", "text/plain"}},
		"quotes":          {400, strings.ReplaceAll(body, `"`, `'`), nil},
	}
	for _, c := range []Config{{Cost: "json max_tokens"}, {Cost: "llm"}, {Tag: "json model"}} {
		u := serve(t, hello)
		l := throttletest.New()
		c.Upstream, c.Limiter = u.URL, l
		p := start(t, c)
		for name, r := range requests {
			if c.Cost == "llm" && name == "gzip, not said" {
				continue // no service unpacks it
			}
			res, text := send(t, http.MethodPost, p.url, r.body, r.header...)
			require.Equal(t, r.status, res.StatusCode, "%s %s %s", c.Cost+c.Tag, name, text)
			require.Contains(t, text, "allowed: ")
		}
		require.Empty(t, l.Draws())
		require.Empty(t, u.Requests())
		if c.Cost != "" {
			require.Contains(t, p.log.String(), "a cost cannot be read")
		}
		for _, kind := range []string{`application/json; charset="UTF-8"`, "text/plain;charset=us-ascii;x=y", "application/json"} {
			res, text := send(t, http.MethodPost, p.url, body, "Content-Type", kind)
			require.Equal(t, 200, res.StatusCode, text)
		}
		for _, coding := range []string{"identity", "", " Identity , identity"} {
			res, text := send(t, http.MethodPost, p.url, "\ufeff"+body+"\n", "Content-Encoding", coding)
			require.Equal(t, 200, res.StatusCode, text)
		}
		res, text := send(t, http.MethodGet, p.url, "", "Content-Encoding", "gzip")
		require.Equal(t, 200, res.StatusCode, text)
	}
	// Rules that need not see into a body take all of them.
	for _, cost := range []string{"", "5", "bytes/10", "header X-Cost"} {
		u := serve(t, hello)
		p := start(t, Config{Upstream: u.URL, Limiter: throttletest.New(), Cost: cost, Tag: "header X-Tag"})
		for name, r := range requests {
			res, text := send(t, http.MethodPost, p.url, r.body, r.header...)
			require.Equal(t, 200, res.StatusCode, "%s %s %s", cost, name, text)
		}
	}
}

// One of two values of a field would be the cost, and a service may take the other one.
func TestAFieldThatIsThereTwice(t *testing.T) {
	u := serve(t, hello)
	p := start(t, Config{Upstream: u.URL, Limiter: throttletest.New(), Cost: "json n"})
	for _, body := range []string{`{"n":5000,"n":1}`, `{"n":5000,"\u006e":null}`} {
		res, text := send(t, http.MethodPost, p.url, body)
		require.Equal(t, 400, res.StatusCode, text)
	}
	require.Empty(t, u.Requests())
}

// A body that turns out to be none while it is passed on ends there, so that its service has no whole request.
func TestABodyThatBreaksOnTheWay(t *testing.T) {
	u := serve(t, hello)
	l := throttletest.New()
	p := start(t, Config{Upstream: u.URL, Limiter: l, Cost: "llm", BodyBuffer: 1000})
	filler := `{"prompt":"` + strings.Repeat("x", 2000) + `"`
	for _, rest := range []string{`}{"max_tokens":100000}`, `,"a":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `,"max_tokens":100000}`} {
		n := len(l.Draws())
		res, text := send(t, http.MethodPost, p.url, filler+rest)
		require.Equal(t, 400, res.StatusCode, text)
		require.Len(t, l.Draws(), n+1)
		require.Eventually(t, func() bool { return l.Draws()[n].Settled }, 10*time.Second, time.Millisecond)
	}
}

// A request that costs nothing is a request all the same: it counts for a limit on requests and on calls in flight.
func TestARequestWithoutACostCounts(t *testing.T) {
	for _, c := range []Config{
		{Limits: proxy.LimitConfig{RequestsPerMinute: 1}}, {Limits: proxy.LimitConfig{InFlight: 1}, MaxAttempts: 1},
	} {
		for _, cost := range []string{"bytes/1000", "0", "header X-Cost", "json n"} {
			hold := make(chan struct{})
			u := serve(t, func(_ http.ResponseWriter, _ testkit.Request, n int) {
				if n == 1 {
					<-hold
				}
			})
			c.Upstream, c.Cost, c.MaxWait = u.URL, cost, 50*time.Millisecond
			c.Limits.Pool = numathrottle.Config{Store: "memory://" + rand.Text(), Pool: "p", ID: "i", Limit: throttle.Limit{Max: 1_000_000, Burst: 1000}}
			p := start(t, c)
			body := ""
			if cost == "json n" {
				body = `{"n":0}`
			}
			first := make(chan error, 1)
			go func() {
				req, err := http.NewRequest(http.MethodPost, p.url, strings.NewReader(body))
				if err != nil {
					first <- err
					return
				}
				req.Header.Set("X-Cost", "0")
				for { // until there is a token
					res, err := http.DefaultClient.Do(req)
					if err == nil {
						err = res.Body.Close()
					}
					if err != nil || res.StatusCode == http.StatusOK {
						first <- err
						return
					}
					req.Body, _ = req.GetBody()
				}
			}()
			require.Eventually(t, func() bool { return len(u.Requests()) == 1 }, 10*time.Second, time.Millisecond)
			res, text := send(t, http.MethodPost, p.url, body, "X-Cost", "0")
			require.Equal(t, 429, res.StatusCode, "%s %s", cost, text)
			close(hold)
			require.NoError(t, <-first)
		}
	}
}

// Beside a limit on requests, a request that costs nothing takes nothing of the limit on costs.
func TestARequestWithoutACostDrawsNothing(t *testing.T) {
	u := serve(t, hello)
	for _, limits := range []proxy.LimitConfig{{}, {RequestsPerMinute: 1}, {InFlight: 1}} {
		l := throttletest.New()
		p := start(t, Config{Upstream: u.URL, Limiter: l, Limits: limits, Cost: "bytes/1000"})
		res, _ := send(t, http.MethodGet, p.url, "")
		require.Equal(t, 200, res.StatusCode)
		require.Zero(t, l.Draws()[0].Cost)
	}
}

// Of two tags a service may go by either one.
func TestTwoTags(t *testing.T) {
	u := serve(t, hello)
	for rule, headers := range map[string][]string{
		"header X-Tenant": {"X-Tenant: a\r\nX-Tenant: b\r\n"},
		"key": {
			"Authorization: Bearer " + canary + "\r\nX-Api-Key: other\r\n", "Authorization: Bearer " + canary + "\r\nAuthorization: Bearer b\r\n",
			"Api-Key: a\r\nX-Goog-Api-Key: b\r\n",
		},
	} {
		p := start(t, Config{Upstream: u.URL, Limiter: throttletest.New(), Tag: rule})
		for _, header := range headers {
			res, body := raw(t, p, "GET / HTTP/1.1\r\nHost: localhost\r\n"+header+"\r\n")
			require.Equal(t, 400, res.StatusCode)
			require.NotContains(t, body, canary)
		}
		require.Empty(t, u.Requests())
		for i, header := range []string{"X-Tenant: a\r\nX-Tenant: a\r\n", "Authorization: bearer a\r\nX-Api-Key: a\r\nApi-Key:\r\n", ""} {
			res, _ := raw(t, p, "GET / HTTP/1.1\r\nHost: localhost\r\n"+header+"\r\n")
			require.Equal(t, 200, res.StatusCode, i)
		}
		u.Forget()
	}
}
