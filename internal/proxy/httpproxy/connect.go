package httpproxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/proxy"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// dialTimeout bounds connecting a tunnel to its host.
const dialTimeout = 10 * time.Second

// connect opens a tunnel, which draws once.
func (p *handler) connect(w http.ResponseWriter, r *http.Request) {
	tag, err := p.tagOf(&message{req: r, host: r.URL.Host, whole: true})
	if err != nil {
		p.failed(w, r, err)
		return
	}
	permit, err := p.drawFor(r.Context(), tag)
	if err != nil {
		p.failed(w, r, err)
		return
	}
	defer func() { permit.Settle(permit.N()) }()
	out, err := p.dial(r.Context(), r.URL.Host)
	if err != nil {
		permit.Cancel() // no call was made
		p.failed(w, r, err)
		return
	}
	defer out.Close()
	in, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		p.failed(w, r, proxy.NewError(http.StatusHTTPVersionNotSupported, proxy.BadRequest, "CONNECT needs HTTP/1.1"))
		return
	}
	defer in.Close()
	_ = in.SetDeadline(time.Time{}) // remove the server's own; the tunnel has another
	if _, err := io.WriteString(in, "HTTP/1.1 200 Connection Established\r\n\r\n"); err != nil {
		return
	}
	p.open.Add(1)
	defer p.open.Done()
	stop := context.AfterFunc(p.ended, func() { _, _ = in.Close(), out.Close() })
	defer stop()
	first := make([]byte, buffered.Reader.Buffered())
	_, _ = io.ReadFull(buffered, first) // it is buffered
	if _, err := out.Write(first); err != nil {
		return
	}
	exchange(in, out, p.IdleTimeout)
}

// drawFor draws one token for a tag.
func (p *handler) drawFor(ctx context.Context, tag string) (throttle.Permit, error) {
	l := p.limiter
	if throttle.Unlimited(l) {
		return throttle.Permit{}, nil
	}
	if t, ok := l.(throttle.Tagger); ok && tag != "" {
		l = t.ForTag(tag)
	}
	return l.Acquire(ctx, 1)
}

// exchange copies in both directions until both have ended, or both sides were silent for too long.
func exchange(a, b net.Conn, idle time.Duration) {
	timer := time.AfterFunc(idle, func() { _, _ = a.Close(), b.Close() })
	defer timer.Stop()
	var both sync.WaitGroup
	one := func(to, from net.Conn) {
		_, err := io.Copy(&livelyWriter{to, timer, idle}, from)
		if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
			_ = half.CloseWrite() // the other direction may continue
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

// A livelyWriter postpones the idle timeout of a tunnel in use.
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
