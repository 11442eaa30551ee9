package httpproxy

import (
	"errors"
	"io"
	"net/http"
	"time"
)

var (
	errSwitched = errors.New("httpproxy: the service has switched protocols, which was not asked for")
	errNoTunnel = errors.New("httpproxy: the service has switched protocols, and its connection cannot be had")
)

// watchTunnel watches a connection that became a websocket.
func (p *handler) watchTunnel(res *http.Response) error {
	if !isHandshake(res.Request) {
		return errSwitched
	}
	conn, ok := res.Body.(io.ReadWriteCloser)
	if !ok {
		return errNoTunnel
	}
	t := &tunnel{ReadWriteCloser: conn, idle: p.IdleTimeout, sent: sendingOf(res.Request.Context())}
	if t.sent != nil {
		t.sent.reopen() // an earlier attempt was settled
	}
	t.timer = time.AfterFunc(t.idle, func() { _ = conn.Close() })
	res.Body = t
	return nil
}

// A tunnel is the connection to a service, which ends when both sides were silent for too long.
type tunnel struct {
	io.ReadWriteCloser

	timer *time.Timer
	idle  time.Duration
	sent  *sending // nil: not counted
}

// Read implements io.Reader.
func (t *tunnel) Read(p []byte) (int, error) {
	n, err := t.ReadWriteCloser.Read(p)
	if n > 0 {
		t.timer.Reset(t.idle)
	}
	return n, err
}

// Write implements io.Writer.
func (t *tunnel) Write(p []byte) (int, error) {
	t.timer.Reset(t.idle)
	if t.sent != nil {
		if err := t.sent.pass(p); err != nil {
			return 0, err
		}
	}
	return t.ReadWriteCloser.Write(p)
}

// CloseWrite signals to the service that its client sends no more, while the other direction continues.
func (t *tunnel) CloseWrite() error {
	if half, ok := t.ReadWriteCloser.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return t.Close()
}

// Close implements io.Closer.
func (t *tunnel) Close() error {
	t.timer.Stop()
	return t.ReadWriteCloser.Close()
}
