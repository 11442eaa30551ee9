package main

import (
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
)

// A street forwards connections to a service. Those that are open when it is blocked stay open, and nothing comes through any
// more, in silence, as when a firewall or a NAT has forgotten them; later ones are forwarded.
type street struct {
	net.Listener

	target string
	mu     sync.Mutex
	open   []*lane
}

// A lane is one connection through a street.
type lane struct {
	in, out net.Conn
	blocked chan struct{}
}

func startStreet(t *testing.T, target string) *street {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &street{Listener: l, target: target}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", target)
			if err != nil {
				_ = in.Close()
				continue
			}
			way := &lane{in: in, out: out, blocked: make(chan struct{})}
			s.mu.Lock()
			s.open = append(s.open, way)
			s.mu.Unlock()
			running.Go(func() { way.forward(out, in) })
			running.Go(func() { way.forward(in, out) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		s.mu.Lock()
		for _, way := range s.open {
			_ = way.in.Close()
			_ = way.out.Close()
		}
		s.mu.Unlock()
		running.Wait()
	})
	return s
}

// forward copies until the lane is blocked; what comes then is read and lost.
func (l *lane) forward(to, from net.Conn) {
	buf := make([]byte, 1<<15)
	for {
		n, err := from.Read(buf)
		select {
		case <-l.blocked:
		default:
			_, _ = to.Write(buf[:n])
			if err != nil {
				_ = to.Close()
			}
		}
		if err != nil {
			return
		}
	}
}

// block blocks the connections that are open, and returns how many.
func (s *street) block() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, way := range s.open {
		select {
		case <-way.blocked:
		default:
			close(way.blocked)
			n++
		}
	}
	return n
}

// A connection that dies in silence costs what is under way on it and nothing that comes later: it is found out by a
// ping over HTTP/2, and by the first timeout over HTTP/1.1, which gives up the idle connections beside it, too.
func TestAConnectionThatDiesInSilence(t *testing.T) {
	for _, version := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(version, func(t *testing.T) {
			ca := newAuthority(t)
			service := newService(nil)
			protocols := make(chan string, 1000)
			inner := service.Config.Handler
			service.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				protocols <- r.Proto
				inner.ServeHTTP(w, r)
			})
			service.TLS = ca.server(t)
			service.EnableHTTP2 = version == "HTTP/2.0"
			service.StartTLS()
			t.Cleanup(service.Close)
			way := startStreet(t, service.Listener.Addr().String())

			const concurrency = 8
			// One connection and one attempt for each request, whose timeout ends it: the row of losses is the measure.
			r := start(t, env{
				"URL": "https://" + way.Addr().String(), "CA_FILE": ca.file, "CONCURRENCY": strconv.Itoa(concurrency), "TIMEOUT": "1s", "HEADER_TIMEOUT": "1s",
			})
			require.Equal(t, all(4*concurrency, dataplane.SinkSuccess), statuses(r.do(numbered(4*concurrency)...)))
			require.Equal(t, version, <-protocols)
			require.Positive(t, way.block())
			lost := 0
			for _, result := range r.do(numbered(50 * concurrency)...) {
				if result.Status != dataplane.SinkSuccess {
					lost++
					require.True(t, strings.HasPrefix(result.Error, "no answer in time") || result.Error == "the connection broke off", result.Error)
				}
			}
			require.LessOrEqual(t, lost, concurrency, "no more than were under way")
			require.Zero(t, lostOf(r.do(numbered(concurrency)...)))

			// One message at a time: the first is lost, and no other.
			way.block()
			lost = 0
			for range 5 {
				lost += lostOf(r.do(numbered(1)...))
			}
			require.LessOrEqual(t, lost, 1)
		})
	}
}

func lostOf(results []dataplane.SinkResult) (n int) {
	for _, r := range results {
		if r.Status != dataplane.SinkSuccess {
			n++
		}
	}
	return n
}

// With another attempt nothing is lost at all.
func TestAnotherAttemptOutlivesADeadConnection(t *testing.T) {
	ca := newAuthority(t)
	service := newService(func(w http.ResponseWriter, _ seen, _ int) { _, _ = io.WriteString(w, "ok") })
	service.TLS, service.EnableHTTP2 = ca.server(t), true
	service.StartTLS()
	t.Cleanup(service.Close)
	way := startStreet(t, service.Listener.Addr().String())
	r := start(t, env{
		"URL": "https://" + way.Addr().String(), "CA_FILE": ca.file, "CONCURRENCY": "8", "TIMEOUT": "2s", "MAX_ATTEMPTS": "2",
		"PING_AFTER": "100ms", "PING_TIMEOUT": "100ms",
	})
	require.Zero(t, lostOf(r.do(numbered(16)...)))
	way.block()
	require.Zero(t, lostOf(r.do(numbered(64)...)))
}
