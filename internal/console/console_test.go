package console

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
)

const token = "a token of the tests"

var quiet = slog.New(slog.DiscardHandler)

// A member is a processor as the store knows it: by the requests that it sends.
type member struct {
	store driver.Store
	req   driver.Request
}

func join(t *testing.T, store driver.Store, pool, id, note string, share driver.Share) *member {
	t.Helper()
	m := &member{store, driver.Request{
		Pool: pool, ID: id, Incarnation: "1", Nonce: 1, Lease: driver.DefaultLease,
		Report: driver.Report{Wanted: share, Demand: share, PoolSize: 1, Note: note},
	}}
	m.sync(t)
	return m
}

func (m *member) sync(t *testing.T) {
	t.Helper()
	m.req.Seq++
	ans, err := m.store.Sync(t.Context(), m.req)
	require.NoError(t, err)
	m.req.LastSeq, m.req.LastNonce, m.req.LastTime, m.req.Revision, m.req.InUse = ans.Seq, ans.Nonce, ans.Time, ans.Revision, ans.Share
}

func (m *member) leave(t *testing.T) {
	t.Helper()
	require.NoError(t, m.store.Leave(t.Context(), driver.Leave{
		Pool: m.req.Pool, ID: m.req.ID, Incarnation: "1", Seq: m.req.Seq + 1, LastSeq: m.req.LastSeq, LastNonce: m.req.LastNonce,
	}))
}

// counted counts the questions for each pool, and can be away.
type counted struct {
	*memstore.Store

	away atomic.Bool
	mute atomic.Bool // it lists no pools either
	age  atomic.Int64
	mu   sync.Mutex
	asks map[string]int
}

func newCounted() *counted { return &counted{Store: memstore.New(), asks: map[string]int{}} }

func (s *counted) Load(ctx context.Context, pool string) ([]driver.Document, []driver.RosterRow, error) {
	s.mu.Lock()
	s.asks[pool]++
	s.mu.Unlock()
	if s.away.Load() {
		return nil, nil, errors.New("no such day")
	}
	return s.Store.Load(ctx, pool)
}

// Age is what a test says, for its pods sync once.
func (s *counted) Age(context.Context, string) (time.Duration, error) {
	return time.Duration(s.age.Load()), nil
}

func (s *counted) Pools(ctx context.Context) ([]string, error) {
	if s.mute.Load() {
		return nil, errors.New("no such day")
	}
	return s.Store.Pools(ctx)
}

func (s *counted) asked(pool string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asks[pool]
}

// A client is a browser as far as HTTP tells.
type client struct {
	*http.Client

	url, word string
}

// serve serves a console of a store, and returns one who looks at it.
func serve(t *testing.T, store driver.Store, token string) (*Console, *client) {
	t.Helper()
	return serveEvery(t, store, token, 5*time.Millisecond)
}

func serveEvery(t *testing.T, store driver.Store, token string, every time.Duration) (*Console, *client) {
	t.Helper()
	return serveConfig(t, Config{Store: store, StoreURL: "redis://h", Token: token, Every: every, Logger: quiet})
}

func serveConfig(t *testing.T, conf Config) (*Console, *client) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	k, err := New(ctx, conf)
	require.NoError(t, err)
	server := httptest.NewServer(k)
	t.Cleanup(func() { cancel(); server.CloseClientConnections(); server.Close() })
	return k, newClient(t, server.URL)
}

func newClient(t *testing.T, url string) *client {
	t.Helper()
	jar, err := cookiejar.New(nil) // on which nothing may depend
	require.NoError(t, err)
	return &client{Client: &http.Client{Jar: jar, Timeout: 30 * time.Second}, url: url}
}

// post sends a body, and returns the status and what the answer says.
func (c *client) post(t *testing.T, path, body string, headers ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url+path, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	if c.word != "" {
		req.Header.Set(wordHeader, c.word)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
	}
	resp, err := c.Do(req)
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

func (c *client) login(t *testing.T) {
	t.Helper()
	code, text := c.post(t, "/api/login", `{"token":"`+token+`","by":"ann"}`)
	require.Equal(t, 200, code, text)
	var me whoami
	require.NoError(t, json.Unmarshal([]byte(text), &me))
	require.True(t, me.In)
	require.Equal(t, "ann", me.By)
	c.word = me.Word
}

// open asks for a path. Close the body of the answer.
func (c *client) open(t *testing.T, path string, headers ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url+path, nil)
	require.NoError(t, err)
	if c.word != "" {
		req.Header.Set(wordHeader, c.word)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.Do(req)
	require.NoError(t, err)
	return resp
}

func (c *client) get(t *testing.T, path string, headers ...string) (*http.Response, string) {
	t.Helper()
	resp := c.open(t, path, headers...)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(text)
}

// follow calls heard with each event of a stream until it returns true.
func follow[T any](t *testing.T, c *client, path string, received func(T) bool) {
	t.Helper()
	resp := c.open(t, path)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	require.Equal(t, 200, resp.StatusCode)
	require.Equal(t, "text/event-stream", resp.Header.Get("Content-Type"))
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var v T
		require.NoError(t, json.Unmarshal([]byte(data), &v))
		if received(v) {
			return
		}
	}
	require.Fail(t, "the stream has ended", lines.Err())
}

func TestConfig(t *testing.T) {
	for want, c := range map[string]Config{
		"":                                {},
		"listen is \"8090\"":              {Listen: "8090"},
		"listen is \"h:\"":                {Listen: "h:"},
		"which others can reach":          {Listen: "0.0.0.0:1"},
		"\":8090\", which others can":     {Listen: ":8090"},
		"\"example.com:1\", which others": {Listen: "example.com:1"},
		"the token has 5 bytes":           {Token: "short"},
	} {
		err := c.Validate()
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "short")
	}
	for _, listen := range []string{"localhost:1", "[::1]:1", "127.8.8.8:1"} {
		require.NoError(t, (&Config{Listen: listen}).Validate())
	}
	require.NoError(t, (&Config{Listen: ":1", Token: token}).Validate())
}

// The page allows itself alone, by a nonce that is another one each time.
func TestPage(t *testing.T) {
	_, c := serve(t, memstore.New(), token)
	nonces := map[string]bool{}
	for range 2 {
		resp, text := c.get(t, "/")
		policy := resp.Header.Get("Content-Security-Policy")
		require.Contains(t, policy, "default-src 'none'")
		require.NotContains(t, policy, "unsafe")
		_, nonce, _ := strings.Cut(policy, "script-src 'nonce-")
		nonce, _, _ = strings.Cut(nonce, "'")
		nonces[nonce] = true
		require.Contains(t, text, `<script nonce="`+nonce+`">`)
		require.Contains(t, text, `<style nonce="`+nonce+`">`)
		require.NotContains(t, text, noncePlace)
		for _, foreign := range []string{"https://", "src=", "@import", "innerHTML", "eval("} {
			require.NotContains(t, text, foreign)
		}
		require.Equal(t, 1, strings.Count(text, "http://"), "a name space, which nobody asks for")
		require.Equal(t, "DENY", resp.Header.Get("X-Frame-Options"))
		require.Equal(t, "no-store", resp.Header.Get("Cache-Control"))
	}
	require.Len(t, nonces, 2)
	resp, _ := c.get(t, "/favicon.ico")
	require.Equal(t, 404, resp.StatusCode)
}

// On loopback a name that somebody else has given to this machine opens nothing.
func TestOtherHostsAreRefused(t *testing.T) {
	_, c := serve(t, memstore.New(), token)
	for host, want := range map[string]int{"evil.example": 403, "evil.example:80": 403, "localhost:1": 400, "127.0.0.1": 400, "[::1]:5": 400} {
		code, _ := c.post(t, "/api/login", `{}`, "Host", host)
		require.Equal(t, want, code, host)
	}
}

func TestWithoutATokenItOnlyShows(t *testing.T) {
	store := memstore.New()
	join(t, store, "p", "a", "1 0 600 60000000 0 0", driver.Whole)
	_, c := serve(t, store, "")
	follow(t, c, "/api/pools", func(g poll) bool { return len(g.Pools) == 1 })
	for _, path := range []string{
		"/api/login", "/api/pause", "/api/resume", "/api/limit", "/api/limit/clear", "/api/debt/forgive", "/api/quota", "/api/quota/clear", "/api/logout",
	} {
		code, text := c.post(t, path, `{"token":"","by":"ann"}`)
		require.Equal(t, 403, code)
		require.Contains(t, text, "only shows", path)
	}
}

// With a token nothing is shown and nothing is changed without a session.
func TestNothingWithoutASession(t *testing.T) {
	store := memstore.New()
	join(t, store, "p", "a", "1 0 600 60000000 0 0", driver.Whole)
	k, c := serve(t, store, token)
	for _, path := range []string{"/api/pools", "/api/pool?name=p"} {
		resp, text := c.get(t, path)
		require.Equal(t, 401, resp.StatusCode)
		require.Contains(t, text, "log in first")
	}
	_, text := c.get(t, "/api/session")
	require.JSONEq(t, `{"store":"","login":true,"in":false,"by":""}`, text)
	for _, path := range []string{
		"/api/pause", "/api/resume", "/api/limit", "/api/limit/clear", "/api/debt/forgive", "/api/quota", "/api/quota/clear", "/api/logout",
	} {
		code, _ := c.post(t, path, `{"pool":"p","reason":"r","max":1}`)
		require.Equal(t, 401, code, path)
	}

	c.login(t)
	_, text = c.get(t, "/api/session")
	require.JSONEq(t, `{"store":"redis://h","login":true,"in":true,"by":"ann"}`, text, "the word is told once")
	for _, wrong := range []struct {
		code    int
		headers []string
	}{
		{401, []string{wordHeader, ""}},
		{401, []string{wordHeader, c.word + "x"}},
		{403, []string{"Origin", "https://evil.example"}},
		{403, []string{"Origin", "null"}},
		{403, []string{"Sec-Fetch-Site", "cross-site"}},
		{403, []string{"Sec-Fetch-Site", "same-site"}},
	} {
		code, _ := c.post(t, "/api/pause", `{"pool":"p","reason":"r"}`, wrong.headers...)
		require.Equal(t, wrong.code, code, wrong.headers)
		for _, path := range []string{"/api/pools", "/api/pool?name=p"} {
			resp, _ := c.get(t, path, wrong.headers...)
			require.Equal(t, wrong.code, resp.StatusCode, wrong.headers)
		}
	}
	code, _ := c.post(t, "/api/pause", `{"pool":"p","reason":"r"}`, "Content-Type", "text/plain")
	require.Equal(t, 415, code)
	pauses, err := protocol.LoadPauses(t.Context(), store, "p")
	require.NoError(t, err)
	require.Empty(t, pauses)

	// A session ends by itself, and by logging out.
	stranger := newClient(t, c.url)
	stranger.login(t)
	code, _ = stranger.post(t, "/api/logout", `{}`)
	require.Equal(t, 200, code)
	code, _ = stranger.post(t, "/api/pause", `{"pool":"p","reason":"r"}`)
	require.Equal(t, 401, code)
	k.sessions.now = func() time.Time { return time.Now().Add(sessionFor) }
	code, _ = c.post(t, "/api/pause", `{"pool":"p","reason":"r"}`)
	require.Equal(t, 401, code)
}

func TestLoginIsRefused(t *testing.T) {
	_, c := serve(t, memstore.New(), token)
	for _, bad := range []struct {
		body string
		code int
	}{
		{`{"token":"` + token + `"}`, 400},
		{`{"token":"` + token + `","by":"a\nb"}`, 400},
		{`{"token":"` + token + `","by":"a","more":1}`, 400},
		{`{`, 400},
		{`{"token":"` + strings.Repeat("x", maxBody) + `"}`, 413},
	} {
		code, text := c.post(t, "/api/login", bad.body)
		require.Equal(t, bad.code, code, bad.body)
		require.NotContains(t, text, token)
	}
}

// Of sessions there are so many at most.
func TestSessionsAreBounded(t *testing.T) {
	k, c := serve(t, memstore.New(), token)
	for range mostSessions + 5 {
		c.login(t)
	}
	require.LessOrEqual(t, len(k.sessions.open), mostSessions)
}

func TestChanges(t *testing.T) {
	store := memstore.New()
	m := join(t, store, "p", "a", "1 1 600 60000000 0 0", driver.Whole)
	join(t, store, "gone", "a", "1 0 600 60000000 0 0", driver.Whole).leave(t)
	_, c := serve(t, store, token)
	c.login(t)
	for _, step := range []struct {
		path, body string
		code       int
		want       string
	}{
		{"/api/pause", `{"pool":"p","seconds":600}`, 400, "a reason is missing"},
		{"/api/pause", `{"pool":"p","seconds":600,"reason":" "}`, 400, "a reason is missing"},
		{"/api/pause", `{"pool":"p","seconds":-5,"reason":"r"}`, 422, "end of the pause"},
		{"/api/pause", `{"pool":"p","seconds":1e300,"reason":"r"}`, 422, "end of the pause"},
		{"/api/pause", `{"pool":"none","reason":"r"}`, 404, "no record"},
		{"/api/pause", `{"pool":"p","seconds":600,"reason":"night","tag":"gpt"}`, 200, ""},
		{"/api/debt/forgive", `{"pool":"p"}`, 400, "a reason is missing"},
		{"/api/debt/forgive", `{"pool":"none","reason":"r"}`, 404, "no record"},
		{"/api/debt/forgive", `{"pool":"gone","reason":"r"}`, 422, "nobody is in"},
		{"/api/debt/forgive", `{"pool":"p","reason":"a wrong number"}`, 200, ""},
		{"/api/limit", `{"pool":"p","max":5,"perSeconds":1}`, 400, "a reason is missing"},
		{"/api/limit", `{"pool":"p","max":0,"reason":"r"}`, 422, "Max is below 1"},
		{"/api/limit", `{"pool":"p","max":601,"reason":"r"}`, 422, "at most the hard limit 600 per 1m"},
		{"/api/limit", `{"pool":"gone","max":6,"reason":"r"}`, 422, "nobody is in"},
		{"/api/limit", `{"pool":"none","max":6,"reason":"r"}`, 404, "no record"},
		{"/api/limit", `{"pool":"p","max":300,"perSeconds":60,"seconds":7200,"reason":"a sale"}`, 200, ""},
	} {
		code, text := c.post(t, step.path, step.body)
		require.Equal(t, step.code, code, "%s %s: %s", step.path, step.body, text)
		require.Contains(t, text, step.want)
	}
	m.sync(t)
	o, err := protocol.LoadOverview(t.Context(), store, "p")
	require.NoError(t, err)
	require.Len(t, o.Pauses, 1)
	require.Equal(t, "gpt ann night", fmt.Sprint(o.Pauses[0].Tag, " ", o.Pauses[0].By, " ", o.Pauses[0].Reason))
	require.WithinDuration(t, time.Now().Add(10*time.Minute), o.Pauses[0].Until, time.Minute)
	require.Equal(t, "300 1m0s ann a sale", fmt.Sprint(o.Override.Max, " ", o.Override.Per, " ", o.Override.By, " ", o.Override.Reason))
	require.WithinDuration(t, time.Now().Add(2*time.Hour), o.Override.Until, time.Minute)

	for _, step := range [][2]string{{"/api/resume", `{"pool":"p","tag":"gpt"}`}, {"/api/limit/clear", `{"pool":"p"}`}} {
		code, text := c.post(t, step[0], step[1])
		require.Equal(t, 200, code, text)
	}
	o, err = protocol.LoadOverview(t.Context(), store, "p")
	require.NoError(t, err)
	require.Empty(t, o.Pauses)
	require.Zero(t, o.Override)
}

func TestServe(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	at, ended := make(chan net.Addr, 1), make(chan error, 1)
	go func() {
		ended <- Serve(ctx, Config{Store: memstore.New(), Listen: "127.0.0.1:0", Logger: quiet}, func(a net.Addr) { at <- a })
	}()
	addr := (<-at).String()
	c := newClient(t, "http://"+addr)
	resp, err := c.Get(c.url + "/api/pools") // a stream that is open does not hold it up
	require.NoError(t, err)
	stop()
	require.NoError(t, <-ended)
	_, _ = io.Copy(io.Discard, resp.Body)
	require.NoError(t, resp.Body.Close())
	_, err = c.Get(c.url)
	require.Error(t, err)

	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	err = Serve(t.Context(), Config{Store: memstore.New(), Listen: taken.Addr().String(), Logger: quiet}, func(net.Addr) {})
	require.ErrorContains(t, err, "address already in use")
}

// Text has a contrast of 4.5 to what it stands on, and what is drawn one of 3, as WCAG AA has it.
func TestContrast(t *testing.T) {
	page, err := os.ReadFile("console.html")
	require.NoError(t, err)
	for name, rule := range map[string]string{"light": `:root \{`, "dark": `:root\[data-theme="dark"\] \{`} {
		_, rest, _ := strings.Cut(string(page), strings.ReplaceAll(rule, `\`, ""))
		block, _, _ := strings.Cut(rest, "}")
		colours := map[string][4]float64{}
		for _, m := range regexp.MustCompile(`--([a-z0-9-]+): #([0-9a-f]{6})([0-9a-f]{2})?;`).FindAllStringSubmatch(block, -1) {
			n, err := strconv.ParseUint(m[2], 16, 32)
			require.NoError(t, err)
			alpha := uint64(255)
			if m[3] != "" {
				alpha, err = strconv.ParseUint(m[3], 16, 8)
				require.NoError(t, err)
			}
			colours[m[1]] = [4]float64{float64(n >> 16), float64(n >> 8 & 255), float64(n & 255), float64(alpha) / 255}
		}
		requireContrast := func(least float64, of string, opacity float64, on ...string) {
			under := colours[on[0]]
			for _, more := range on[1:] {
				under = mixed(colours[more], under, colours[more][3])
			}
			require.GreaterOrEqual(t, contrast(mixed(colours[of], under, opacity), under), least, "%s: %s on %s", name, of, on)
		}
		for _, text := range []string{"ink", "soft", "waiting", "bad", "warn", "good", "focus"} {
			requireContrast(4.5, text, 1, "page")
			requireContrast(4.5, text, 1, "card")
		}
		for _, text := range []string{"ink", "bad", "warn"} {
			requireContrast(4.5, text, 1, "page", "warn-fill")
			requireContrast(4.5, text, 1, "page", "bad-fill")
		}
		requireContrast(4.5, "card", 1, "focus") // the main button
		for _, graphic := range []string{"granted", "waiting", "edge", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8"} {
			requireContrast(3, graphic, 1, "card")
			if graphic != "edge" {
				requireContrast(3, graphic, 1, "grid") // a bar
				requireContrast(3, graphic, .9, "card")
			}
		}
	}
}

// mixed returns a colour with an opacity over another.
func mixed(over, under [4]float64, opacity float64) (c [4]float64) {
	for i := range 3 {
		c[i] = over[i]*opacity + under[i]*(1-opacity)
	}
	return c
}

// contrast is that of WCAG 2.
func contrast(a, b [4]float64) float64 {
	light := func(c [4]float64) (sum float64) {
		for i, part := range []float64{.2126, .7152, .0722} {
			v := c[i] / 255
			if v <= .03928 {
				v /= 12.92
			} else {
				v = math.Pow((v+.055)/1.055, 2.4)
			}
			sum += part * v
		}
		return sum
	}
	return (max(light(a), light(b)) + .05) / (min(light(a), light(b)) + .05)
}
