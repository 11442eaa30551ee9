package httpproxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// What comes behind the host goes on byte for byte.
func TestTargetsAreNotAltered(t *testing.T) {
	u := serve(t, hello)
	p := start(t, Config{Upstream: u.URL + "/base/", Forward: strings.TrimPrefix(u.URL, "http://"), Limiter: throttletest.New()})
	for _, target := range []string{
		"/items?ids=1;2;3", "/items?a=%&b=%zz", "/x?z=1&a=2&z=3&", "/x?", "/x??", "/x?a=b?c", "/x?q=ü|\"<>", "/x?a=%2f%2F+%20", "/?;", "/",
		"/a%2Fb/c%20d", "/a|b", "/a%7Cb", "/ü", "/a;b=c", "/a//b", "//a", "/a/../b/./c", "/%61", "/a[1]", "/a\"b", "/a:b@c", "/a^b`c{d}", "/a#b?c#d",
	} {
		for _, method := range []string{"DELETE", "GET", "POST"} {
			raw(t, p, method+" "+target+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
			all := u.Requests()
			got := strings.TrimPrefix(all[len(all)-1].Path, u.URL) // some are sent as absolute URLs
			require.Equal(t, "/base"+target, got)
			require.Equal(t, method, all[len(all)-1].Method)

			raw(t, p, method+" "+u.URL+target+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
			all = u.Requests()
			require.Equal(t, target, strings.TrimPrefix(all[len(all)-1].Path, u.URL), "as a forward proxy")
		}
	}
}

// Headers go on as they came, but for those that are between two hops.
func TestHeadersAreNotAltered(t *testing.T) {
	u := serve(t, hello)
	for _, cost := range []string{"1", "bytes/10", "header X-Cost"} {
		p := start(t, Config{Upstream: u.URL, Limiter: throttletest.New(), Cost: cost})
		raw(t, p, "POST / HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 10.0.0.1, 10.0.0.2\r\nX-Forwarded-For: 10.0.0.3\r\nX-Forwarded-Host: a\r\n"+
			"X-Forwarded-Proto: https\r\nX-Forwarded-Port: 1\r\nForwarded: for=10.0.0.1;by=_x\r\nVia: 1.1 a\r\nAccept-Encoding: br, gzip;q=0.5\r\n"+
			"Cookie: a=b; c=d\r\nX-Empty:\r\nX-Two: 1\r\nX-Two: 2\r\nTE: trailers\r\nKeep-Alive: 5\r\nProxy-Connection: close\r\nX-Hop: 1\r\n"+
			"Connection: close, X-Hop\r\nContent-Length: 2\r\n\r\nhi")
		all := u.Requests()
		got := all[len(all)-1].Header
		require.Equal(t, http.Header{
			"X-Forwarded-For": {"10.0.0.1, 10.0.0.2", "10.0.0.3"}, "X-Forwarded-Host": {"a"}, "X-Forwarded-Proto": {"https"}, "X-Forwarded-Port": {"1"},
			"Forwarded": {"for=10.0.0.1;by=_x"}, "Via": {"1.1 a"}, "Accept-Encoding": {"br, gzip;q=0.5"}, "Cookie": {"a=b; c=d"}, "X-Empty": {""},
			"X-Two": {"1", "2"}, "Te": {"trailers"}, "Content-Length": {"2"},
		}, got)
	}
	p := start(t, Config{Upstream: u.URL, Limiter: throttletest.New()})
	raw(t, p, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 1\r\nForwarded: for=1\r\nConnection: close, Forwarded, x-forwarded-for\r\n\r\n")
	all := u.Requests()
	require.Empty(t, all[len(all)-1].Header, "the client has named them as between two hops")
}

// Trailers go on, announced or not, with bodies that are kept and others.
func TestTrailersAreNotAltered(t *testing.T) {
	trailers := make(chan http.Header, 1)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		trailers <- r.Trailer
		w.Header().Set("Trailer", "X-Told")
		w.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(w, "hello")
		w.Header().Set("X-Told", "1")
		w.Header().Set(http.TrailerPrefix+"X-Untold", "2")
	})
	u := httptest.NewServer(h)
	defer u.Close()
	for _, size := range []int{0, 10, 5000} {
		for _, announced := range []string{"", "Trailer: X-Sum, X-None\r\n"} {
			for _, cost := range []string{"1", "bytes/10", "llm"} {
				p := start(t, Config{Upstream: u.URL, Limiter: throttletest.New(), BodyBuffer: 100, Cost: cost})
				body := ""
				if size > 0 {
					body = fmt.Sprintf("%x\r\n%s\r\n", size, strings.Repeat("x", size))
				}
				res, _ := raw(t, p, "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"+announced+"\r\n"+body+"0\r\nX-Sum: 42\r\n\r\n")
				require.Equal(t, 200, res.StatusCode)
				require.Equal(t, "1", res.Trailer.Get("X-Told"))
				require.Equal(t, "2", res.Trailer.Get("X-Untold"))
				require.Equal(t, "42", (<-trailers).Get("X-Sum"), "%d bytes, %q, %s", size, announced, cost)
			}
		}
	}
}

// An answer gets no header that its service has not sent, but for the date.
func TestAnswersPassAsTheyAre(t *testing.T) {
	for _, head := range []string{
		"Content-Length: 6\r\n\r\n<html>", "Transfer-Encoding: chunked\r\n\r\n6\r\n<html>\r\n0\r\n\r\n",
		"X-A: 1\r\nx-a: 2\r\nContent-Length: 0\r\n\r\n",
	} {
		lis, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		go func() {
			conn, err := lis.Accept()
			if err != nil {
				return
			}
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n"+head)
		}()
		p := start(t, Config{Upstream: "http://" + lis.Addr().String(), Limiter: throttletest.New()})
		res, body := raw(t, p, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
		require.Equal(t, 200, res.StatusCode)
		res.Header.Del("Date")
		res.Header.Del("Content-Length")
		if strings.Contains(head, "X-A") {
			require.Equal(t, http.Header{"X-A": {"1", "2"}}, res.Header)
		} else {
			require.Equal(t, "<html>", body)
			require.Empty(t, res.Header)
		}
		require.NoError(t, lis.Close())
	}
}
