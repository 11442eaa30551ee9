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
	// strangerTime is how long a connection may last over which nobody has shown that they may call.
	strangerTime = 10 * time.Second
	// strangers is how many of them there may be at an address, beside those of callers.
	strangers = 512
	// patience is how long one of them keeps its place while others wait for it.
	patience = time.Second
)

// A lobby is a listener with places of their own for strangers: connections over which nobody has shown yet that they may call.
// They end after a while. When all places are taken, the oldest is given to the next one, so that callers get in.
type lobby struct {
	net.Listener

	inner  *acceptor
	most   int
	left   chan struct{} // told when a place is free
	closed chan struct{}
	once   sync.Once

	mu      sync.Mutex
	waiting list.List // of *conn, the oldest first
}

// newLobby makes a lobby with places for so many callers and so many strangers.
func newLobby(l net.Listener, callers, most int) *lobby {
	inner := &acceptor{Listener: l}
	return &lobby{
		Listener: netutil.LimitListener(inner, callers+most), inner: inner,
		most: most, left: make(chan struct{}, 1), closed: make(chan struct{}),
	}
}

// An acceptor remembers the connection that it has accepted last: what netutil makes of one cannot close a half of it.
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

// makeRoom returns when there is a place for a stranger.
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

// oldest returns who has been there for longest; nil when there is a free place.
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

// CloseWrite ends what is sent over the connection, where its kind can. Otherwise it ends the connection.
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

// Admit says that whoever sent the request of ctx may call: its connection may last. Other contexts change nothing.
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
