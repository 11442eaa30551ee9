package httpproxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/apierror"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// dialTimeout is how long a tunnel may take to its host.
const dialTimeout = 10 * time.Second

// connect makes a tunnel, which draws once.
func (p *proxy) connect(w http.ResponseWriter, r *http.Request) {
	tag := ""
	if p.tag.of != nil {
		var err error
		if tag, err = p.tagOf(&message{req: r, host: r.URL.Host, whole: true}); err != nil {
			p.failed(w, r, err)
			return
		}
	}
	permit, err := p.drawFor(r.Context(), tag)
	if err != nil {
		p.failed(w, r, err)
		return
	}
	defer func() { permit.Settle(permit.N()) }()
	out, err := p.dial(r.Context(), r.URL.Host)
	if err != nil {
		permit.Cancel() // nobody was called
		p.failed(w, r, err)
		return
	}
	defer out.Close()
	in, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		p.failed(w, r, apierror.New(http.StatusHTTPVersionNotSupported, apierror.BadRequest, "CONNECT needs HTTP/1.1"))
		return
	}
	defer in.Close()
	_ = in.SetDeadline(time.Time{}) // the server's own; the tunnel has another
	if _, err := io.WriteString(in, "HTTP/1.1 200 Connection Established\r\n\r\n"); err != nil {
		return
	}
	p.open.Add(1)
	defer p.open.Done()
	stop := context.AfterFunc(p.ended, func() { _, _ = in.Close(), out.Close() })
	defer stop()
	first := make([]byte, buffered.Reader.Buffered())
	_, _ = io.ReadFull(buffered, first) // it is there
	if _, err := out.Write(first); err != nil {
		return
	}
	exchange(in, out, p.IdleTimeout)
}

// drawFor draws one token for a tag.
func (p *proxy) drawFor(ctx context.Context, tag string) (throttle.Permit, error) {
	l := p.limiter
	if throttle.Unlimited(l) {
		return throttle.Permit{}, nil
	}
	if t, ok := l.(throttle.Tagger); ok && tag != "" {
		l = t.ForTag(tag)
	}
	return l.Acquire(ctx, 1)
}

// exchange copies both ways until both have ended, or neither side has said anything for too long.
func exchange(a, b net.Conn, idle time.Duration) {
	timer := time.AfterFunc(idle, func() { _, _ = a.Close(), b.Close() })
	defer timer.Stop()
	var both sync.WaitGroup
	one := func(to, from net.Conn) {
		_, err := io.Copy(&livelyWriter{to, timer, idle}, from)
		if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
			_ = half.CloseWrite() // the other direction may go on
			return
		}
		if !errors.Is(err, net.ErrClosed) {
			_, _ = a.Close(), b.Close()
		}
	}
	both.Go(func() { one(a, b) })
	both.Go(func() { one(b, a) })
	both.Wait()
}

// A livelyWriter puts off the end of a tunnel that is used.
type livelyWriter struct {
	io.Writer

	timer *time.Timer
	idle  time.Duration
}

// Write implements io.Writer.
func (w *livelyWriter) Write(p []byte) (int, error) {
	w.timer.Reset(w.idle)
	return w.Writer.Write(p)
}
