package httpproxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// A middleman is a proxy to the outside, behind which every host is one service.
type middleman struct {
	*httptest.Server

	mu   sync.Mutex
	seen []string // method, target and credentials
}

func mediate(t *testing.T, to string) *middleman {
	t.Helper()
	m := &middleman{}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		m.seen = append(m.seen, r.Method+" "+r.RequestURI+" "+r.Header.Get("Proxy-Authorization"))
		m.mu.Unlock()
		if r.Method != http.MethodConnect {
			hello(w, testkit.Request{}, 0)
			return
		}
		out, err := net.Dial("tcp", to)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer out.Close()
		in, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer in.Close()
		_, _ = io.WriteString(in, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(out, rw) }()
		_, _ = io.Copy(in, out)
	}))
	t.Cleanup(m.Close)
	return m
}

func (m *middleman) requests() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.seen...)
}

func noProxies(t *testing.T) {
	t.Helper()
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"} {
		t.Setenv(name, "")
		t.Setenv(strings.ToLower(name), "")
	}
}

func TestEgress(t *testing.T) {
	noProxies(t)
	m := mediate(t, "")
	t.Setenv("HTTP_PROXY", strings.Replace(m.URL, "http://", "http://user:"+canary+"@", 1))
	t.Setenv("NO_PROXY", "inside.test")
	p := start(t, Config{Upstream: "http://service.test/v1", Limiter: throttletest.New(), EgressProxy: true})
	for _, target := range []string{"/a?b;c", "/a|b?%"} {
		res, body := raw(t, p, "GET "+target+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
		require.Equal(t, 200, res.StatusCode)
		require.Equal(t, "hello", body)
		all := m.requests()
		require.Contains(t, all[len(all)-1], "GET http://service.test/v1"+target+" Basic ")
	}
	p = start(t, Config{Upstream: "http://inside.test", Limiter: throttletest.New(), EgressProxy: true})
	raw(t, p, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	p = start(t, Config{Upstream: "http://service.test", Limiter: throttletest.New()})
	raw(t, p, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	require.Len(t, m.requests(), 2, "what NO_PROXY names goes there directly, and everything by default")
}

// A tunnel of the forward proxy goes through the egress proxy, too.
func TestEgressOfATunnel(t *testing.T) {
	noProxies(t)
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { hello(w, testkit.Request{}, 0) }))
	defer secure.Close()
	m := mediate(t, strings.TrimPrefix(secure.URL, "https://"))
	t.Setenv("https_proxy", strings.Replace(m.URL, "http://", "user:"+canary+"@", 1))
	p := start(t, Config{Forward: "service.test", AllowConnect: true, Limiter: throttletest.New(), EgressProxy: true})
	_, body := through(t, client(t, p), "https://service.test/")
	require.Equal(t, "hello", body)
	require.Len(t, m.requests(), 1)
	require.Contains(t, m.requests()[0], "CONNECT service.test:443 Basic ")
}

// Nobody calls the egress proxy itself, which would go anywhere for them, however its address is written.
func TestTheEgressProxyIsNotCalled(t *testing.T) {
	noProxies(t)
	m := mediate(t, "127.0.0.1:1")
	_, port, err := net.SplitHostPort(strings.TrimPrefix(m.URL, "http://"))
	require.NoError(t, err)
	for _, at := range []string{"127.0.0.1", "localhost", "Egress.Test."} {
		t.Setenv("HTTP_PROXY", "http://"+net.JoinHostPort(at, port))
		t.Setenv("NO_PROXY", "127.0.0.1")
		l := throttletest.New()
		p := start(t, Config{Forward: "*:*", AllowConnect: true, AllowAddresses: "loopback", Limiter: l, EgressProxy: true})
		own := map[string][]string{
			"127.0.0.1": {"127.0.0.1", "[::ffff:127.0.0.1]", "0x7f000001", "2130706433"},
			"localhost": {"localhost", "LOCALHOST", "localhost."}, "Egress.Test.": {"egress.test", "EGRESS.TEST", "egress.test."},
		}[at]
		for _, host := range own {
			target := host + ":" + port
			for _, head := range []string{"CONNECT " + target, "GET http://" + target + "/", "GET http://user@" + target + "/"} {
				res, body := raw(t, p, head+" HTTP/1.1\r\nHost: "+target+"\r\n\r\n")
				require.Equal(t, 403, res.StatusCode, "%s %s", head, body)
			}
		}
		require.Empty(t, l.Draws())
	}
	require.Empty(t, m.requests())
}

// Settings that would lead nowhere, or in a circle, end the start; no password is shown.
func TestEgressSettings(t *testing.T) {
	c := Config{Upstream: "http://h", EgressProxy: true, Limiter: throttletest.New()}
	c.Serving.Listen = "127.0.0.1:0"
	noProxies(t)
	require.ErrorContains(t, Run(t.Context(), c), "egressProxy is set, and the environment names no proxy, allowed: HTTPS_PROXY or HTTP_PROXY with its URL")
	for _, bad := range []string{"socks5://h:1", "http://u:" + canary + "@", "http://u:" + canary + "@h:port", "://", "ftp://h"} {
		t.Setenv("HTTPS_PROXY", bad)
		err := Run(t.Context(), c)
		require.ErrorContains(t, err, "HTTPS_PROXY is not as it should be (not shown)", bad)
		require.NotContains(t, err.Error(), canary)
	}
	own := []string{"127.0.0.1:7080", "[::1]:7081", "0.0.0.0:7082", "unix:/x", "10.0.0.1:7083"}
	for text, want := range map[string]bool{
		"http://127.0.0.1:7080": true, "localhost:7080": true, "http://localhost:7081": true, "http://127.0.0.1:7082": true, "http://10.0.0.1:7083": true,
		"http://127.0.0.1:7079": false, "http://proxy:7080": false, "http://10.0.0.2:7083": false, "http://127.0.0.1": false,
	} {
		u, ok := proxyURL(text)
		require.True(t, ok)
		require.Equal(t, want, isOwn(u, own), text)
	}
}

// What the egress proxy refuses is told without its words.
func TestEgressThatIsRefused(t *testing.T) {
	here, there := net.Pipe()
	go func() {
		_, _ = http.ReadRequest(bufio.NewReader(there))
		_, _ = io.WriteString(there, "HTTP/1.1 403 "+canary+"\r\nContent-Length: 0\r\n\r\n")
	}()
	_, err := throughProxy(here, &url.URL{Host: "p"}, "service.test:443")
	require.EqualError(t, err, "the egress proxy makes no tunnel: status 403")
}
