package listen

import (
	"container/list"
	"context"
	"net"
	"sync"
	"time"

	"golang.org/x/net/netutil"
)

const (
	// strangerTime bounds a connection whose caller is not authorised yet.
	strangerTime = 10 * time.Second
	// strangers bounds these connections at an address, besides those of callers.
	strangers = 512
	// patience is how long one of them keeps its place while others wait for it.
	patience = time.Second
)

// A lobby is a listener with separate places for strangers: connections whose callers are not authorised yet. They end after a while. When
// all places are taken, the next one replaces the oldest, so that callers get in.
type lobby struct {
	net.Listener

	inner  *acceptor
	most   int
	left   chan struct{} // receives when a place is free
	closed chan struct{}
	once   sync.Once

	mu      sync.Mutex
	waiting list.List // of *conn, the oldest first
}

// newLobby returns a lobby with places for so many callers and strangers.
func newLobby(l net.Listener, callers, most int) *lobby {
	inner := &acceptor{Listener: l}
	return &lobby{
		Listener: netutil.LimitListener(inner, callers+most), inner: inner,
		most: most, left: make(chan struct{}, 1), closed: make(chan struct{}),
	}
}

// An acceptor remembers its last accepted connection: netutil's wrapper cannot close one half of it.
type acceptor struct {
	net.Listener

	last net.Conn
}

// Accept implements net.Listener.
func (a *acceptor) Accept() (c net.Conn, err error) {
	c, err = a.Listener.Accept()
	a.last = c
	return c, err
}

// Accept implements net.Listener. It is called from one goroutine.
func (l *lobby) Accept() (net.Conn, error) {
	l.makeRoom()
	limited, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: limited, inner: l.inner.last, lobby: l, since: time.Now()}
	l.mu.Lock()
	defer l.mu.Unlock()
	c.place = l.waiting.PushBack(c)
	c.end = time.AfterFunc(strangerTime, func() { _ = c.Close() })
	return c, nil
}

// Close implements net.Listener.
func (l *lobby) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// makeRoom waits until there is a place for a stranger.
func (l *lobby) makeRoom() {
	for {
		oldest, age := l.oldest()
		switch {
		case oldest == nil:
			return
		case age >= patience:
			_ = oldest.Close()
			continue
		}
		wait := time.NewTimer(patience - age)
		select {
		case <-l.left:
		case <-wait.C:
		case <-l.closed:
			wait.Stop()
			return
		}
		wait.Stop()
	}
}

// oldest returns the oldest stranger; nil if there is a free place.
func (l *lobby) oldest() (c *conn, age time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting.Len() < l.most {
		return nil, 0
	}
	c, _ = l.waiting.Front().Value.(*conn)
	return c, time.Since(c.since)
}

// A conn is a connection that came through a lobby.
type conn struct {
	net.Conn

	inner net.Conn // the same, as it was accepted
	lobby *lobby
	since time.Time
	place *list.Element // in the lobby; nil: it has left. Guarded by the lobby's lock
	end   *time.Timer   // while it is there
}

// leave frees its place in the lobby.
func (c *conn) leave() {
	c.lobby.mu.Lock()
	defer c.lobby.mu.Unlock()
	if c.place == nil {
		return
	}
	c.lobby.waiting.Remove(c.place)
	c.place = nil
	c.end.Stop()
	select {
	case c.lobby.left <- struct{}{}:
	default:
	}
}

// CloseWrite closes the sending direction, if the connection supports that. Otherwise it closes the connection.
func (c *conn) CloseWrite() error {
	if half, ok := c.inner.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.leave()
	return c.Conn.Close()
}

// connKey is the key of a request's connection in its context.
type connKey struct{}

// connContext is for http.Server.ConnContext.
func connContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// Admit reports the sender of ctx's request as authorised: its connection may last. It ignores other contexts.
func Admit(ctx context.Context) {
	c, _ := ctx.Value(connKey{}).(net.Conn)
	AdmitConn(c)
}

// AdmitConn is Admit for a connection that a Set has accepted.
func AdmitConn(c net.Conn) {
	if own, ok := c.(*conn); ok {
		own.leave()
	}
}
