package httpthrottle

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http/httptrace"
	"net/textproto"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// ErrUnanswered is wrapped by the error of a call whose request was sent, got no answer, and was not sent again. The connection ended, or
// the service refused the stream. The service may have acted on the request. The error says why the request was not sent again. It is not
// context.Canceled.
var ErrUnanswered = errors.New("httpthrottle: the request was sent, and its connection ended or its stream was refused before an answer")

// A guard makes sure that one permit lets one request leave, whatever the base transport does below. Package net/http sends a request again
// by itself when a connection ends before the answer or a stream is refused. A base may also be a transport with retries of its own.
//
// It watches through httptrace, whose hooks travel in the request's context. Everything that is sent begins with a head, and the head with
// the field Host or :authority. The hook for that field runs before the head can be complete on the wire:
//
//   - The first head under a permit is the permitted one. Until it begins, the base may look for connections as often as it likes: nothing
//     has left.
//   - When the base begins again after that, and there was no answer, the guard stops it before it writes. It ends the attempt's context,
//     which HTTP/2 looks at before it writes a head. Since HTTP/1.1 does not look, the guard closes the connection, which belongs to this
//     request alone. The call makes it an attempt of its own.
//   - A head that begins all the same (on HTTP/2 below a transport that drops the end of the context, or two at once) finds
//     its connections closed before it is complete.
//   - If the base sends something more after an answer, it is not net/http that repeats. A transport between may log in by several
//     requests, or try again after a 503. Ended here it could never succeed, so that request waits for a permit of its own before it
//     leaves.
//
// A head that is broken off is no request. A request to a proxy (CONNECT) is written without these hooks; it does not reach the service.
type guard struct {
	call   *call
	ctx    context.Context //nolint:containedctx // the attempt's own, which ends with the body of its answer
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	permit   throttle.Permit
	sent     time.Time  // when the permit was there
	head     bool       // a head has begun under the permit
	http2    bool       // that head was one of HTTP/2
	answered bool       // the service has begun to answer it
	drawing  bool       // another permit is being drawn
	returned bool       // the base has returned
	wrote    bool       // the request was written, or will not be
	read     bool       // nothing is read any more from the answer that was returned
	veto     error      // why nothing more may leave; nil: nothing was stopped
	failure  error      // why the request could not be written
	conns    []net.Conn // connections that were taken, and not closed here
}

// newGuard returns the guard of an attempt that has its permit.
func (c *call) newGuard(permit throttle.Permit) *guard {
	g := &guard{call: c, permit: permit, sent: time.Now()}
	ctx, cancel := context.WithCancelCause(c.ctx)
	g.cancel = cancel
	g.ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:              g.onGetConn,
		GotConn:              g.onGotConn,
		WroteHeaderField:     g.onField,
		WroteHeaders:         g.onHead,
		WroteRequest:         g.onRequest,
		GotFirstResponseByte: func() { g.onAnswer(true) },
		Got1xxResponse: func(int, textproto.MIMEHeader) error { // the answer is still to come
			g.onAnswer(false)
			return nil
		},
	})
	return g
}

// onGetConn stops a repeat before a connection is made for it. It neither waits nor closes anything: HTTP/2 calls
// it with its pool locked.
func (g *guard) onGetConn(string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.head && (!g.answered || g.returned) || g.drawing {
		g.stop(ErrUnanswered)
	}
}

// onGotConn is the last hook before a head is written, and runs in the goroutine of the base's RoundTrip.
func (g *guard) onGotConn(info httptrace.GotConnInfo) {
	g.mu.Lock()
	switch {
	case g.veto != nil:
	case g.drawing:
		g.stop(ErrUnanswered)
	case g.head && g.answered && !g.returned:
		g.draw()
	case g.head:
		g.stop(ErrUnanswered)
	}
	shut := g.veto != nil && !g.shared(info.Conn)
	if !shut && info.Conn != nil {
		g.conns = append(g.conns, info.Conn)
	}
	g.mu.Unlock()
	if shut {
		closeConn(info.Conn)
	}
}

// draw gets a permit for one more request. g.mu is held, but not while it waits.
func (g *guard) draw() {
	c := g.call
	if c.attempt >= c.attempts {
		g.stop(fmt.Errorf("httpthrottle: the base transport had one more request to send after an answer; "+
			"it was not sent, because %s", c.used()))
		return
	}
	g.settle()
	g.drawing = true
	g.mu.Unlock()
	permit, err := c.admit(true)
	g.mu.Lock()
	g.drawing = false
	switch {
	case err != nil:
		g.stop(err)
	case g.returned || g.veto != nil:
		permit.Cancel()
		g.stop(ErrUnanswered)
	default:
		c.attempt++
		g.permit, g.sent = permit, time.Now()
		g.head, g.answered = false, false
	}
}

// onField notices the beginning of each head. It is called before HTTP/2 writes it at all, and before
// HTTP/1.1 has written it whole.
func (g *guard) onField(name string, _ []string) {
	if name != "Host" && name != ":authority" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.veto == nil && !g.head {
		g.head, g.http2 = true, name[0] == ':'
		return
	}
	g.stop(ErrUnanswered)
	// With g.mu held: the writer of another head must not go on before its connection is closed.
	for _, conn := range g.conns {
		closeConn(conn)
	}
	g.conns = nil
}

// onHead is for a base that does not report single fields.
func (g *guard) onHead() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.head = true
}

func (g *guard) onRequest(info httptrace.WroteRequestInfo) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wrote = true
	if g.veto == nil {
		g.failure = info.Err
	}
	if g.read {
		g.cancel(nil)
	}
}

func (g *guard) onAnswer(begun bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answered = begun
}

// stop ends the attempt. g.mu is held.
func (g *guard) stop(why error) {
	if g.veto == nil {
		g.veto = why
		g.cancel(why)
	}
}

// shared reports whether a connection is one of HTTP/2, which others use at the same time. Without TLS that is known only by the head
// before; if it is wrong, onField closes it. g.mu is held.
func (g *guard) shared(conn net.Conn) bool {
	if t, ok := conn.(interface{ ConnectionState() tls.ConnectionState }); ok {
		return t.ConnectionState().NegotiatedProtocol == "h2"
	}
	return g.http2
}

// closeConn closes a connection. A connection that stands for another, as in implementations of HTTP/3, may panic.
func closeConn(conn net.Conn) {
	if conn == nil {
		return
	}
	defer func() { _ = recover() }()
	_ = conn.Close()
}

// leave records that the base has returned, and returns why the attempt was stopped; nil: it was not.
func (g *guard) leave() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.returned = true
	if g.veto != nil && g.failure != nil && !errors.Is(g.failure, context.Canceled) && errors.Is(g.veto, ErrUnanswered) {
		return fmt.Errorf("%w: %w", g.veto, g.failure)
	}
	return g.veto
}

// settle settles the permit as drawn; a sent request counts.
func (g *guard) settle() { g.permit.Settle(g.drawn()) }

// drawn returns the cost of an attempt whose answer does not tell it: the drawn tokens, or more if a longer body has passed.
func (g *guard) drawn() int {
	if g.call.passed == nil {
		return g.permit.N()
	}
	return max(g.permit.N(), g.call.passed())
}

// release ends the context of the attempt.
func (g *guard) release() { g.cancel(nil) }

// done is release when nothing is read from the answer any more. Over HTTP/2 the service may still read the request,
// though its answer is complete.
func (g *guard) done() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.read = true
	if g.wrote || !g.http2 {
		g.cancel(nil)
	}
}

// stopped decides how a call goes on whose base was about to send its request again. That is an attempt like others, and needs no
// permission, because the base found it safe to repeat. The first follows at once.
func (c *call) stopped(why error) outcome {
	if !errors.Is(why, ErrUnanswered) {
		return outcome{err: why}
	}
	var d time.Duration
	if c.repeats > 0 {
		d = backoff(c.repeats-1, 0)
	}
	c.repeats++
	wait, fits := late(d, d/2, c.left())
	var because string
	switch {
	case c.attempt >= c.attempts:
		because = c.used()
	case c.body.again == nil:
		because = "its body cannot be had again"
	case !fits:
		because = "no time is left for another attempt"
	default:
		return outcome{again: true, wait: wait}
	}
	return outcome{err: fmt.Errorf("%w; it was not sent again, because %s", why, because)}
}

// used says that no attempt is left.
func (c *call) used() string {
	return fmt.Sprintf("the %d attempts of WithMaxAttempts are used up", c.attempts)
}
