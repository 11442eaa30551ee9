package httpproxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
