package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	readSize = 32 << 10
	// inFlight is how many chunks may be on their way in one direction before the sender is held back, as a full
	// socket does.
	inFlight = 1024
)

// A link is one connection through the proxy: the two halves that belong together.
type link struct {
	proxy  *Proxy
	client net.Conn
	ended  chan struct{}
	// forgotten says that nothing is forwarded any more.
	forgotten atomic.Bool

	mu     sync.Mutex
	target net.Conn // nil until connected
	over   bool
}

// A chunk is what one read brought. The last one of a direction has an error: io.EOF or how the connection broke.
type chunk struct {
	data []byte
	came time.Time
	err  error
}

func newLink(p *Proxy, client net.Conn) *link {
	return &link{proxy: p, client: client, ended: make(chan struct{})}
}

// run forwards in both directions until both have ended.
func (l *link) run() {
	// A connection is made by a packet, and is late or swallowed as others are.
	if !l.proxy.await(up, time.Now(), l.ended) {
		return
	}
	target, err := l.dial()
	if err != nil {
		l.end(true)
		return
	}
	var both sync.WaitGroup
	both.Go(func() { l.forward(up, target, l.client) })
	both.Go(func() { l.forward(down, l.client, target) })
	both.Wait()
	l.end(false)
}

// dial connects to the target. It continues when the link ends: the target may already have the connection, which would then be closed
// cleanly instead of reset.
func (l *link) dial() (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	target, err := dialer.DialContext(context.Background(), "tcp", l.proxy.target)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		reset(target)
		return nil, net.ErrClosed
	}
	l.target = target
	return target, nil
}

// forward reads from src and writes to dst what may be forwarded, until the end of either.
func (l *link) forward(d direction, dst, src net.Conn) {
	chunks := make(chan chunk, inFlight)
	var reader sync.WaitGroup
	reader.Go(func() { l.read(src, chunks) })
	defer reader.Wait()
	for {
		var c chunk
		select {
		case c = <-chunks:
		case <-l.ended:
			return
		}
		if !l.proxy.await(d, c.came, l.ended) {
			return
		}
		if l.forgotten.Load() {
			<-l.ended
			return
		}
		if _, err := dst.Write(c.data); err != nil {
			l.end(true)
			return
		}
		switch {
		case c.err == nil:
		case errors.Is(c.err, io.EOF):
			closeWrite(dst)
			return
		default:
			l.end(true)
			return
		}
	}
}

// read splits the data from src into chunks. The last one has an error.
func (l *link) read(src net.Conn, chunks chan<- chunk) {
	buf := make([]byte, readSize)
	for {
		n, err := src.Read(buf)
		select {
		case chunks <- chunk{data: bytes.Clone(buf[:n]), came: time.Now(), err: err}:
		case <-l.ended:
			return
		}
		if err != nil {
			return
		}
	}
}

// end closes both halves, by a reset if so told: it ends whatever is still being read, written or waited for.
func (l *link) end(byReset bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	l.over = true
	close(l.ended)
	for _, conn := range []net.Conn{l.client, l.target} {
		switch {
		case conn == nil:
		case byReset:
			reset(conn)
		default:
			conn.Close()
		}
	}
}

// reset closes a connection so that its other end notices at once and no remaining data is sent.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // else it is closed cleanly
	}
	conn.Close()
}

// closeWrite passes on the end of one direction.
func closeWrite(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.CloseWrite() // fails only on a connection that is gone
	}
}
