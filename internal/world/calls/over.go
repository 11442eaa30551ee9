package calls

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Commands are those of a package, by their names, for one scenario. Each returns its result.
type Commands map[string]func(o *Order) string

// Service returns the transport to the service.
func (o *Order) Service() http.RoundTripper { return &o.service }

// Limiter returns the limiter that limit=NAME names, or the newest; nil for none.
func (o *Order) Limiter() throttle.Limiter {
	return o.limiter(cmp.Or(o.Value("limit"), o.limit, "none"))
}

// Know makes a limiter known by a name. The scenario closes it in the end.
func (o *Order) Know(name string, l throttle.Limiter) { o.add(name, l) }

// Named returns the limiter of a name; nil if there is none.
func (o *Order) Named(name string) throttle.Limiter { return o.limits[name] }

// Logger returns the log that questions look at.
func (o *Order) Logger() *slog.Logger { return slog.New(&o.journal) }

// Client has the calls after it go through a transport, or, if the next word is a NAME, those with client=NAME.
func (o *Order) Client(through http.RoundTripper) { o.clients[o.Word("")] = through }

// Work calls do for its result, in the background with as=P. Its context has the call's deadline, and ends with cancel P.
func (o *Order) Work(do func(ctx context.Context) (result string)) string {
	_, background := o.Set["as"]
	c, ctx := o.task()
	go func() {
		defer close(c.done)
		c.got = do(ctx)
		c.took = time.Since(c.began)
	}()
	if background {
		return ""
	}
	<-c.done
	return o.ended(c)
}

// Serve returns a transport to a server, over connections in memory, and closes both in the end.
func (o *Order) Serve(s *http.Server) *http.Transport {
	l := &listening{conns: make(chan net.Conn), closed: make(chan struct{})}
	s.ErrorLog = slog.NewLogLogger(&o.journal, slog.LevelWarn)
	go func() { _ = s.Serve(l) }()
	tr := &http.Transport{DialContext: l.dial, DisableCompression: true}
	o.T.Cleanup(func() {
		tr.CloseIdleConnections()
		_ = s.Close()
	})
	return tr
}

// A listening listener has connections in memory.
type listening struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *listening) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.conns <- far:
		return near, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (l *listening) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, errors.New("closed")
	}
}

// Close implements net.Listener.
func (l *listening) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *listening) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }
