package listen

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A pipes listener hands out one end of connections in memory.
type pipes struct {
	queue chan net.Conn
	end   chan struct{}
	once  sync.Once
}

func newPipes() *pipes { return &pipes{queue: make(chan net.Conn, 100), end: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.queue:
		return c, nil
	case <-p.end:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.end) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }
func (p *pipes) dial() net.Conn { a, b := net.Pipe(); p.queue <- b; return a }

// serveLobby runs a server at p with so many places, whose token is "right", until stop is called.
func serveLobby(callers, strangers int, p *pipes) (stop func()) {
	token := NewToken("right")
	server := &http.Server{ConnContext: connContext, ReadHeaderTimeout: time.Hour, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !token.Lets(r.Context(), r.Header.Values("Authorization")) {
			w.Header().Set("Connection", "close")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
	})}
	l := newLobby(p, callers, strangers)
	ended := make(chan struct{})
	go func() { _ = server.Serve(l); close(ended) }()
	return func() { _ = server.Close(); <-ended }
}

// say sends a text over a connection, and returns the first line of the answer; empty when it has ended.
func say(t *testing.T, c net.Conn, text string) string {
	t.Helper()
	go func() { _, _ = io.WriteString(c, text) }()
	buf := make([]byte, 4096)
	n, err := c.Read(buf)
	if err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	line, _, _ := strings.Cut(string(buf[:n]), "\r\n")
	return line
}

const (
	rightCall = "GET / HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer right\r\n\r\n"
	wrongCall = "POST / HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer wrong\r\nContent-Length: 100000\r\n\r\n"
	answered  = "HTTP/1.1 200 OK"
	refused   = "HTTP/1.1 401 Unauthorized"
)

// However many connections strangers open and hold, and whatever they send, a caller gets in, and keeps its connection.
func TestStrangersDoNotKeepCallersOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		defer serveLobby(2, 3, p)()
		early := p.dial()
		defer early.Close()
		require.Equal(t, answered, say(t, early, rightCall))
		var held []net.Conn
		for range 20 {
			held = append(held, p.dial())
		}
		began := time.Now()
		late := p.dial()
		defer late.Close()
		require.Equal(t, answered, say(t, late, rightCall))
		require.Less(t, time.Since(began), 20*patience/3+patience, "virtual time")
		time.Sleep(time.Hour)
		require.Equal(t, answered, say(t, early, rightCall), "a caller's connection lasts")
		require.Equal(t, answered, say(t, late, rightCall))
		for _, c := range held {
			require.Empty(t, say(t, c, rightCall), "a stranger's does not")
			_ = c.Close()
		}
	})
}

// A stranger's connection ends after a while, though bytes of its head or of its body come all the time.
func TestAStrangersConnectionEnds(t *testing.T) {
	for name, begin := range map[string]string{"silent": "", "a slow head": "GET / HTTP/1.1\r\nHost: h\r\nX-A: ", "a slow body": wrongCall} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPipes()
				defer serveLobby(2, 3, p)()
				c := p.dial()
				var sending sync.WaitGroup
				defer sending.Wait()
				defer c.Close()
				sending.Go(func() {
					_, err := io.WriteString(c, begin)
					for err == nil && begin != "" {
						time.Sleep(time.Second)
						_, err = io.WriteString(c, "a")
					}
				})
				began := time.Now()
				_, err := io.Copy(io.Discard, c)
				require.NoError(t, err)
				require.LessOrEqual(t, time.Since(began), strangerTime)
			})
		})
	}
}

// Many callers that come at once all get in.
func TestCallersThatComeAtOnceGetIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		defer serveLobby(100, 2, p)()
		var all sync.WaitGroup
		got := make(chan string, 50)
		for range 50 {
			c := p.dial()
			defer c.Close()
			all.Go(func() { got <- say(t, c, rightCall) })
		}
		all.Wait()
		close(got)
		for line := range got {
			require.Equal(t, answered, line)
		}
	})
}

func TestALobbyThatIsFullCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		l := newLobby(p, 1000, 1)
		c := p.dial()
		defer c.Close()
		in, err := l.Accept()
		require.NoError(t, err)
		ended := make(chan error)
		go func() { _, err := l.Accept(); ended <- err }()
		synctest.Wait()
		require.NoError(t, l.Close())
		require.ErrorIs(t, <-ended, net.ErrClosed)
		require.NoError(t, in.Close())
		require.NoError(t, in.Close(), "it may be closed again")
	})
}

func TestARefusedCallEndsItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		defer serveLobby(2, 3, p)()
		c := p.dial()
		defer c.Close()
		require.Equal(t, refused, say(t, c, wrongCall))
		_, err := io.Copy(io.Discard, c)
		require.NoError(t, err)
	})
}
